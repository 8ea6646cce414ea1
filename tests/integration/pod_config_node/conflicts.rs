//! Faults that prevent a link, and pods that are not affected.

use serde_json::{Value, json};

use super::allocations::{allocation, ending, released};
use super::node::{Node, Pod};
use super::pools::pool;
use crate::lab::{PATIENCE, wait_until};

/// The only attachment of a pod.
fn one(node: &Node, n: usize, attachment: &str, bridge: &str, address: &str) -> (String, Value) {
    (format!("uid-{n}"), json!([allocation(node, &format!("pod-{n}"), attachment, bridge, address)]))
}

fn write(node: &Node, range: &Value, pods: &[(String, Value)]) {
    let pods: Vec<_> = pods.iter().map(|(uid, list)| (uid.as_str(), list.clone())).collect();
    node.write(range, &pods);
}

#[test]
fn foreign_links_are_never_taken() {
    let node = Node::new("podnet-conflict");
    let daemon = node.daemon("allowedBridges: [docker0, missing0]");
    let pods: Vec<_> = (0..9).map(|n| node.pod(&format!("uid-{n}"))).collect();
    let taken = format!("hdata{}", pods[0].process());
    let inner = format!("data{}", pods[1].process());
    node.namespace.ip(&format!("link add {taken} type veth peer name peer0"));
    pods[1].namespace.ip(&format!("link add {inner} type veth peer name peer0"));
    // A process of the node itself.
    node.runtime.set_container("uid-8", Some(std::process::id()));
    let bridges = ["labbr0", "docker0", "uplink0", "missing0"];
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &bridges);
    let wanted = vec![
        one(&node, 0, "data", "labbr0", "10.77.0.2"),
        one(&node, 1, "data", "labbr0", "10.77.0.3"),
        one(&node, 2, "longestname77", "labbr0", "10.77.0.4"),
        one(&node, 3, "data", "uplink0", "10.77.0.5"),
        one(&node, 4, "data", "missing0", "10.77.0.6"),
        one(&node, 5, "data", "labbr0", "10.77.0.7"),
        one(&node, 6, "data", "docker0", "10.77.0.8"),
    ];
    write(&node, &range, &wanted);
    write(
        &node,
        &pool("lab", "172.17.4.0/24", "172.17.4.1", &["labbr2"]),
        &[one(&node, 7, "data", "labbr2", "172.17.4.2")],
    );
    write(
        &node,
        &pool("lab", "198.51.100.0/25", "198.51.100.1", &["labbr3"]),
        &[one(&node, 8, "data", "labbr3", "198.51.100.2")],
    );

    node.await_state("uid-5", "plugged", 1);
    for (uid, reason, words) in refusals(&taken, &inner) {
        let message = node.await_problem(uid, reason);
        assert!(message.contains(&words), "{uid}: {message}");
    }
    // An allowed bridge gets ports, but no address. The link of this pod overlaps nothing, although it uses the same
    // range as labbr0.
    let message = node.await_problem("uid-6", "NetworkOverlap");
    assert!(message.contains("10.77.0.1/24 on the link labbr0"), "{message}");
    assert!(!node.links().contains(&"labbr2".to_owned()) && !node.links().contains(&"labbr3".to_owned()));

    frees(&node, &pods, &range, &wanted, [&taken, &inner]);
    drop(daemon);
}

/// The pods without a link, with reason and words of the message.
fn refusals(taken: &str, inner: &str) -> [(&'static str, &'static str, String); 7] {
    [
        ("uid-0", "NameConflict", format!("a link of the node already has the name {taken}")),
        ("uid-1", "NameConflict", format!("a link in the pod already has the name {inner}")),
        ("uid-2", "NameTooLong", "has more than 15 bytes: give the attachment a name of at most ".to_owned()),
        ("uid-3", "BridgeConflict", "the link uplink0 of podnet-conflict is not a bridge".to_owned()),
        (
            "uid-4",
            "BridgeConflict",
            "the bridge missing0 is listed in allowedBridges but does not exist".to_owned(),
        ),
        (
            "uid-7",
            "NetworkOverlap",
            "172.17.4.0/24 overlaps the address 172.17.0.1/16 on the link docker0".to_owned(),
        ),
        (
            "uid-8",
            "NetworkOverlap",
            "198.51.100.0/25 overlaps the route to 198.51.100.0/24 by the link uplink0".to_owned(),
        ),
    ]
}

