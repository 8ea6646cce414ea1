#![allow(clippy::needless_pass_by_value, reason = "JSON literals read better as they are")]

use serde_json::{Value, json};

use super::*;
use crate::controllers::instance::plan::tests::{
    edit, environment as template_environment, observed, owned, reconciled, validated,
};
use crate::fixtures::time;
use crate::kinds::{
    DataVolumeKind, Deployment, DeploymentKind, ServiceKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::events::EventType;
use crate::runtime::object_events::LONGEST_WAIT;
use crate::runtime::plan::Requeue;

mod addresses;
mod states;
mod steps;

/// The report about an Instance with this status and `ready` ready pods.
fn reported(environments: Value, status: Value, ready: i32) -> Report<InstanceKind> {
    let mut observed = observed(environments);
    observed.instance = edit(&observed.instance, &json!({"status": status}));
    let deployment = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
    let deployment = edit(&deployment, &json!({"status": {"readyReplicas": ready}}));
    observed.children.set::<DeploymentKind>(vec![deployment]);
    observed.children.set::<ServiceKind>(vec![owned::<ServiceKind>("my-lab", json!({"clusterIP": "None"}))]);
    let config = InstanceConfig::classic();
    let now = time("2026-01-01T00:00:00Z");
    reconciled(&observed, &config, now).0
}

fn container(name: &str) -> Value {
    json!([template_environment(name, "Container", json!({}))])
}

#[test]
fn the_initial_ready_time_is_set_once_also_if_a_go_operator_set_it() {
    let times = |status: &InstanceStatus| {
        let first = status.environments.first().map(|first| first.initial_ready_time.clone());
        (status.initial_ready_time.clone(), first.unwrap_or_default())
    };
    let kept = ("45s".into(), "45s".into());
    for (environments, status) in [
        // The older Go operator; the newer one, which writes only the list; this daemon before and after an
        // intermediate run of the older operator; a renamed environment.
        (container("main"), json!({"initialReadyTime": "45s"})),
        (container("main"), json!({"environments": [{"name": "main", "initialReadyTime": "45s"}]})),
        (container("main"), json!({"initialReadyTime": "45s", "environments": [{"name": "main"}]})),
        (
            container("new"),
            json!({"initialReadyTime": "45s", "environments": [{"name": "old", "initialReadyTime": "45s"}]}),
        ),
    ] {
        for ready in [0, 1] {
            let report = reported(environments.clone(), status.clone(), ready);
            assert_eq!(times(&report.status), kept, "{status}, {ready} ready");
            assert!(report.measurements.is_empty(), "it was measured before: {:?}", report.measurements);
        }
    }
    // Otherwise it is set when the environment is ready for the first time.
    assert_eq!(times(&reported(container("main"), json!({}), 0).status), Default::default());
    let first = reported(container("main"), json!({}), 1);
    assert_eq!(times(&first.status), ("0s".into(), "0s".into()));
    assert_eq!(first.measurements.len(), 1);
}

#[test]
fn the_initial_ready_time_does_not_change_when_the_first_environment_is_removed() {
    let status = json!({"initialReadyTime": "45s", "environments": [
        {"name": "gone", "initialReadyTime": "45s"}, {"name": "main"},
    ]});
    let report = reported(container("main"), status, 0);
    assert_eq!(report.status.initial_ready_time, "45s");
    let times: Vec<_> =
        report.status.environments.iter().map(|one| (&*one.name, &*one.initial_ready_time)).collect();
    assert_eq!(times, [("main", ""), ("gone", "45s")]);
}

#[test]
fn a_problem_is_named_rather_than_the_deadline_that_passes_because_of_it() {
    let mut observed = observed(container("main"));
    let late = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "has timed out progressing"});
    let deployment = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
    let deployment = edit(&deployment, &json!({"status": {"conditions": [late]}}));
    observed.children.set::<DeploymentKind>(vec![deployment]);
    let config = InstanceConfig::classic();
    let observed = validated(&observed, &config);
    let context = EnvironmentContext::all(&observed, &config).remove(0);
    let reason = |problems: &[Problem]| phased(&context, problems).1.map(|cause| cause.row.reason);
    assert_eq!(reason(&[]), Some(reason::POD_NOT_STARTED));
    let problem = Problem::elsewhere(context.component(), reason::NO_NODE, "no node accepts it");
    assert_eq!(reason(std::slice::from_ref(&problem)), None);
    let other = Problem { component: Component::environment("another"), ..problem };
    assert_eq!(reason(&[other]), Some(reason::POD_NOT_STARTED));
}

