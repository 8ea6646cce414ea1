#![allow(clippy::needless_pass_by_value, reason = "JSON literals read better as they are")]

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::api::condition::{ConditionType, STALLED};
use crate::api::instance::InstanceStatus;
use crate::controllers::instance::plan::tests::{edit, environment, observed, owned, reconciled, validated};
use crate::kinds::Pod;
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::Report;

/// A container, its pod and the events about it.
struct Container {
    deployment: Value,
    pod: Option<Value>,
    events: Events,
    before: InstanceStatus,
}

/// The result of a reconcile.
struct Reconciled {
    status: InstanceStatus,
    phase: String,
    reason: String,
    message: String,
    stalled: Option<String>,
    asks: Option<About>,
    requeue: Requeue,
}

impl Container {
    fn new(pod: Value) -> Self {
        Self {
            deployment: json!({}),
            pod: Some(pod),
            events: Events::Unknown,
            before: InstanceStatus::default(),
        }
    }

    /// A reconcile at this second.
    fn reconciled(&self, second: i64) -> Reconciled {
        let mut observed = observed(json!([environment("main", "Container", json!({}))]));
        observed.instance = edit(&observed.instance, &json!({"status": self.before}));
        let deployment = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
        let deployment = edit(&deployment, &json!({"status": self.deployment}));
        observed.children.set::<DeploymentKind>(vec![deployment]);
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "my-lab-6d4b", "uid": "r", "controller": true});
        let metadata = json!({"name": "my-lab-6d4b-x2", "uid": "p", "ownerReferences": [owner]});
        let pod = self.pod.as_ref().map(|status| json!({"metadata": metadata, "status": status}));
        let pod = pod.map(|pod| Arc::new(serde_json::from_value::<Pod>(pod).expect("lenient")));
        observed.pods = pod.into_iter().collect();
        observed.events = self.events.clone();
        let config = InstanceConfig::classic();
        let now = Timestamp::from_second(second).expect("a time");
        let (Report { status, .. }, plan) = reconciled(&observed, &config, now);
        let find = |type_: ConditionType| status.conditions.iter().find(|condition| condition.type_ == type_);
        let ready = find(READY).expect("Ready");
        Reconciled {
            phase: status.phase.to_string(),
            reason: ready.reason.to_string(),
            message: ready.message.to_string(),
            stalled: find(STALLED).map(|stalled| stalled.status.to_string()),
            asks: plan.awaited,
            requeue: plan.requeue,
            status,
        }
    }

    /// Runs the first reconcile; the later ones see its status.
    fn begun(mut self) -> Self {
        self.before = self.reconciled(0).status;
        self
    }
}

fn told(object: &str, word: &str) -> Events {
    let (kind, name) = object.split_once(' ').expect("a kind and a name");
    let (uid, message) = (format!("uid of {name}"), format!("in the words of {word}"));
    Events::Read(vec![Told {
        word: word.into(),
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
        message: message.into(),
    }])
}

fn creating() -> Value {
    json!({"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]})
}

fn unschedulable() -> Value {
    json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}]})
}

#[test]
fn events_are_read_once_an_instance_has_waited_for_long() {
    let first = Container::new(creating()).reconciled(0);
    assert!(first.asks.is_none());
    assert_eq!(first.requeue, Requeue::After(Duration::from_mins(2)));
    let container = Container::new(creating()).begun();
    let early = container.reconciled(90);
    assert!(early.asks.is_none(), "it may still start");
    assert_eq!(early.requeue, Requeue::After(Duration::from_secs(30)));
    let late = container.reconciled(120);
    let about = late.asks.as_ref().expect("a question");
    assert_eq!(about.namespace, "tenant-ada");
    let uids: Vec<&str> = about.uids.iter().map(|uid| &**uid).collect();
    assert_eq!(uids, ["Deployment-my-lab", "p", "r"]);
    assert_eq!(late.requeue, Requeue::Resync, "the next list adds it to the queue");
    assert_eq!(late.status, container.before, "nothing is known yet, so nothing is written");
}