/// Removes the obstacles.
fn frees(node: &Node, pods: &[Pod], range: &Value, wanted: &[(String, Value)], [taken, inner]: [&str; 2]) {
    node.namespace.ip(&format!("link del {taken}"));
    node.await_state("uid-0", "plugged", 1);
    pods[1].namespace.ip(&format!("link del {inner}"));
    node.await_state("uid-1", "plugged", 1);
    write(node, &pool("lab", "198.51.100.0/25", "198.51.100.1", &["labbr3"]), &[]);
    let other = pool("other", "10.78.0.0/24", "10.78.0.1", &["docker0", "labbr0"]);
    write(
        node,
        &other,
        &[one(node, 6, "data", "docker0", "10.78.0.8"), one(node, 8, "data", "labbr0", "10.78.0.9")],
    );
    write(node, range, &wanted[..6]);
    let entries = node.await_state("uid-6", "plugged", 1);
    assert_eq!(entries[0]["bridge"], "docker0");
    assert!(
        node.await_problem("uid-8", "BridgeConflict")
            .contains("the bridge labbr0 is used by the namespace lab")
    );
    node.namespace.ip("link set docker0 up");
    assert_eq!(node.addresses("docker0"), ["172.17.0.1/16"]);

    for (range, pods) in [
        (range, vec![]),
        (
            &other,
            vec![("uid-6", json!([released(allocation(node, "pod-6", "data", "docker0", "10.78.0.8"))]))],
        ),
    ] {
        node.write(range, &pods);
    }
    node.await_state("uid-6", "released", 1);
    for range in
        [range, &other, &pool("lab", "172.17.4.0/24", "", &[]), &pool("lab", "198.51.100.0/25", "", &[])]
    {
        node.delete(range);
    }
    node.await_nothing();
}

#[test]
fn a_pod_in_the_network_of_the_node_gets_no_link() {
    let node = Node::new("podnet-host");
    let daemon = node.daemon("");
    let pod = node.pod("uid-one");
    let inside = std::process::Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "nsenter", &format!("--net={}", node.namespace.path().display())])
        .args(["sleep", "infinity"])
        .spawn();
    let mut inside = inside.expect("a process");
    node.runtime.set_container("uid-two", Some(inside.id()));
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    let of = |pod: &str, address: &str| json!([allocation(&node, pod, "data", "labbr0", address)]);
    node.write(&range, &[("uid-one", of("one", "10.77.0.2")), ("uid-two", of("two", "10.77.0.3"))]);
    node.await_state("uid-one", "plugged", 1);
    let message = node.await_problem("uid-two", "LinkFailed");
    assert!(message.contains("uses the host network"), "{message}");
    assert_eq!(node.own(), ["labbr0".to_owned(), format!("hdata{}", pod.process())]);
    let _ = inside.kill();
    let _ = inside.wait();
    drop(daemon);
}

#[test]
fn a_pod_that_is_being_deleted_gets_no_new_link() {
    let node = Node::new("podnet-ending");
    let daemon = node.daemon("");
    let pods = ["uid-one", "uid-two", "uid-three", "uid-four"].map(|uid| node.pod(uid));
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    let of = |pod: &str, address: &str| allocation(&node, pod, "data", "labbr0", address);
    let one = of("one", "10.77.0.2");
    node.write(&range, &[("uid-one", json!([one]))]);
    node.await_state("uid-one", "plugged", 1);
    let three = ("uid-three", json!([of("three", "10.77.0.4")]));
    let leaving = [("uid-one", json!([ending(one)])), ("uid-two", json!([ending(of("two", "10.77.0.3"))]))];
    node.write(&range, &[leaving.to_vec(), vec![three.clone()]].concat());
    node.await_state("uid-three", "plugged", 1);
    let links = |places: &[usize]| -> Vec<String> {
        let links = places.iter().map(|place| format!("hdata{}", pods[*place].process()));
        [vec!["labbr0".to_owned()], links.collect()].concat()
    };
    assert_eq!(node.own(), links(&[0, 2]), "it keeps what it has");
    assert_eq!(node.entries("uid-two")[0]["state"], "pending");
    // The link is not created again either.
    node.namespace.ip(&format!("link del hdata{}", pods[0].process()));
    node.await_state("uid-one", "pending", 1);
    let four = ("uid-four", json!([of("four", "10.77.0.5")]));
    node.write(&range, &[leaving.to_vec(), vec![three, four]].concat());
    node.await_state("uid-four", "plugged", 1);
    assert_eq!(node.own(), links(&[2, 3]));
    drop(daemon);
}