/// The report about an Instance with this workload and these objects of the workload.
fn of_machine(machine: Value, running: Option<Value>, disk: Option<Value>) -> Report<InstanceKind> {
    let mut observed =
        observed(json!([template_environment("main", "VirtualMachine", json!({"persistent": true}))]));
    let with = |status: Value| json!({"status": status});
    let owned_machine = edit(&owned::<VirtualMachineKind>("my-lab", json!({})), &with(machine));
    observed.children.set::<VirtualMachineKind>(vec![owned_machine]);
    let running = running
        .map(|running| edit(&owned::<VirtualMachineInstanceKind>("my-lab", json!({})), &with(running)));
    observed.children.set::<VirtualMachineInstanceKind>(running);
    let disk = disk.map(|disk| edit(&owned::<DataVolumeKind>("my-lab", json!({})), &with(disk)));
    observed.children.set::<DataVolumeKind>(disk);
    let config = InstanceConfig::classic();
    let now = time("2026-01-01T00:00:00Z");
    reconciled(&observed, &config, now).0
}

/// The phase, and reason and message of `Ready`.
fn said(report: &Report<InstanceKind>) -> (String, String, String) {
    let ready = report.status.conditions.iter().find(|condition| condition.type_ == READY).expect("Ready");
    (report.status.phase.to_string(), ready.reason.to_string(), ready.message.to_string())
}

#[test]
fn the_phase_of_a_machine_follows_the_printable_status() {
    for (printed, ready, wanted) in [
        ("Provisioning", false, "Importing"),
        ("WaitingForVolumeBinding", false, "Importing"),
        ("Starting", false, "Starting"),
        ("WaitingForReceiver", false, "Starting"),
        ("Running", false, "Running"),
        ("Running", true, "Ready"),
        ("Migrating", true, "Ready"),
        ("Stopping", false, "Stopping"),
        ("Terminating", false, "Stopping"),
        ("Stopped", false, "Off"),
        ("ErrImagePull", false, "Failed"),
        ("CrashLoopBackOff", false, "Failed"),
        ("Paused", false, "Running"),
        ("Meditating", false, "Running"),
        ("", false, ""),
    ] {
        let report = of_machine(json!({"printableStatus": printed, "ready": ready}), None, None);
        assert_eq!(report.status.phase.to_string(), wanted, "{printed}");
    }
}

#[test]
fn the_objects_of_a_machine_provide_more_detail_than_its_state() {
    let message = "pods \"virt-launcher\" is forbidden: exceeded quota: q";
    let refused = json!({"phase": "Pending", "conditions": [
        {"type": "Synchronized", "status": "False", "reason": "FailedCreate", "message": message}]});
    let (phase, reason, words) =
        said(&of_machine(json!({"printableStatus": "Starting"}), Some(refused), None));
    assert_eq!((&*phase, &*reason), ("ResourceQuotaExceeded", "ResourceQuotaExceeded"));
    assert_eq!(words, format!("VirtualMachineInstance my-lab: {message}"));
    let failed = json!({"phase": "ImportInProgress", "conditions": [
        {"type": "Running", "status": "False", "reason": "Error", "message": "no such host"}]});
    let (phase, reason, words) =
        said(&of_machine(json!({"printableStatus": "DataVolumeError"}), None, Some(failed)));
    assert_eq!(
        (&*phase, &*reason, &*words),
        ("Failed", "ImportFailed", "DataVolume my-lab: Error: no such host")
    );
    let progress = json!({"phase": "ImportInProgress", "progress": "41.5%"});
    let (phase, reason, words) =
        said(&of_machine(json!({"printableStatus": "Provisioning"}), None, Some(progress)));
    assert_eq!((&*phase, &*reason, &*words), ("Importing", "Importing", "DataVolume my-lab: 41.5% imported"));
    // It counts before the machine's status shows it.
    let done = json!({"phase": "Succeeded", "progress": "100.0%"});
    let (phase, ..) = said(&of_machine(json!({"printableStatus": "Provisioning"}), None, Some(done)));
    assert_eq!(phase, "Starting");
}

#[test]
fn a_machine_with_a_disk_starts_again_after_one_that_has_ended() {
    let ended = json!({"phase": "Failed"});
    let (phase, reason, _) = said(&of_machine(json!({"printableStatus": "Starting"}), Some(ended), None));
    assert_eq!((&*phase, &*reason), ("Starting", "Starting"), "the message does not ask for a deletion");
}