#[test]
fn no_event_is_read_of_an_instance_with_a_cause_or_without_a_wait() {
    let image = json!({"phase": "Pending", "containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]});
    assert!(Container::new(image).begun().reconciled(500).asks.is_none());
    let mut ready = Container::new(creating()).begun();
    ready.deployment = json!({"readyReplicas": 1});
    assert!(ready.reconciled(500).asks.is_none());
}

#[test]
fn no_event_is_read_of_a_bound_claim_or_a_filled_disk() {
    let asked = |claim: &str, disk: &str| {
        let config = InstanceConfig::classic();
        let machine = json!([environment("main", "VirtualMachine", json!({"persistent": true}))]);
        let mut observed = validated(&observed(machine), &config);
        let phase = |phase: &str| json!({"status": {"phase": phase}});
        let disk = edit(&owned::<DataVolumeKind>("my-lab", json!({})), &phase(disk));
        let claim = edit(&owned::<PersistentVolumeClaimKind>("my-lab", json!({})), &phase(claim));
        observed.children.set::<VirtualMachineKind>(vec![owned::<VirtualMachineKind>("my-lab", json!({}))]);
        observed.children.set::<DataVolumeKind>(vec![disk]);
        observed.children.set::<PersistentVolumeClaimKind>(vec![claim]);
        let About { uids, claims, .. } = about(&observed, &EnvironmentContext::all(&observed, &config));
        (uids.into_iter().collect::<Vec<_>>().join(" "), claims.len())
    };
    let waiting = "DataVolume-my-lab PersistentVolumeClaim-my-lab VirtualMachine-my-lab";
    assert_eq!(asked("Pending", "ImportScheduled"), (waiting.to_owned(), 1));
    assert_eq!(asked("Bound", "Succeeded"), ("VirtualMachine-my-lab".to_owned(), 0));
}

#[test]
fn an_event_is_the_cause_of_a_container_that_does_not_start() {
    let mut container = Container::new(creating()).begun();
    container.events = told("Pod my-lab-6d4b-x2", "FailedMount");
    let said = container.reconciled(130);
    assert_eq!((&*said.phase, &*said.reason), ("Starting", "VolumeNotMounted"));
    assert_eq!(said.message, "Pod my-lab-6d4b-x2: FailedMount: in the words of FailedMount");
    assert_eq!(said.stalled.as_deref(), Some("False"));
    container.before = said.status;
    let lasting = container.reconciled(250);
    assert_eq!((&*lasting.phase, lasting.stalled.as_deref()), ("Failed", Some("True")));
    // The volume was mounted, and the pod continues.
    container.before = lasting.status;
    container.events = Events::Read(vec![]);
    let gone = container.reconciled(300);
    assert_eq!((&*gone.phase, &*gone.reason, gone.stalled), ("Starting", "Starting", None));
}

#[test]
fn a_process_that_has_not_read_the_events_keeps_the_stored_cause() {
    for word in ["FailedMount", "Unheard", "ProvisioningFailed"] {
        let mut container = Container::new(creating()).begun();
        container.events = told("Pod my-lab-6d4b-x2", word);
        container.before = container.reconciled(130).status;
        container.events = Events::Unknown;
        let restarted = container.reconciled(140);
        assert_eq!(restarted.status, container.before, "{word}: nothing is written");
        assert!(restarted.asks.is_some(), "{word}");
    }
    // The scheduler's message no longer counts once the pod has a node.
    let mut container = Container::new(unschedulable()).begun();
    container.pod = Some(creating());
    assert_eq!(container.reconciled(10).reason, "Starting");
}

#[test]
fn an_autoscaler_that_adds_a_node_is_no_problem_and_one_that_does_not_is_the_cause() {
    let mut container = Container::new(unschedulable()).begun();
    assert!(container.reconciled(120).asks.is_some());
    container.events = told("Pod my-lab-6d4b-x2", "TriggeredScaleUp");
    let said = container.reconciled(121);
    assert_eq!((&*said.phase, &*said.reason, said.stalled), ("Starting", "WaitingForNode", None));
    container.before = said.status;
    let later = container.reconciled(900);
    assert_eq!((&*later.phase, later.stalled), ("Starting", None), "however long it takes");
    container.events = told("Pod my-lab-6d4b-x2", "NotTriggerScaleUp");
    let said = container.reconciled(901);
    assert_eq!((&*said.reason, said.stalled.as_deref()), ("PodUnschedulable", Some("False")));
    let words = "Pod my-lab-6d4b-x2: NotTriggerScaleUp: in the words of NotTriggerScaleUp; \
                 Pod my-lab-6d4b-x2: Unschedulable: 0/1 nodes are available";
    assert_eq!(said.message, words);
    // Another warning does not hide the scheduler's message. A problem of a claim comes before it.
    container.events = told("Deployment my-lab", "Unheard");
    assert_eq!(
        container.reconciled(902).message,
        "Pod my-lab-6d4b-x2: Unschedulable: 0/1 nodes are available"
    );
    container.events = told("PersistentVolumeClaim my-lab", "ProvisioningFailed");
    assert_eq!(container.reconciled(903).reason, "VolumeUnbound");
}

#[test]
fn an_unschedulable_pod_has_failed_only_after_its_events_are_read_or_do_not_arrive() {
    let mut container = Container::new(unschedulable()).begun();
    let due = container.reconciled(120);
    assert_eq!((&*due.phase, due.stalled.as_deref()), ("Starting", Some("False")));
    let about = due.asks.expect("a question");
    assert!(!about.is_unexplained, "a list without an event is news");
    assert_eq!(due.requeue, Requeue::After(LONGEST_WAIT));
    container.events = Events::Read(vec![]);
    assert_eq!(container.reconciled(121).phase, "Failed");
    container.events = Events::Unknown;
    assert_eq!(container.reconciled(254).phase, "Starting");
    assert_eq!(container.reconciled(255).phase, "Failed");
}

#[test]
fn an_autoscaler_may_add_the_node_of_a_persistent_machine() {
    let config = InstanceConfig::classic();
    let environment = environment("main", "VirtualMachine", json!({"persistent": true}));
    let mut observed = validated(&observed(json!([environment])), &config);
    let waits =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}]);
    let machine = owned::<VirtualMachineKind>("my-lab", json!({}));
    let machine =
        edit(&machine, &json!({"status": {"printableStatus": "ErrorUnschedulable", "conditions": waits}}));
    let running = owned::<VirtualMachineInstanceKind>("my-lab", json!({}));
    let running = edit(&running, &json!({"status": {"phase": "Scheduling", "conditions": waits}}));
    observed.children.set::<VirtualMachineKind>(vec![machine]);
    observed.children.set::<VirtualMachineInstanceKind>(vec![running]);
    let reason = |observed: &Observed| {
        let contexts = EnvironmentContext::all(observed, &config);
        let (_, cause) = phase::of_workload(&contexts[0]).expect("a workload");
        cause.expect("a cause").row.reason.to_string()
    };
    assert_eq!(reason(&observed), "PodUnschedulable");
    observed.events = told("Pod virt-launcher-my-lab-x2", "TriggeredScaleUp");
    assert_eq!(reason(&observed), "WaitingForNode");
}

