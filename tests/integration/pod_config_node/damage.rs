//! Links that another program has changed are repaired, and new containers and processes change nothing.

use serde_json::{Value, json};

use super::allocations::allocation;
use super::node::{Node, Pod, assert_echo};
use super::pools::pool;
use crate::lab::{PATIENCE, wait_until};
use cluster::network::Namespace;

const UID: &str = "uid-one";

/// A node with one pod that has one link.
fn plugged(name: &str) -> (Node, Pod, Value) {
    let node = Node::new(name);
    let pod = node.pod(UID);
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    node.write(&range, &[(UID, json!([allocation(&node, "one", "data", "labbr0", "10.77.0.2")]))]);
    (node, pod, range)
}

/// The name of the pod's end, if the link is correct.
fn right(node: &Node, pod: &Pod) -> Result<String, String> {
    let links = pod.links();
    let [name] = &links[..] else { return Err(format!("one link, are {links:?}")) };
    let host = format!("h{name}");
    if !node.links().iter().any(|link| link == "labbr0") {
        return Err("the bridge".to_owned());
    }
    let (addresses, gateways) = (pod.addresses(name), node.addresses("labbr0"));
    if addresses != ["10.77.0.2/24"] || gateways != ["10.77.0.1/24"] {
        return Err(format!("the addresses, are {addresses:?} and {gateways:?}"));
    }
    if !node.links().contains(&host)
        || node.link(&host)["operstate"] != "UP"
        || node.link(&host)["master"] != "labbr0"
    {
        return Err(format!("{host} in labbr0, up; there are {:?}", node.links()));
    }
    Ok(name.clone())
}

fn await_right(node: &Node, pod: &Pod) -> String {
    let name = wait_until(PATIENCE, || right(node, pod));
    wait_until(PATIENCE, || match &node.entries(UID)[..] {
        [entry] if entry["state"] == "plugged" && entry["podLink"] == name.as_str() => Ok(()),
        other => Err(format!("{name} plugged, is {other:?}")),
    });
    name
}

/// Changes something: of a node, a pod, or a namespace elsewhere; the last is the name of the pod's end.
type Damage = fn(&Node, &Pod, &Namespace, &str);

#[test]
fn every_change_of_a_link_is_repaired() {
    let (node, pod, _) = plugged("podnet-damage");
    let daemon = node.daemon("resync: 1s");
    let elsewhere = Namespace::new();
    let damage: [(&str, Damage); 11] = [
        ("renamed", |_, pod, _, name| {
            pod.namespace.ip(&format!("link set {name} down"));
            pod.namespace.ip(&format!("link set {name} name other0"));
        }),
        ("without address", |_, pod, _, name| drop(pod.namespace.ip(&format!("addr flush dev {name}")))),
        ("down", |_, pod, _, name| drop(pod.namespace.ip(&format!("link set {name} down")))),
        ("without alias", |_, pod, _, name| drop(pod.namespace.ip(&format!("link set {name} alias mine")))),
        ("another hardware address", |_, pod, _, name| {
            drop(pod.namespace.ip(&format!("link set {name} address 02:00:00:00:00:07")));
        }),
        ("deleted in the pod", |_, pod, _, name| drop(pod.namespace.ip(&format!("link del {name}")))),
        ("moved", |_, pod, elsewhere, name| {
            pod.namespace.ip(&format!("link set {name} netns {}", elsewhere.path().display()));
        }),
        ("unplugged", |node, _, _, name| drop(node.namespace.ip(&format!("link set h{name} nomaster")))),
        ("down on the node", |node, _, _, name| drop(node.namespace.ip(&format!("link set h{name} down")))),
        ("without gateway", |node, _, _, _| {
            node.namespace.ip("addr del 10.77.0.1/24 dev labbr0");
            node.namespace.ip("link set labbr0 down");
        }),
        ("without bridge", |node, _, _, _| drop(node.namespace.ip("link del labbr0"))),
    ];
    for (what, damage) in damage {
        let name = await_right(&node, &pod);
        damage(&node, &pod, &elsewhere, &name);
        await_right(&node, &pod);
        if what == "another hardware address" {
            let shown = || pod.namespace.ip("link show");
            wait_until(
                PATIENCE,
                || if shown().contains("02:00:00:00:00:07") { Err(shown()) } else { Ok(()) },
            );
        }
        if what == "without alias" {
            let shown = || pod.namespace.ip("link show");
            wait_until(PATIENCE, || if shown().contains("alias mine") { Err(shown()) } else { Ok(()) });
        }
    }
    await_right(&node, &pod);
    assert_echo(&pod.namespace, &node.namespace, "10.77.0.1");
    node.assert_others_untouched();
    drop(daemon);
}

#[test]
fn a_restarted_container_keeps_its_link_and_a_new_sandbox_has_the_same_address() {
    let (node, mut pod, _) = plugged("podnet-restart");
    let daemon = node.daemon("resync: 1s");
    let first = await_right(&node, &pod);
    let index = node.link(&format!("h{first}"))["ifindex"].clone();
    pod.restart();
    node.runtime.set_container(UID, Some(pod.process()));
    // Two more checks of all links.
    let calls = node.runtime.calls();
    wait_until(PATIENCE, || if node.runtime.calls() > calls + 4 { Ok(()) } else { Err("calls".to_owned()) });
    assert_eq!(await_right(&node, &pod), first);
    assert_eq!(node.link(&format!("h{first}"))["ifindex"], index);

    // Only the sandbox has a process as long as no container runs.
    let next = Pod::new();
    node.runtime.set_container(UID, None);
    node.runtime.set_sandbox(UID, Some(next.process()));
    drop(pod);
    let second = await_right(&node, &next);
    assert_eq!(second, format!("data{}", next.process()));
    node.await_gone(&format!("h{first}"));
    node.assert_others_untouched();
    drop(daemon);
}

/// The full state of the node's namespace, and the version of the report.
fn everything(node: &Node) -> (String, Value) {
    // Whether the kernel has finished checking for duplicate addresses does not matter here.
    let links = node.namespace.ip("addr show").replace(" tentative", "");
    (links, node.report().unwrap_or_default()["metadata"]["resourceVersion"].clone())
}

#[test]
fn a_restarted_daemon_changes_nothing_even_if_the_runtime_hangs() {
    let (node, pod, _) = plugged("podnet-again");
    let daemon = node.daemon("");
    await_right(&node, &pod);
    let before = everything(&node);
    drop(daemon);
    let again = node.daemon("resync: 1s");
    let calls = node.runtime.calls();
    wait_until(PATIENCE, || if node.runtime.calls() > calls + 2 { Ok(()) } else { Err("calls".to_owned()) });
    assert_eq!(everything(&node), before);
    assert!(again.metrics().contains("pod_network_links 1"), "{}", again.metrics());
    drop(again);

    node.runtime.set_hanging(true);
    let hanging = node.spawn_through(&[], "resync: 1s");
    let why = wait_until(PATIENCE, || match hanging.page("/readyz/podConfigNode") {
        (503, why) if why.contains("did not answer") => Ok(why),
        other => Err(format!("the reason, is {other:?}")),
    });
    assert!(why.contains("new links cannot be created"), "{why}");
    wait_until(PATIENCE, || match &node.report().unwrap_or_default()["data"]["node"] {
        Value::String(text) if text.contains("RuntimeUnavailable") => Ok(()),
        other => Err(format!("a problem, is {other:?}")),
    });
    assert_eq!(everything(&node).0, before.0);
    assert_eq!(node.entries(UID)[0]["state"], "plugged");
}