#[test]
fn a_service_name_of_another_instance_stalls_its_exposure() {
    let message = "Service my-lab-pe belongs to Instance my-lab";
    let status = |reason: &str| {
        json!({"conditions": [{"type": "PublicExposureReady", "status": "False", "reason": reason,
        "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    };
    let stalled = |reason: &str| {
        let report = reported(container("main"), status(reason), 1);
        let found = report.status.conditions.into_iter().find(|condition| condition.type_ == STALLED);
        found.map(|stalled| {
            (stalled.status.to_string(), stalled.reason.to_string(), stalled.message.to_string())
        })
    };
    assert_eq!(
        stalled("NameConflict"),
        Some(("True".to_owned(), "NameConflict".to_owned(), message.to_owned()))
    );
    assert_eq!(stalled("NoFreePort"), None);
}

#[test]
fn the_phase_of_a_container_follows_its_deployment() {
    let phase = |wanted: i32, ready: i32, running: bool, persistent: bool| {
        let deployment: Deployment =
            serde_json::from_value(json!({"spec": {"replicas": wanted}, "status": {"readyReplicas": ready}}))
                .expect("lenient");
        phase::deployment(&deployment, running, persistent).to_string()
    };
    assert_eq!(phase(1, 0, true, false), "Starting");
    assert_eq!(phase(1, 1, true, false), "Ready");
    assert_eq!(phase(0, 0, false, true), "Off");
    // Its pod keeps running, but for its user it is off.
    assert_eq!(phase(1, 1, false, false), "Off");
}

#[test]
fn of_a_deployment_only_conditions_that_matter_are_kept() {
    let deployment: Deployment = serde_json::from_value(json!({
        "spec": {"replicas": 1},
        "status": {"conditions": [
            {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: q"},
        ]},
    }))
    .expect("lenient");
    let kept: Vec<&str> = deployment.status.conditions.iter().map(|kept| &*kept.reason).collect();
    assert_eq!(kept, ["ProgressDeadlineExceeded", "FailedCreate"]);
}

/// The report at this second about a container whose pod has this status, after an earlier report.
fn of_pod(status: &Value, before: Option<&InstanceStatus>, second: i64) -> (Report<InstanceKind>, Plan) {
    let mut observed = observed(container("main"));
    if let Some(before) = before {
        observed.instance = edit(&observed.instance, &json!({"status": before}));
    }
    let deployment = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
    observed.children.set::<DeploymentKind>(vec![deployment]);
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "my-lab-6d4b", "uid": "r", "controller": true});
    let pod = json!({"metadata": {"name": "my-lab-6d4b-x2", "ownerReferences": [owner]}, "status": status});
    observed.pods = vec![std::sync::Arc::new(serde_json::from_value(pod).expect("lenient"))];
    let config = InstanceConfig::classic();
    let now = Timestamp::from_second(second).expect("a time");
    reconciled(&observed, &config, now)
}

fn unschedulable() -> Value {
    json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}]})
}

