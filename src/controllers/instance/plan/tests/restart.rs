//! Restarts on request.

use std::time::Duration;

use super::*;
use crate::api::labels::RESTARTED_AT;
use crate::fixtures::time;
use crate::kinds::{VirtualMachineInstanceKind, VirtualMachineKind};
use crate::runtime::plan::Requeue;

const OLD: &str = "2026-11-20T09:00:00Z";
const REQUESTED: &str = "2026-11-20T10:00:00Z";
const NEW: &str = "2026-11-20T10:00:05Z";

fn now() -> Timestamp {
    time("2026-11-20T11:00:00Z")
}

/// An Instance with one environment of this type, whose annotation has this text.
fn with(kind: &str, more: Value, text: &str) -> Observed {
    let mut observed = observed(json!([environment("main", kind, more)]));
    let annotation = json!({"metadata": {"annotations": {RESTARTED_AT: text}}});
    observed.instance = edit(&observed.instance, &annotation);
    observed
}

/// The pod template of the Deployment, the removed objects, and the time of the next reconcile.
fn restarts(observed: &Observed) -> (Value, Vec<&'static str>, Requeue) {
    let plan = plan(observed, &InstanceConfig::classic(), now());
    let of_deployment = plan.patches.iter().find(|patch| patch.kind.kind == "Deployment");
    let template = of_deployment.map_or(Value::Null, |patch| patch.patch["spec"]["template"].clone());
    (template, plan.remove.iter().map(|removal| removal.kind.kind).collect(), plan.requeue)
}

fn created<T: Kind>(object: &Object<T>, time: &str) -> Arc<Object<T>> {
    edit(object, &json!({"metadata": {"creationTimestamp": time}}))
}

fn container(text: &str, made: &str, restarted: Option<&str>) -> Observed {
    let mut observed = with("Container", json!({"persistent": true}), text);
    let annotations = json!({RESTARTED_AT: restarted});
    let spec = json!({"replicas": 1, "template": {"metadata": {"annotations": annotations}}});
    observed.children.set::<DeploymentKind>(Some(created(&owned("my-lab", spec), made)));
    observed
}

#[test]
fn a_deployment_that_is_older_than_the_request_restarts_once() {
    let restart = json!({"metadata": {"annotations": {RESTARTED_AT: REQUESTED}}});
    for (text, made, restarted, wanted) in [
        (REQUESTED, OLD, None, restart.clone()),
        (REQUESTED, OLD, Some(OLD), restart.clone()),
        ("2026-11-20T11:00:00+01:00", OLD, None, restart),
        (REQUESTED, OLD, Some(REQUESTED), Value::Null),
        (REQUESTED, NEW, None, Value::Null),
        ("2026-11-20T10:00:05.9Z", NEW, None, Value::Null),
        ("yesterday", OLD, None, Value::Null),
        ("", OLD, None, Value::Null),
    ] {
        let (template, removed, _) = restarts(&container(text, made, restarted));
        assert_eq!((template, removed), (wanted, vec![]), "{text}, {made}, {restarted:?}");
    }
}

#[test]
fn a_stopped_instance_does_not_restart() {
    let mut stopped = container(REQUESTED, OLD, None);
    stopped.instance = edit(&stopped.instance, &json!({"spec": {"running": false}}));
    assert_eq!(restarts(&stopped).0, Value::Null);
}

#[test]
fn a_request_in_the_future_waits() {
    let (template, _, requeue) = restarts(&container("2026-11-20T11:00:20Z", OLD, None));
    assert_eq!((template, requeue), (Value::Null, Requeue::After(Duration::from_secs(20))));
}

#[test]
fn a_virtual_machine_instance_that_is_older_than_the_request_is_deleted() {
    let owner = |kind: &str, uid: &str| json!([{"apiVersion": "a/v1", "kind": kind, "name": "a", "uid": uid, "controller": true}]);
    let own = owner("Instance", "u1");
    let of_machine = owner("VirtualMachine", "VirtualMachine-my-lab");
    let being_deleted = json!({"deletionTimestamp": NEW});
    for (persistent, owners, made, more, is_removed) in [
        (false, own.clone(), OLD, json!({}), true),
        (false, own.clone(), NEW, json!({}), false),
        (false, own, OLD, being_deleted, false),
        (true, of_machine.clone(), OLD, json!({}), true),
        (true, of_machine, NEW, json!({}), false),
        (true, owner("VirtualMachine", "another"), OLD, json!({}), false),
        (false, owner("VirtualMachine", "another"), OLD, json!({}), false),
    ] {
        let mut observed = with("VirtualMachine", json!({"persistent": persistent}), REQUESTED);
        let machine = owned::<VirtualMachineInstanceKind>("my-lab", json!({}));
        let machine = edit(&machine, &json!({"metadata": {"ownerReferences": owners}}));
        let machine = created(&edit(&machine, &json!({"metadata": more})), made);
        observed.children.set::<VirtualMachineInstanceKind>(Some(machine));
        if persistent {
            let parent = owned::<VirtualMachineKind>("my-lab", json!({"runStrategy": "Always"}));
            observed.children.set::<VirtualMachineKind>(Some(parent));
        }
        let wanted = if is_removed { vec!["VirtualMachineInstance"] } else { vec![] };
        assert_eq!(restarts(&observed).1, wanted, "{owners}, {made}");
    }
}
