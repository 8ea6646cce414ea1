//! Causes that only events show appear in the status once an Instance has waited, and the events of a namespace are
//! listed rarely.

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};

use super::condition;
use crate::course::Course;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::audit::AuditEntry;

/// An event about an object.
fn event(object: &Value, kind: &str, type_: &str, reason: &str, message: &str) -> String {
    let metadata = &object["metadata"];
    let name = format!("{}.{reason}", metadata["name"].as_str().expect("a name")).to_lowercase();
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": metadata["namespace"]},
        "involvedObject": {"kind": kind, "apiVersion": "v1", "name": metadata["name"],
            "namespace": metadata["namespace"], "uid": metadata["uid"]},
        "type": type_, "reason": reason, "message": message, "count": 1,
        "source": {"component": "test"}, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    })
    .to_string()
}

/// The pod of an Instance, once it exists.
fn await_pod(lab: &Lab, namespace: &str, instance: &str) -> Value {
    wait_until(PATIENCE, || {
        let is_it = |pod: &Value| pod["metadata"]["labels"]["crownlabs.polito.it/instance"] == instance;
        lab.list("pods", namespace).into_iter().find(is_it).ok_or_else(|| format!("the pod of {instance}"))
    })
}

/// Writes the status of a pod.
fn set_status(lab: &Lab, pod: &Value, status: &Value) {
    let text = |key: &str| pod["metadata"][key].as_str().expect("a pod").to_owned();
    lab.patch_status("pods", &text("namespace"), &text("name"), &json!({"status": status}).to_string());
}

/// Waits until `Ready` of an Instance has this reason. Returns the Instance.
fn await_ready(lab: &Lab, namespace: &str, name: &str, reason: &str) -> Value {
    wait_until(PATIENCE, || {
        let instance = lab.get("instances", namespace, name).ok_or("it")?;
        let ready = condition(&instance, "Ready").unwrap_or_default();
        if ready["reason"] == reason { Ok(instance) } else { Err(format!("{name}: {reason}: {ready}")) }
    })
}

/// Creates courses that one daemon is responsible for.
fn create_courses(lab: &Arc<Lab>, selector: &str, names: &[&str]) -> Vec<Course> {
    let label = format!("crownlabs.polito.it/operator-selector={selector}");
    let create = |name: &&str| {
        let course = lab.course(name);
        for namespace in [format!("tenant-{name}"), format!("workspace-{name}")] {
            lab.kubectl(&["label", "--overwrite", "namespace", &namespace, &label]);
        }
        course
    };
    names.iter().map(create).collect()
}

/// The conditions `Ready` of the Instances in a namespace that wait for a volume.
fn told(lab: &Lab, namespace: &str) -> Vec<Value> {
    let instances = lab.list("instances", namespace);
    let ready = instances.iter().filter_map(|instance| condition(instance, "Ready"));
    ready.filter(|ready| ready["reason"] == "VolumeNotMounted").collect()
}

