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
