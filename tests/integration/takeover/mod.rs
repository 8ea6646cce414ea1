//! Instances that a Go operator has created, and that the daemon takes over.

pub mod check;
mod explained;
pub mod newest;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The kinds of the objects that the newest Go operator creates, without Secrets ([`newest::make`]).
const KINDS: &str = "services,ingresses,httproutes,persistentvolumeclaims,deployments,\
                     virtualmachines.kubevirt.io,datavolumes.cdi.kubevirt.io";

/// The uids of the objects in a namespace, by `Kind/name`.
fn uids(lab: &Lab, namespace: &str) -> BTreeMap<String, Value> {
    let of_instances = |object: &Value| object["metadata"]["ownerReferences"][0]["kind"] == "Instance";
    let objects = lab.list(KINDS, namespace).into_iter().filter(of_instances);
    objects
        .map(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
            (name, object["metadata"]["uid"].clone())
        })
        .collect()
}

#[test]
fn objects_of_the_newest_go_operator_are_taken_over_under_their_names() {
    let lab = Lab::shared();
    let _course = lab.course("newest");
    let namespace = "tenant-newest";
    lab.apply(&newest::pair("newest"));
    for made in newest::make(&lab, "newest", "lab", "pair", "crownlabs.example.com") {
        made.create_route();
    }
    let status = r#"{"status": {"phase": "Ready", "environments": [
        {"name": "web", "phase": "Ready", "initialReadyTime": "45s"},
        {"name": "machine", "phase": "Ready", "initialReadyTime": "1m30s"}]}}"#;
    lab.patch_status("instances", namespace, "lab", status);
    let before = uids(&lab, namespace);
    assert_eq!(before.len(), 10, "{before:?}");

    let admin = lab.admin();
    let config = "controllers: {instance: {gatewayApi: {enabled: true, parentRefs: [{name: labs, namespace: gateways}]}}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "newest", config });
    let status = wait_until(PATIENCE, || {
        let status = lab.get("instances", namespace, "lab").ok_or("the Instance")?["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let is_done = |condition: &Value| condition["type"] == "Reconciled" && condition["status"] == "True";
        conditions.iter().any(is_done).then(|| status.clone()).ok_or_else(|| status.to_string())
    });
    let times: Vec<_> =
        (0..2).map(|index| status["environments"][index]["initialReadyTime"].clone()).collect();
    assert_eq!(times, ["45s", "1m30s"]);
    assert_eq!(status["initialReadyTime"], "45s");
    assert!(status["ip"].is_null() && status["environments"][0]["ip"].is_null(), "headless: {status}");
    assert_eq!(uids(&lab, namespace), before);
    // They belong to the daemon now: a stop removes the objects that make the environments reachable.
    lab.patch("instances", namespace, "lab", r#"{"spec": {"running": false}}"#);
    for kind in ["services", "ingresses", "httproutes"] {
        for name in ["lab-web", "lab-machine"] {
            lab.await_gone(kind, namespace, name);
        }
    }
}

#[test]
fn the_initial_ready_time_of_the_older_go_operator_is_kept() {
    let lab = Lab::shared();
    let _course = lab.course("older");
    lab.apply(&instance("older", "box", "container"));
    let status = r#"{"status": {"phase": "Ready", "ip": "10.0.0.9", "initialReadyTime": "45s"}}"#;
    lab.patch_status("instances", "tenant-older", "box", status);
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "older", config: "" });
    lab.await_value("instances", "tenant-older", "box", "/status/environments/0/phase", "Ready");
    let status = lab.await_phase("tenant-older", "box", "Ready")["status"].clone();
    assert_eq!(status["initialReadyTime"], "45s");
    assert_eq!(status["environments"][0]["initialReadyTime"], "45s");
}
