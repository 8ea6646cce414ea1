//! A node as an administrator sees it, from the first pod to the last.

use serde_json::{Value, json};

use super::allocations::{allocation, released};
use super::node::{Node, Pod, assert_echo};
use super::pools::pool;
use crate::lab::{PATIENCE, wait_until};

#[test]
fn pods_reach_each_other_and_the_gateway_and_nothing_is_left() {
    let node = Node::new("podnet-flow");
    let daemon = node.daemon("");
    // It reports before it has any work: a node that has never reported counts as a node without the daemon.
    wait_until(PATIENCE, || {
        let data = node.report().unwrap_or_default()["data"].clone();
        let is_empty = data.as_object().is_some_and(|data| data.keys().eq(["node"]));
        is_empty.then_some(()).ok_or_else(|| format!("a report about nothing, is {data}"))
    });
    let (one, two) = (node.pod("uid-one"), node.pod("uid-two"));
    let data = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    let mgmt = pool("lab", "fd00:77::/64", "fd00:77::1", &["labbr1"]);
    let of = |pod: &str, attachment: &str, bridge: &str, address: &str| {
        json!([allocation(&node, pod, attachment, bridge, address)])
    };
    let (one_data, two_data) =
        (of("one", "data", "labbr0", "10.77.0.2"), of("two", "data", "labbr0", "10.77.0.3"));
    let (one_mgmt, two_mgmt) =
        (of("one", "mgmt", "labbr1", "fd00:77::2"), of("two", "mgmt", "labbr1", "fd00:77::3"));
    node.write(&data, &[("uid-one", one_data.clone()), ("uid-two", two_data.clone())]);
    node.write(&mgmt, &[("uid-one", one_mgmt.clone()), ("uid-two", two_mgmt.clone())]);

    let entries = node.await_state("uid-one", "plugged", 2);
    let link = format!("data{}", one.process());
    assert_eq!(
        entries[0],
        json!({
            "namespace": "lab", "podConfig": "lab-net", "podConfigUid": "0b0e33f4-3b0a-4b6e-9b39-5cb24bd9a2c1",
            "pod": "one", "attachment": "data", "state": "plugged", "podLink": link, "hostLink": format!("h{link}"),
            "address": "10.77.0.2/24", "bridge": "labbr0",
        })
    );
    node.await_state("uid-two", "plugged", 2);
    assert_eq!(one.addresses(&link), ["10.77.0.2/24"]);
    assert_eq!(two.addresses(&format!("mgmt{}", two.process())), ["fd00:77::3/64"]);
    assert_eq!(
        (node.addresses("labbr0"), node.addresses("labbr1")),
        (vec!["10.77.0.1/24".into()], vec!["fd00:77::1/64".into()])
    );
    let host = node.link(&format!("h{link}"));
    assert_eq!(
        (&host["master"], &host["operstate"], &host["mtu"]),
        (&json!("labbr0"), &json!("UP"), &json!(1500))
    );
    assert!(node.addresses(&format!("h{link}")).is_empty());
    for (address, server) in [
        ("10.77.0.3", &two.namespace),
        ("fd00:77::3", &two.namespace),
        ("10.77.0.1", &node.namespace),
        ("fd00:77::1", &node.namespace),
    ] {
        assert_echo(&one.namespace, server, address);
    }
    node.assert_others_untouched();
    report_is_kept(&node);
    goes(&node, [&one, &two], [&data, &mgmt], [&one_data, &one_mgmt, &two_mgmt]);
    drop(daemon);
}

/// The report belongs to the node, and gets its label back.
fn report_is_kept(node: &Node) {
    let report = node.report().expect("a report");
    assert_eq!(report["metadata"]["ownerReferences"][0]["kind"], "Node");
    // Without its label, the leader does not see it.
    let label = &report["metadata"]["labels"]["crownlabs.polito.it/pod-network"];
    assert_eq!(label, "report");
    let name = report["metadata"]["name"].as_str().expect("a name");
    let home = report["metadata"]["namespace"].as_str().expect("a namespace");
    node.lab.kubectl(&["label", "configmap", "-n", home, name, "crownlabs.polito.it/pod-network-"]);
    wait_until(PATIENCE, || match &node.report().expect("a report")["metadata"]["labels"] {
        labels if labels["crownlabs.polito.it/pod-network"] == *label => Ok(()),
        labels => Err(format!("the label, are {labels}")),
    });
}

/// Removes all links, one after the other.
fn goes(
    node: &Node,
    [one, two]: [&Pod; 2],
    [data, mgmt]: [&Value; 2],
    [one_data, one_mgmt, two_mgmt]: [&Value; 3],
) {
    let link = format!("data{}", one.process());
    // One attachment is released, then all of them.
    node.write(mgmt, &[("uid-one", json!([released(one_mgmt[0].clone())])), ("uid-two", two_mgmt.clone())]);
    wait_until(PATIENCE, || match &node.entries("uid-one")[..] {
        [first, second] if first["state"] == "plugged" && second["state"] == "released" => Ok(()),
        other => Err(format!("plugged and released, are {other:?}")),
    });
    assert_eq!(one.links(), [link]);
    node.write(data, &[("uid-one", json!([released(one_data[0].clone())]))]);
    node.await_state("uid-one", "released", 2);
    node.await_gone(&format!("hdata{}", two.process()));
    node.write(mgmt, &[]);
    node.await_gone(&format!("hmgmt{}", two.process()));
    assert_eq!(node.own(), ["labbr0", "labbr1"]);
    node.delete(data);
    node.delete(mgmt);
    node.await_nothing();
    assert!(one.links().is_empty() && two.links().is_empty());
    wait_until(PATIENCE, || match node.report().expect("a report")["data"].as_object().cloned() {
        Some(data) if data.keys().eq(["node"]) => Ok(()),
        other => Err(format!("only the node, is {other:?}")),
    });
}
