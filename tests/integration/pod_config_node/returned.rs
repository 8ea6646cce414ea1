//! Nodes that were lost when a `PodConfig` was deleted, and return while its pods still run there.

use std::sync::Arc;

use serde_json::json;

use super::node::{Node, Pod};
use super::pools::report_name;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::pod_config::nodes::{SYSTEM, pools, records};
use crate::pod_config::{self, KIND, await_configured};
use cluster::Options as ClusterOptions;

const NAMESPACE: &str = "podnet-back";

/// Sets whether nodes are ready, with a time long ago.
fn set_ready(lab: &Lab, nodes: &[Node], ready: &str) {
    let condition = json!({"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = json!({"status": {"conditions": [condition]}}).to_string();
    for node in nodes {
        lab.patch_status("nodes", "", &node.name, &patch);
    }
}

/// A pod of the `PodConfig` on a node, whose runtime knows it.
fn pod(lab: &Lab, node: &Node, name: &str, config: &str) -> Pod {
    lab.apply(&pod_config::pod(NAMESPACE, name, config, &node.name));
    let object = lab.get("pods", NAMESPACE, name).expect("the pod");
    let pod = Pod::new();
    node.runtime.set_container(object["metadata"]["uid"].as_str().expect("a uid"), Some(pod.process()));
    pod
}

fn leader(lab: &Lab) -> Daemon {
    let kubeconfig = lab.service_account();
    Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "podconfig", config: &pod_config::config() })
}

#[test]
fn links_of_a_returned_node_are_reported_until_they_are_removed() {
    let options = ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() };
    let lab = Arc::new(Lab::start(options));
    let nodes = ["podnet-back-one", "podnet-back-two"].map(|name| Node::of_leader(&lab, name));
    set_ready(&lab, &nodes, "True");
    let first = leader(&lab);
    lab.apply(&pod_config::namespace(NAMESPACE));
    let configs = [("first", "data labbr0 10.77.0.0/24"), ("second", "data labbr1 10.78.0.0/24")];
    for (name, attachment) in configs {
        lab.apply(&pod_config::pod_config(NAMESPACE, name, &[attachment], &json!({})));
    }
    let pods = [("a", &nodes[0], "first"), ("b", &nodes[1], "second")];
    let pods = pods.map(|(name, node, config)| pod(&lab, node, name, config));
    let daemons = nodes.each_ref().map(|node| node.daemon("resync: 1s"));
    for (name, _) in configs {
        await_configured(&lab, NAMESPACE, name, "configured", 1);
    }
    let own = nodes.each_ref().map(Node::own);

    drop(daemons);
    set_ready(&lab, &nodes, "Unknown");
    lab.delete(KIND, NAMESPACE, &["first", "second"]);
    assert!(pools(&lab).is_empty(), "no pool waits for a lost node: {:#?}", pools(&lab));
    // The report of the second node is lost, and only its links are left.
    lab.delete("configmaps", SYSTEM, &[&report_name(&nodes[1].name)]);
    drop(first);
    let _leader = leader(&lab);
    let daemons = nodes.each_ref().map(|node| node.spawn_through(&[], "resync: 1s"));
    for (daemon, pod) in daemons.iter().zip(&pods) {
        let text =
            format!("until the leader (podConfig) decides about them: hdata{} with 10.7", pod.process());
        wait_until(PATIENCE, || match daemon.page("/readyz/podConfigNode") {
            (503, why) if why.contains(&text) => Ok(()),
            other => Err(format!("{text}, is {other:?}")),
        });
    }
    assert_eq!(nodes.each_ref().map(Node::own), own, "no pool releases them");

    set_ready(&lab, &nodes, "True");
    for (node, (daemon, pod)) in nodes.iter().zip(daemons.iter().zip(&pods)) {
        node.await_nothing();
        assert!(pod.links().is_empty(), "it runs, without links");
        daemon.await_ready();
        let told = format!("LinksLeft: links of deleted PodConfigs of namespace {NAMESPACE}");
        lab.await_event("default", &node.name, &told);
    }
    wait_until(PATIENCE, || {
        let left = records(&lab);
        let is_empty = |record: &serde_json::Value| {
            record["data"].as_object().is_some_and(|data| data.keys().eq(["node"]))
        };
        (left.len() == 2 && left.iter().all(is_empty)).then_some(()).ok_or_else(|| format!("{left:#?}"))
    });
    own_network(&lab, &nodes[0]);
}

/// A range that equals the pod's own network is named in the status, and no link is created.
fn own_network(lab: &Lab, node: &Node) {
    lab.apply(&pod_config::pod_config(NAMESPACE, "own", &["data labbr0 10.88.0.0/24"], &json!({})));
    let inside = Pod::new();
    for command in ["link add eth0 type bridge", "addr add 10.88.3.9/16 dev eth0", "link set eth0 up"] {
        inside.namespace.ip(command);
    }
    lab.apply(&pod_config::pod(NAMESPACE, "c", "own", &node.name));
    let object = lab.get("pods", NAMESPACE, "c").expect("the pod");
    node.runtime.set_container(object["metadata"]["uid"].as_str().expect("a uid"), Some(inside.process()));
    let message = "attachment data of pod c: the pod already uses 10.88.0.0/24 through the address \
                   10.88.3.9/16 on its link eth0: choose another range";
    wait_until(PATIENCE, || {
        let object = lab.get(KIND, NAMESPACE, "own").unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_so = conditions.iter().any(|condition| {
            condition["type"] == "Reconciled"
                && condition["reason"] == "NetworkOverlap"
                && condition["message"] == message
        });
        is_so.then_some(()).ok_or_else(|| format!("{message}, is {}", object["status"]))
    });
    assert_eq!(inside.links(), ["eth0"]);
}
