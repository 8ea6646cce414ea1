#![allow(clippy::needless_pass_by_value, reason = "JSON literals read better as they are")]

use serde_json::{Value, json};

use super::*;
use crate::controllers::instance::plan::plan;
use crate::controllers::instance::plan::tests::{edit, environment as template_environment, observed, owned};
use crate::kinds::{Deployment, DeploymentKind, ServiceKind, VirtualMachine, VirtualMachineInstance};

/// The report about an Instance with this status, whose container has `ready` pods.
fn reported(environments: Value, status: Value, ready: i32) -> Report<InstanceKind> {
    let mut observed = observed(environments);
    observed.instance = edit(&observed.instance, &json!({"status": status}));
    let deployment = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
    let deployment = edit(&deployment, &json!({"status": {"readyReplicas": ready}}));
    observed.children.set::<DeploymentKind>(vec![deployment]);
    observed.children.set::<ServiceKind>(vec![owned::<ServiceKind>("my-lab", json!({"clusterIP": "None"}))]);
    let config = InstanceConfig::default();
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    report(&observed, &config, &plan(&observed, &config, now), &Outcome::default(), now)
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
    let kept = ("45s".to_owned(), "45s".to_owned());
    for (environments, status) in [
        // The older Go operator; the newer one, which has it in the list alone; this daemon before and after the
        // older operator worked in between; an environment that was renamed.
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
    // Without one it is set when the environment is ready for the first time.
    assert_eq!(times(&reported(container("main"), json!({}), 0).status), (String::new(), String::new()));
    let first = reported(container("main"), json!({}), 1);
    assert_eq!(times(&first.status), ("0s".to_owned(), "0s".to_owned()));
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
fn a_headless_service_has_no_address() {
    let report = reported(container("main"), json!({}), 1);
    assert_eq!((&*report.status.ip, &*report.status.environments[0].ip), ("", ""));
}

#[test]
fn the_phase_of_a_machine_follows_what_kubevirt_prints() {
    let phase = |status: serde_json::Value| {
        let machine: VirtualMachine = serde_json::from_value(json!({"status": status})).expect("lenient");
        phase::virtual_machine(&machine, None, None).phase.to_string()
    };
    for (printed, ready, wanted) in [
        ("Provisioning", false, "Importing"),
        ("WaitingForVolumeBinding", false, "Importing"),
        ("Starting", false, "Starting"),
        ("Running", false, "Running"),
        ("Running", true, "Ready"),
        ("Migrating", true, "Ready"),
        ("Stopping", false, "Stopping"),
        ("Terminating", false, "Stopping"),
        ("Stopped", false, "Off"),
        ("ErrImagePull", false, "Failed"),
        ("CrashLoopBackOff", false, "Failed"),
        ("Paused", false, ""),
        ("", false, ""),
    ] {
        assert_eq!(phase(json!({"printableStatus": printed, "ready": ready})), wanted, "{printed}");
    }
}

#[test]
fn a_quota_shows_through_the_running_machine() {
    let machine: VirtualMachine =
        serde_json::from_value(json!({"status": {"printableStatus": "Starting"}})).expect("lenient");
    let refused = |message: &str| -> VirtualMachineInstance {
        let condition =
            json!({"type": "Synchronized", "status": "False", "reason": "FailedCreate", "message": message});
        serde_json::from_value(json!({"status": {"phase": "Pending", "conditions": [condition]}}))
            .expect("lenient")
    };
    let quota = refused("pods is forbidden: exceeded quota: q");
    assert_eq!(phase::virtual_machine(&machine, Some(&quota), None).phase, Phase::ResourceQuotaExceeded);
    assert_eq!(phase::virtual_machine_instance(&quota).phase, Phase::ResourceQuotaExceeded);
    let other = refused("something else");
    assert_eq!(phase::virtual_machine(&machine, Some(&other), None).phase, Phase::Starting);
}

#[test]
fn a_finished_import_counts_before_the_machine_says_so() {
    let machine: VirtualMachine =
        serde_json::from_value(json!({"status": {"printableStatus": "Provisioning"}})).expect("lenient");
    let disk = |phase: &str, progress: &str| -> crate::kinds::DataVolume {
        serde_json::from_value(json!({"status": {"phase": phase, "progress": progress}})).expect("lenient")
    };
    let phased = phase::virtual_machine(&machine, None, Some(&disk("ImportInProgress", "41.5%")));
    assert_eq!((phased.phase, phased.cause.as_str()), (Phase::Importing, "41.5% imported"));
    assert_eq!(
        phase::virtual_machine(&machine, None, Some(&disk("Succeeded", "100%"))).phase,
        Phase::Starting
    );
}

#[test]
fn the_phase_of_a_container_follows_its_deployment() {
    let phase = |wanted: i32, ready: i32, running: bool, persistent: bool| {
        let deployment: Deployment =
            serde_json::from_value(json!({"spec": {"replicas": wanted}, "status": {"readyReplicas": ready}}))
                .expect("lenient");
        phase::deployment(&deployment, running, persistent).phase.to_string()
    };
    assert_eq!(phase(1, 0, true, false), "Starting");
    assert_eq!(phase(1, 1, true, false), "Ready");
    assert_eq!(phase(0, 0, false, true), "Off");
    // Its pod lives on, but for its user it is off.
    assert_eq!(phase(1, 1, false, false), "Off");
}

#[test]
fn of_a_deployment_only_the_condition_that_matters_is_kept() {
    let deployment: Deployment = serde_json::from_value(json!({
        "spec": {"replicas": 1},
        "status": {"conditions": [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: q"},
        ]},
    }))
    .expect("lenient");
    assert_eq!(deployment.status.conditions.len(), 1);
    assert_eq!(phase::deployment(&deployment, true, false).phase, Phase::ResourceQuotaExceeded);
}

#[test]
fn several_environments_have_one_phase() {
    let overall = |phases: &[&str]| {
        let phases: Vec<Phase> = phases.iter().map(|phase| Phase::from(*phase)).collect();
        phase::overall(&phases).to_string()
    };
    // In the order in which the rules apply.
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
fn the_newest_living_pod_is_the_one() {
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