#[test]
fn a_cause_that_needs_human_action_is_stalled_once_it_has_lasted() {
    let stalled = |report: &Report<InstanceKind>| {
        let found = report.status.conditions.iter().find(|condition| condition.type_ == STALLED);
        found.map(|stalled| (stalled.status.to_string(), stalled.reason.to_string()))
    };
    let events = |report: &Report<InstanceKind>| -> Vec<(EventType, String)> {
        report.events.iter().map(|event| (event.type_, event.reason.to_string())).collect()
    };
    let (first, plan) = of_pod(&unschedulable(), None, 0);
    assert_eq!(said(&first).0, "Starting");
    assert_eq!(stalled(&first), Some(("False".to_owned(), "PodUnschedulable".to_owned())));
    assert_eq!(events(&first), [(EventType::Normal, "PodUnschedulable".to_owned())]);
    assert_eq!(plan.requeue, Requeue::After(Duration::from_mins(2)));
    let (early, plan) = of_pod(&unschedulable(), Some(&first.status), 90);
    assert_eq!(early.status, first.status, "nothing is written");
    assert!(early.events.is_empty());
    assert_eq!(plan.requeue, Requeue::After(Duration::from_secs(30)));
    let (due, plan) = of_pod(&unschedulable(), Some(&first.status), 120);
    assert_eq!(due.status, first.status, "the events of an autoscaler are awaited");
    assert_eq!(plan.requeue, Requeue::After(LONGEST_WAIT));
    let (late, plan) = of_pod(&unschedulable(), Some(&first.status), 255);
    assert_eq!(said(&late).0, "Failed");
    assert_eq!(stalled(&late), Some(("True".to_owned(), "PodUnschedulable".to_owned())));
    assert_eq!(events(&late), [(EventType::Warning, "PodUnschedulable".to_owned())]);
    assert!(plan.awaited.is_some(), "an autoscaler may decide");
    assert_eq!(plan.requeue, Requeue::Resync, "the next list adds it to the queue");
    let (later, _) = of_pod(&unschedulable(), Some(&late.status), 500);
    assert_eq!(later.status, late.status, "nothing is written");
    assert!(later.events.is_empty());
    // Another cause has its own time to last, and a cause that disappears leaves nothing behind.
    let image =
        json!({"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}]});
    let (other, _) = of_pod(&image, Some(&late.status), 600);
    assert_eq!(stalled(&other), Some(("False".to_owned(), "ImagePullFailed".to_owned())));
    assert_eq!(events(&other), [(EventType::Warning, "ImagePullFailed".to_owned())]);
    let (gone, _) = of_pod(&json!({}), Some(&other.status), 610);
    assert_eq!((said(&gone).0, stalled(&gone)), ("Starting".to_owned(), None));
}

#[test]
fn the_pauses_between_attempts_change_nothing() {
    let state = |state: Value| {
        json!({"containerStatuses": [{"name": "main", "state": state,
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]})
    };
    let pause = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}});
    let (first, _) = of_pod(&state(pause), None, 0);
    assert_eq!(said(&first).2, "Pod my-lab-6d4b-x2: container main: OOMKilled (exit code 137)");
    let (runs, _) = of_pod(&state(json!({"running": {}})), Some(&first.status), 30);
    assert_eq!(runs.status, first.status);
    let image = |reason: &str, message: &str| {
        json!({"containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}]})
    };
    let (failed, _) = of_pod(&image("ErrImagePull", "not found"), None, 0);
    let (pause, _) = of_pod(&image("ImagePullBackOff", "Back-off pulling image"), Some(&failed.status), 10);
    assert_eq!(pause.status, failed.status);
    assert!(pause.events.is_empty());
}

#[test]
fn of_a_pod_that_starts_or_runs_only_the_phase_is_kept() {
    let pod: Pod = serde_json::from_value(json!({"status": {
        "phase": "Running", "conditions": [
            {"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "initContainerStatuses": [
            {"name": "content", "ready": true, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}],
        "containerStatuses": [
            {"name": "a", "ready": false, "state": {"waiting": {"reason": "PodInitializing"}}},
            {"name": "b", "ready": false, "state": {"running": {}}},
            {"name": "c", "ready": true, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}],
    }}))
    .expect("lenient");
    let only = crate::kinds::PodStatus { phase: Some("Running".to_owned()), ..Default::default() };
    assert_eq!(pod.status, only);
}

#[test]
fn several_environments_have_one_phase() {
    let overall = |phases: &[&str]| {
        let phases: Vec<Phase> = phases.iter().map(|phase| Phase::from(*phase)).collect();
        phase::overall(&phases).to_string()
    };
    // In the order of precedence.
    for (phases, wanted) in [
        (&["Importing"][..], "Importing"),
        (&["CreationLoopBackoff"], "CreationLoopBackoff"),
        (&["Ready", "CreationLoopBackoff"], "Failed"),
        (&["ResourceQuotaExceeded", "Ready"], "ResourceQuotaExceeded"),
        (&["Ready", "Ready"], "Ready"),
        (&["Ready", "Starting"], "Running"),
        (&["Importing", "Off"], "Starting"),
        (&["Stopping", "Off"], "Stopping"),
        (&["Off", "Off"], "Off"),
        (&["", "Off"], ""),
    ] {
        assert_eq!(overall(phases), wanted, "{phases:?}");
    }
}

#[test]
fn the_newest_live_pod_is_the_current_one() {
    let pod = |name: &str, created: &str, more: serde_json::Value| {
        let mut pod = json!({"metadata": {"name": name, "creationTimestamp": created}});
        crate::runtime::merge::apply(&mut pod, &more);
        std::sync::Arc::new(serde_json::from_value::<Pod>(pod).expect("lenient"))
    };
    let pods = [
        pod("old", "2026-01-01T00:00:00Z", json!({})),
        pod("new", "2026-01-02T00:00:00Z", json!({})),
        pod("ended", "2026-01-03T00:00:00Z", json!({"status": {"phase": "Succeeded"}})),
        pod(
            "ending",
            "2026-01-04T00:00:00Z",
            json!({"metadata": {"deletionTimestamp": "2026-01-05T00:00:00Z"}}),
        ),
    ];
    assert_eq!(current_pod(&pods).map(|pod| pod.name().to_owned()).as_deref(), Some("new"));
    assert!(current_pod(&pods[2..]).is_none());
}
