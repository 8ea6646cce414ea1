//! The messages of states, taken from conditions.

use super::*;

#[test]
fn the_condition_that_a_state_names_gives_the_message() {
    // Each state of a machine with other false conditions.
    let conditions = json!([
        {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "not shared"},
        {"type": "Ready", "status": "False", "reason": "GuestNotRunning", "message": "not ready"},
        {"type": "Paused", "status": "True", "reason": "PausedIOError", "message": "low-level IO error"},
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"},
        {"type": "Synchronized", "status": "False", "reason": "ErrImagePull", "message": "no image"},
        {"type": "DataVolumesReady", "status": "False", "reason": "NotAllDVsReady", "message": "no disk"},
        {"type": "Failure", "status": "True", "reason": "FailedCreate", "message": "refused"}]);
    for (state, message) in [
        ("Paused", "low-level IO error"),
        ("ErrorUnschedulable", "no node"),
        ("ErrImagePull", "no image"),
        ("ImagePullBackOff", "no image"),
        ("ErrorPvcNotFound", "no image"),
        ("DataVolumeError", "no disk"),
        ("CrashLoopBackOff", "refused"),
    ] {
        let machine = json!({"printableStatus": state, "conditions": conditions});
        let words = said(&of_machine(machine, None, None)).2;
        assert_eq!(words, format!("VirtualMachine my-lab: {state}: {message}"));
    }
    let others = json!([
        {"type": "Paused", "status": "False", "message": "was paused"},
        {"type": "LiveMigratable", "status": "False", "message": "not shared"}]);
    let words = said(&of_machine(json!({"printableStatus": "Unknown", "conditions": others}), None, None)).2;
    assert_eq!(words, "VirtualMachine my-lab: Unknown");
    let ended = json!({"phase": "Failed", "conditions": [
        {"type": "LiveMigratable", "status": "False", "message": "not shared"},
        {"type": "Ready", "status": "False", "message": "virt-launcher pod has terminated"}]});
    let words = said(&of_machine(json!({"printableStatus": "Meditating"}), Some(ended), None)).2;
    assert_eq!(words, "VirtualMachine my-lab: Meditating", "it goes on");
}

#[test]
fn a_refusal_counts_while_its_condition_says_so() {
    let message = "admission webhook \"no.example.org\" denied the request: never";
    let refused = |type_: &str, status: &str| json!([{"type": type_, "status": status, "reason": "FailedCreate", "message": message}]);
    let running = |status: &str| {
        let running = json!({"phase": "Scheduling", "conditions": refused("Synchronized", status)});
        said(&of_machine(json!({"printableStatus": "Starting"}), Some(running), None))
    };
    assert_eq!(running("False").1, "PodRefused");
    for status in ["True", "Unknown"] {
        assert_eq!((&*running(status).0, &*running(status).1), ("Starting", "Starting"), "{status}");
    }
    let machine = |status: &str| {
        let machine = json!({"printableStatus": "Starting", "conditions": refused("Failure", status)});
        said(&of_machine(machine, None, None))
    };
    let (phase, reason, words) = machine("True");
    assert_eq!((&*phase, &*reason), ("CreationLoopBackoff", "PodRefused"), "KubeVirt may not make it run");
    assert_eq!(words, format!("VirtualMachine my-lab: {message}"));
    assert_eq!(machine("False").1, "Starting");
}

#[test]
fn a_disk_that_is_filled_is_no_cause() {
    let disk = |phase: &str| {
        let disk = json!({"phase": phase, "conditions": [
            {"type": "Running", "status": "False", "reason": "Error", "message": "no such host"}]});
        said(&of_machine(json!({"printableStatus": "Provisioning"}), None, Some(disk))).1
    };
    assert_eq!((&*disk("ImportInProgress"), &*disk("Succeeded")), ("ImportFailed", "Starting"));
}

/// The report about an Instance with a ready container, these public ports and this status.
fn exposed(ports: &Value, status: &Value, second: i64) -> Report<InstanceKind> {
    let mut observed = observed(container("main"));
    let patch = json!({"spec": {"publicExposure": {"ports": ports}}, "status": status});
    observed.instance = edit(&observed.instance, &patch);
    let deployment = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
    let deployment = edit(&deployment, &json!({"status": {"readyReplicas": 1}}));
    observed.children.set::<DeploymentKind>(vec![deployment]);
    let now = time("2026-01-01T00:00:00Z") + jiff::SignedDuration::from_secs(second);
    reconciled(&observed, &InstanceConfig::classic(), now).0
}

#[test]
fn an_instance_whose_load_balancer_does_not_serve_its_ports_is_not_ready() {
    let ports = json!([{"name": "ssh", "port": 0, "targetPort": 22}]);
    let message = "no pool has the address";
    let exposure = |status: &str, reason: &str| {
        json!({"conditions": [{"type": "PublicExposureReady", "status": status, "reason": reason,
            "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    };
    let told = |report: &Report<InstanceKind>, type_: &str| {
        let found = report.status.conditions.iter().find(|condition| condition.type_ == *type_)?;
        Some([&found.status, &found.reason, &found.message].map(ToString::to_string))
    };
    let is_ready = ["True", "Ready", "The environment can be used"].map(str::to_owned);
    for (status, reason, is_fault) in [
        ("False", "LoadBalancerRefused", true),
        ("False", "LoadBalancerIgnored", true),
        ("False", "OtherAddress", true),
        ("False", "WaitingForAddress", false),
        ("False", "NoFreePort", false),
        ("True", "PublicExposureAssigned", false),
    ] {
        let report = exposed(&ports, &exposure(status, reason), 0);
        assert_eq!(report.status.phase, Phase::Ready, "{reason}: the machine can be used");
        let fault = is_fault.then(|| ["False", reason, message].map(str::to_owned));
        assert_eq!(told(&report, "Stalled"), fault, "{reason}");
        assert_eq!(told(&report, "Ready"), Some(fault.unwrap_or_else(|| is_ready.clone())), "{reason}");
        let without_ports = exposed(&json!([]), &exposure(status, reason), 0);
        assert_eq!(told(&without_ports, "Ready"), Some(is_ready.clone()), "{reason}");
    }
    let first = exposed(&ports, &exposure("False", "LoadBalancerIgnored"), 0);
    assert_eq!(first.requeue_after, Some(Duration::from_mins(2)));
    let mut status = serde_json::to_value(&first.status).expect("JSON");
    let lasting = exposed(&ports, &status, 120);
    let stalled = told(&lasting, "Stalled").map(|[status, ..]| status);
    assert_eq!(stalled.as_deref(), Some("True"));
    // The address is assigned.
    status["conditions"] = exposure("True", "PublicExposureAssigned")["conditions"].take();
    let served = exposed(&ports, &status, 121);
    assert_eq!((told(&served, "Ready"), told(&served, "Stalled")), (Some(is_ready), None));
}
