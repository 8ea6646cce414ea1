//! Nodes where the daemon cannot work from the start: an administrator sees the reason, and when it is fixed.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;

use super::node::{Node, Pod};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::pod_config::{self, KIND, await_configured};
use cluster::Options as ClusterOptions;

const NAMESPACE: &str = "podnet-unable";

/// The daemon of a node whose network namespace is at this path.
fn start(node: &Node, place: &Path, more: &str) -> Daemon {
    let socket = node.runtime.socket().display();
    let place = place.display();
    let config = node.config_with(&format!("nodeNamespace: {place}, runtimeEndpoint: {socket}, {more}"));
    Daemon::spawn(&Options { kubeconfig: &node.lab.admin(), selector: &node.name, config: &config })
}

/// Waits until a condition of the `PodConfig` has all texts of the first list in its message, and none of the second.
/// Returns its reason.
fn await_condition(lab: &Lab, type_: &str, texts: &[&str], not: &[&str]) -> String {
    wait_until(PATIENCE, || {
        let object = lab.get(KIND, NAMESPACE, "net").unwrap_or_default();
        let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let found = conditions.find(|condition| condition["type"] == type_).cloned().unwrap_or_default();
        let message = found["message"].as_str().unwrap_or_default();
        let is_so = !message.is_empty()
            && texts.iter().all(|text| message.contains(text))
            && !not.iter().any(|text| message.contains(text));
        let reason = found["reason"].as_str().unwrap_or_default().to_owned();
        is_so.then_some(reason).ok_or_else(|| format!("{type_} with {texts:?}, is {found}"))
    })
}

/// Waits until the daemon is not ready, for a reason with this text.
fn await_unready(daemon: &Daemon, text: &str) {
    wait_until(PATIENCE, || match daemon.page("/readyz/podConfigNode") {
        (503, why) if why.contains(text) => Ok(()),
        other => Err(format!("{text}, is {other:?}")),
    });
}

#[test]
fn a_node_that_cannot_work_from_the_start_reports_the_reason() {
    let options = ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() };
    let lab = Arc::new(Lab::start(options));
    let (blind, deaf) = (Node::of_leader(&lab, "podnet-blind"), Node::of_leader(&lab, "podnet-deaf"));
    let kubeconfig = lab.service_account();
    let leader = Options { kubeconfig: &kubeconfig, selector: "podconfig", config: &pod_config::config() };
    let _leader = Daemon::start(&leader);
    lab.apply(&pod_config::namespace(NAMESPACE));
    lab.apply(&pod_config::pod_config(NAMESPACE, "net", &["data labbr0 10.77.0.0/24"], &json!({})));
    let mut pods = Vec::new();
    for (name, node) in [("on-blind", &blind), ("on-deaf", &deaf)] {
        lab.apply(&pod_config::pod(NAMESPACE, name, "net", &node.name));
        let object = lab.get("pods", NAMESPACE, name).expect("the pod");
        let pod = Pod::new();
        node.runtime.set_container(object["metadata"]["uid"].as_str().expect("a uid"), Some(pod.process()));
        pods.push(pod);
    }

    let dir = TempDir::new().expect("a folder");
    let place = dir.path().join("network");
    let of_blind = start(&blind, &place, "resync: 1s");
    deaf.runtime.set_hanging(true);
    let of_deaf = start(&deaf, &deaf.namespace.path(), "resync: 1s");
    let unreadable = format!("the network namespace of the node, {}, cannot be used", place.display());
    let unanswered = format!("{} did not answer", deaf.runtime.socket().display());
    let why = [format!("node podnet-blind: {unreadable}"), format!("node podnet-deaf: {unanswered}")];
    let why = why.each_ref().map(String::as_str);
    await_condition(&lab, "Reconciled", &why, &[]);
    let described = lab.kubectl(&["describe", "podconfig", "-n", NAMESPACE, "net"]);
    assert!(why.iter().all(|text| described.contains(text)), "{described}");
    await_unready(&of_blind, &unreadable);
    await_unready(&of_deaf, &unanswered);

    symlink(blind.namespace.path(), &place).expect("a link");
    deaf.runtime.set_hanging(false);
    await_configured(&lab, NAMESPACE, "net", "configured", 2);
    await_condition(&lab, "Reconciled", &[], &["node podnet"]);

    // The next process cannot work either: the reported links stay valid, and the status waits for their end, with
    // the reason.
    drop(of_blind);
    std::fs::remove_file(&place).expect("removed");
    let of_blind = start(&blind, &place, "resync: 1s");
    let reason = await_condition(&lab, "Reconciled", &why[..1], &[]);
    assert_eq!(reason, "LinkFailed");
    await_configured(&lab, NAMESPACE, "net", "configured", 2);
    lab.begin_delete(KIND, NAMESPACE, &["net"]);
    let left = "links are still to be removed on podnet-blind";
    await_condition(&lab, "DeletionBlocked", &[left, why[0]], &["podnet-deaf"]);
    symlink(blind.namespace.path(), &place).expect("a link");
    lab.await_gone(KIND, NAMESPACE, "net");
    for node in [&blind, &deaf] {
        node.await_nothing();
    }
    drop((of_blind, of_deaf, pods));
}

#[test]
fn an_unknown_node_name_is_reported_until_the_node_exists() {
    let name = "podnet-misnamed";
    let node = Node::new(name);
    node.lab.delete("nodes", "", &[name]);
    let daemon = start(&node, &node.namespace.path(), "resync: 1s");
    let why = format!(
        "Node {name} does not exist: set controllers.podConfigNode.nodeName to the name of this node; retrying"
    );
    await_unready(&daemon, &why);
    node.lab.apply(&format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"));
    wait_until(PATIENCE, || match daemon.page("/readyz/podConfigNode") {
        (200, _) => Ok(()),
        other => Err(format!("ready, is {other:?}")),
    });
}