#[test]
fn a_network_of_the_pod_itself_is_rejected() {
    let node = Node::new("podnet-own");
    let daemon = node.daemon("resync: 1s");
    let pods = [node.pod("uid-one"), node.pod("uid-two")];
    let network = |pod: &Pod| {
        for command in ["link add eth0 type bridge", "addr add 10.77.3.9/16 dev eth0", "link set eth0 up"] {
            pod.namespace.ip(command);
        }
    };
    network(&pods[0]);
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    let of = |pod: &str, address: &str| json!([allocation(&node, pod, "data", "labbr0", address)]);
    node.write(&range, &[("uid-one", of("one", "10.77.0.2")), ("uid-two", of("two", "10.77.0.3"))]);
    let found = "the pod already uses 10.77.0.0/24 through the address 10.77.3.9/16 on its link eth0";
    let message = node.await_problem("uid-one", "NetworkOverlap");
    assert!(message.contains(found), "{message}");
    assert_eq!(pods[0].links(), ["eth0"]);
    node.await_state("uid-two", "plugged", 1);
    // An existing link is not removed when an overlapping network appears later, but the overlap is reported.
    network(&pods[1]);
    let message = node.await_problem("uid-two", "NetworkOverlap");
    assert!(message.contains(found), "{message}");
    assert_eq!(node.await_state("uid-two", "plugged", 1)[0]["address"], "10.77.0.3/24");
    assert!(pods[1].links().contains(&format!("data{}", pods[1].process())));
    drop(daemon);
}

#[test]
fn a_runtime_that_hangs_delays_only_the_pods_that_need_it() {
    let node = Node::new("podnet-hang");
    let daemon = node.daemon("resync: 2s");
    let pods = [node.pod("uid-one"), node.pod("uid-two")];
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    let of = |pod: &str, address: &str| allocation(&node, pod, "data", "labbr0", address);
    node.write(&range, &[("uid-one", json!([of("one", "10.77.0.2")]))]);
    node.await_state("uid-one", "plugged", 1);
    node.runtime.set_hanging(true);
    node.write(
        &range,
        &[
            ("uid-one", json!([released(of("one", "10.77.0.2"))])),
            ("uid-two", json!([of("two", "10.77.0.3")])),
        ],
    );
    node.await_state("uid-one", "released", 1);
    assert!(pods[0].links().is_empty());
    let message = node.await_problem("uid-two", "RuntimeUnavailable");
    assert!(message.contains("did not answer"), "{message}");
    wait_until(PATIENCE, || match daemon.page("/readyz/podConfigNode") {
        (503, why) if why.contains("did not answer") => Ok(()),
        other => Err(format!("not ready, is {other:?}")),
    });
    node.runtime.set_hanging(false);
    node.await_state("uid-two", "plugged", 1);
    daemon.await_ready();
    wait_until(PATIENCE, || match &node.report().unwrap_or_default()["data"]["node"] {
        serde_json::Value::String(text) if !text.contains("problem") => Ok(()),
        other => Err(format!("no problem, is {other:?}")),
    });
    node.assert_others_untouched();
}

#[test]
fn links_of_unreadable_or_lost_records_are_kept() {
    let node = Node::new("podnet-lost");
    let daemon = node.daemon("resync: 1s");
    let pods = [node.pod("uid-one"), node.pod("uid-two")];
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    let of = |pod: &str, address: &str| json!([allocation(&node, pod, "data", "labbr0", address)]);
    let both = [("uid-one", of("one", "10.77.0.2")), ("uid-two", of("two", "10.77.0.3"))];
    node.write(&range, &both);
    node.await_state("uid-one", "plugged", 1);
    node.await_state("uid-two", "plugged", 1);
    let own = node.own();
    let looked = || {
        let calls = node.runtime.calls();
        wait_until(
            PATIENCE,
            || if node.runtime.calls() > calls + 2 { Ok(()) } else { Err("calls".to_owned()) },
        );
    };
    // The entry of one pod cannot be read: its link stays, and the link of the other pod is removed as soon
    // as it is no longer named.
    node.write(&range, &[("uid-one", json!("nonsense"))]);
    node.await_gone(&format!("hdata{}", pods[1].process()));
    looked();
    assert_eq!(node.own().len(), own.len() - 1);
    node.write(&range, &both);
    node.await_state("uid-two", "plugged", 1);
    let own = node.own();
    // The whole pool is lost, including while no daemon runs.
    node.delete(&range);
    looked();
    drop(daemon);
    let again = node.spawn_through(&[], "resync: 1s");
    looked();
    assert_eq!(node.own(), own);
    let kept = "until the leader (podConfig) decides about them: hdata";
    wait_until(PATIENCE, || match again.page("/readyz/podConfigNode") {
        (503, why) if why.contains(kept) => Ok(()),
        other => Err(format!("{kept}, is {other:?}")),
    });
    for uid in ["uid-one", "uid-two"] {
        assert_eq!(
            node.await_state(uid, "plugged", 1)[0]["bridge"],
            "labbr0",
            "the leader makes the pool again"
        );
    }
    let index = node.link(&own[1])["ifindex"].clone();
    node.write(&range, &both);
    looked();
    again.await_ready();
    assert_eq!(node.link(&own[1])["ifindex"], index);
    // A pool that no longer names them.
    node.write(&range, &[]);
    wait_until(PATIENCE, || match node.own() {
        own if own == ["labbr0"] => Ok(()),
        own => Err(format!("the bridge alone, are {own:?}")),
    });
    node.delete(&range);
    node.await_nothing();
    drop(again);
}