#[test]
fn a_volume_that_cannot_be_mounted_is_reported_with_the_message_of_its_event() {
    let lab = Lab::shared_unsimulated();
    let (name, namespace, other) = ("told", "tenant-told", "tenant-toldready");
    let _courses = create_courses(&lab, name, &[name, "toldready"]);
    let mark = lab.cluster.audit().mark().expect("the audit log");
    let (kubeconfig, config) = (lab.service_account(), "controllers: {instance: {stalledAfter: 10s}}\n");
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config });
    lab.apply(&[instance(name, "stuck", "standalone"), instance(name, "other", "standalone")].concat());
    let words = "MountVolume.SetUp failed for volume \"mydrive\": mount.nfs: Connection timed out";
    for name in ["stuck", "other"] {
        let pod = await_pod(&lab, namespace, name);
        // Because it has a node, it is not waiting for the scheduler.
        let scheduled =
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]});
        set_status(&lab, &pod, &scheduled);
        lab.apply(&event(&pod, "Pod", "Warning", "FailedMount", words));
    }
    // Another Instance becomes ready before it has waited.
    lab.apply(&instance("toldready", "fine", "standalone"));
    let runs = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    set_status(&lab, &await_pod(&lab, other, "fine"), &runs);
    lab.await_phase(other, "fine", "Ready");

    let before = wait_until(PATIENCE, || {
        let told = told(&lab, namespace);
        if told.is_empty() { Err("the message of the event".to_owned()) } else { Ok(told) }
    });
    let message = before[0]["message"].as_str().expect("a message");
    assert!(
        message.starts_with("Pod ") && message.ends_with(&format!(": FailedMount: {words}")),
        "{message}"
    );
    let entries = lab.cluster.audit().since(mark).expect("the audit log");
    let of_events = |entry: &&AuditEntry| {
        let is_ours = [namespace, other].contains(&&*entry.namespace);
        is_ours
            && entry.user_agent.starts_with("crownlabs/")
            && entry.resource == "events"
            && !entry.is_write()
    };
    let read = entries.iter().filter(of_events).map(|entry| (&*entry.verb, &*entry.request_uri));
    let uri = format!("/api/v1/namespaces/{namespace}/events?limit=500");
    let read: Vec<_> = read.collect();
    assert_eq!(read, [("list", &*uri)], "one list, although two Instances wait, and none of the other");

    // A restarted daemon keeps its earlier message.
    drop(daemon);
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config });
    daemon.wait_for("its first reconciles", |daemon| daemon.reconciles("instance") >= 3);
    let after = told(&lab, namespace);
    assert!(before.iter().all(|told| after.contains(told)), "{before:?} {after:?}");
}

#[test]
fn an_autoscaler_that_adds_a_node_is_waited_for_and_one_that_cannot_is_the_cause() {
    let lab = Lab::shared_unsimulated();
    let (name, admin) = ("scaled", lab.admin());
    let scaled = [
        (
            "scaledup",
            "TriggeredScaleUp",
            "pod triggered scale-up: [{labs 0->1 (max: 4)}]",
            "WaitingForNode",
            "",
        ),
        (
            "scalednot",
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up: 1 max node group size reached",
            "PodUnschedulable",
            "False",
        ),
    ];
    let _courses = create_courses(&lab, name, &scaled.map(|(fixtures, ..)| fixtures));
    let config = "controllers: {instance: {stalledAfter: 10s}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: name, config });
    for (fixtures, word, message, ..) in scaled {
        lab.apply(&instance(fixtures, "lab", "standalone"));
        let namespace = format!("tenant-{fixtures}");
        let pod = await_pod(&lab, &namespace, "lab");
        set_status(&lab, &pod, &super::pods::unscheduled("Unschedulable", "0/1 nodes are available"));
        lab.apply(&event(&pod, "Pod", "Normal", word, message));
    }
    for (fixtures, word, message, reason, stalled) in scaled {
        let namespace = format!("tenant-{fixtures}");
        let instance = wait_until(PATIENCE, || {
            let instance = await_ready(&lab, &namespace, "lab", reason);
            let ready = condition(&instance, "Ready").unwrap_or_default();
            let says =
                ready["message"].as_str().is_some_and(|said| said.contains(&format!("{word}: {message}")));
            if says { Ok(instance) } else { Err(format!("{message}: {ready}")) }
        });
        let found = condition(&instance, "Stalled").map(|stalled| stalled["status"].clone());
        if stalled.is_empty() {
            assert_eq!((found, &instance["status"]["phase"]), (None, &json!("Starting")), "it is no problem");
        } else {
            assert!(found.is_some(), "{instance}");
        }
        let why = Command::new(env!("CARGO_BIN_EXE_crownlabs"))
            .args(["why", &format!("{namespace}/lab")])
            .env("KUBECONFIG", &admin)
            .output();
        let why = String::from_utf8(why.expect("it starts").stdout).expect("text");
        assert!(why.contains(message), "{why}");
    }
}