#[test]
fn an_event_about_one_environment_explains_no_other_one() {
    let environments = ["one", "two"].map(|name| environment(name, "Container", json!({})));
    let config = InstanceConfig::classic();
    let mut observed = validated(&observed(json!(environments)), &config);
    let pod = |name: &str| {
        let replica_set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{name}-6d4b"),
            "uid": format!("r-{name}"), "controller": true});
        let metadata =
            json!({"name": format!("{name}-6d4b-x2"), "uid": name, "ownerReferences": [replica_set]});
        Arc::new(
            serde_json::from_value::<Pod>(json!({"metadata": metadata, "status": creating()}))
                .expect("lenient"),
        )
    };
    let names: Vec<String> =
        EnvironmentContext::all(&observed, &config).iter().map(|context| context.name.to_string()).collect();
    observed.pods = names.iter().map(|name| pod(name)).collect();
    let deployments = names.iter().map(|name| owned::<DeploymentKind>(name, json!({"replicas": 1})));
    observed.children.set::<DeploymentKind>(deployments);
    let about = |name: &str, word: &str| Told {
        word: word.into(),
        kind: "Pod".into(),
        name: format!("{name}-6d4b-x2").into(),
        uid: name.into(),
        message: "why".into(),
    };
    // The newest event is about the second environment.
    observed.events = Events::Read(vec![about(&names[1], "Pulling"), about(&names[0], "FailedMount")]);
    let contexts = EnvironmentContext::all(&observed, &config);
    let reasons = contexts.iter().map(|context| {
        let (_, cause) = phase::of_workload(context).expect("a workload");
        cause.expect("a cause").row.reason.to_string()
    });
    assert_eq!(reasons.collect::<Vec<_>>(), ["VolumeNotMounted", "ImagePulling"]);
}

#[test]
fn a_deadline_is_the_cause_only_after_a_container_has_started() {
    let late = json!({"conditions": [{"type": "Progressing", "status": "False",
        "reason": "ProgressDeadlineExceeded", "message": "has timed out progressing"}]});
    let of = |pod: Value, events: Events| {
        let mut container = Container::new(pod).begun();
        (container.deployment, container.events) = (late.clone(), events);
        let said = container.reconciled(700);
        (said.phase, said.reason, said.asks.is_some())
    };
    let wanted = |phase: &str, reason: &str, asks| (phase.to_owned(), reason.to_owned(), asks);
    let running = json!({"phase": "Running"});
    assert_eq!(of(running, Events::Unknown), wanted("Failed", "ProgressDeadlineExceeded", false));
    assert_eq!(of(creating(), Events::Unknown), wanted("Starting", "PodNotStarted", true));
    assert_eq!(of(creating(), Events::Read(vec![])), wanted("Starting", "PodNotStarted", true));
    let mount = told("Pod my-lab-6d4b-x2", "FailedAttachVolume");
    assert_eq!(of(creating(), mount), wanted("Starting", "VolumeNotMounted", true));
}
