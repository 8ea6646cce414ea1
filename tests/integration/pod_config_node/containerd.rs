//! Two nodes with a real containerd and runc each: pods, containers and sandboxes are created and removed.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::allocations::{allocation, released};
use super::node::{Node, assert_echo};
use super::pools::pool;
use crate::daemon::{self, Daemon};
use crate::lab::{PATIENCE, wait_until};
use cluster::containerd::{Containerd, Pod};
use cluster::network::Namespace;

/// The daemon on a node, as a pod with `hostPID` would run it: among the processes of the node, where the first process
/// has the network of the node.
pub fn start(node: &Node, containerd: &Containerd, more: &str) -> Daemon {
    let more = format!("runtimeEndpoint: \"unix://{}\", {more}", containerd.socket().display());
    let config = daemon::config(&node.name, &node.config_with(&more));
    let first = containerd.id().expect("containerd runs").to_string();
    let command = [
        "nsenter",
        "--target",
        &first,
        "--pid",
        "--mount",
        "--",
        "setpriv",
        "--pdeathsig",
        "KILL",
        "--",
        env!("CARGO_BIN_EXE_crownlabs"),
    ];
    Daemon::launch(&command, &config, &node.lab.admin(), "127.0.0.1".to_owned())
}

fn uid(pod: &Pod) -> String {
    format!("uid-{}-{}", pod.namespace, pod.name)
}

/// The network namespace of a pod. The number of one of the pod's processes is in the name of its link.
fn inside(containerd: &Containerd, entry: &Value) -> Namespace {
    let name = entry["podLink"].as_str().expect("a name");
    let process: u32 = name.trim_start_matches(char::is_alphabetic).parse().expect("a number");
    Namespace::of(containerd.process_outside(process).expect("it runs"))
}

#[test]
fn pods_of_containerd_get_links_that_outlive_their_containers() {
    let runtime = Runtime::new().expect("a runtime");
    let mut one = Node::new("podnet-cri-one");
    let mut two = Node::beside(&one, "podnet-cri-two");
    let engines = [
        Containerd::start(&one.namespace, 1).expect("containerd"),
        Containerd::start(&two.namespace, 2).expect("containerd"),
    ];
    let pods = [Pod::new("lab", "a"), Pod::new("lab", "b"), Pod::new("lab", "c")];
    let [a, b, c] = &pods;
    let mut sandboxes = Vec::new();
    let mut containers = Vec::new();
    for (pod, engine) in [(a, &engines[0]), (b, &engines[0]), (c, &engines[1])] {
        let sandbox = runtime.block_on(engine.run_pod(pod)).expect("a pod");
        containers
            .push(runtime.block_on(engine.run_container(pod, &sandbox, "app", &["0"])).expect("a container"));
        sandboxes.push(sandbox);
    }
    // The bridge and the cables of CNI must not change either.
    one.look_again();
    two.look_again();
    let daemons = [start(&one, &engines[0], "resync: 1s"), start(&two, &engines[1], "resync: 1s")];
    daemons.iter().for_each(Daemon::await_ready);
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    let of = |node: &Node, pod: &Pod, address: &str| {
        (uid(pod), json!([allocation(node, &pod.name, "data", "labbr0", address)]))
    };
    let all = [of(&one, a, "10.77.0.2"), of(&one, b, "10.77.0.3"), of(&two, c, "10.77.0.4")];
    let all: Vec<(&str, Value)> = all.iter().map(|(uid, list)| (uid.as_str(), list.clone())).collect();
    one.write(&range, &all);
    let first = one.await_state(&uid(a), "plugged", 1).remove(0);
    let second = one.await_state(&uid(b), "plugged", 1).remove(0);
    let third = two.await_state(&uid(c), "plugged", 1).remove(0);
    assert!(one.entries(&uid(c)).is_empty() && two.entries(&uid(a)).is_empty());
    let [in_a, in_b, in_c] = [(&engines[0], &first), (&engines[0], &second), (&engines[1], &third)]
        .map(|(engine, entry)| inside(engine, entry));
    assert_echo(&in_a, &in_b, "10.77.0.3");
    assert_echo(&in_a, &one.namespace, "10.77.0.1");
    assert_echo(&in_c, &two.namespace, "10.77.0.1");

    // The container restarts: the link stays, also for a daemon that restarts then.
    let index = one.link(first["hostLink"].as_str().expect("a name"))["ifindex"].clone();
    runtime.block_on(engines[0].remove_container(&containers[0])).expect("removed");
    runtime.block_on(engines[0].run_container(a, &sandboxes[0], "app", &["0"])).expect("a container");
    drop(daemons);
    let daemons = [start(&one, &engines[0], "resync: 1s"), start(&two, &engines[1], "resync: 1s")];
    daemons.iter().for_each(Daemon::await_ready);
    wait_until(PATIENCE, || {
        let metrics = daemons[0].metrics();
        if metrics.contains("pod_network_links 2") { Ok(()) } else { Err(metrics) }
    });
    assert_eq!(one.entries(&uid(a)), std::slice::from_ref(&first));
    assert_eq!(one.link(first["hostLink"].as_str().expect("a name"))["ifindex"], index);
    drop((in_a, in_b));

    renewed(&runtime, &one, &engines[0], a, &sandboxes[0], [&first, &second]);
    removed([&one, &two], &engines[0], &pods, &range, all);
    two.await_nothing();
}

/// A new sandbox: a new pair with the same address.
fn renewed(
    runtime: &Runtime,
    node: &Node,
    engine: &Containerd,
    pod: &Pod,
    sandbox: &str,
    [first, neighbour]: [&Value; 2],
) {
    runtime.block_on(engine.stop_pod(sandbox)).expect("stopped");
    runtime.block_on(engine.remove_pod(sandbox)).expect("removed");
    node.await_gone(first["hostLink"].as_str().expect("a name"));
    let sandbox = runtime.block_on(engine.run_pod(pod)).expect("a pod");
    runtime.block_on(engine.run_container(pod, &sandbox, "app", &["0"])).expect("a container");
    let next = wait_until(PATIENCE, || match &node.entries(&uid(pod))[..] {
        [entry] if entry["state"] == "plugged" && entry["podLink"] != first["podLink"] => Ok(entry.clone()),
        other => Err(format!("another link, is {other:?}")),
    });
    assert_eq!(next["address"], "10.77.0.2/24");
    assert_echo(&inside(engine, neighbour), &inside(engine, &next), "10.77.0.2");
}

/// Removal needs no runtime.
fn removed(
    [one, two]: [&Node; 2],
    engine: &Containerd,
    [a, b, c]: &[Pod; 3],
    range: &Value,
    all: Vec<(&str, Value)>,
) {
    engine.set_stopped(true).expect("stopped");
    let all: Vec<(&str, Value)> =
        all.into_iter().map(|(uid, list)| (uid, json!([released(list[0].clone())]))).collect();
    one.write(range, &all);
    one.await_state(&uid(a), "released", 1);
    one.await_state(&uid(b), "released", 1);
    two.await_state(&uid(c), "released", 1);
    one.delete(range);
    wait_until(PATIENCE, || {
        if one.own().is_empty() && two.own().is_empty() { Ok(()) } else { Err("none".to_owned()) }
    });
    engine.set_stopped(false).expect("continued");
}
