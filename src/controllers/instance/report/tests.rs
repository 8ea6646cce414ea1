use serde_json::json;

use super::*;
use crate::kinds::{Deployment, VirtualMachine, VirtualMachineInstance};

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
