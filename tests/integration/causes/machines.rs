//! Messages of KubeVirt about virtual machines, and of CDI about their disks.

use serde_json::{Value, json};

use super::{Case, DISK, MACHINE, RUNNING_MACHINE};

pub fn cases() -> Vec<Case> {
    machines().chain(running()).chain(refused()).chain(disks()).collect()
}

fn machines() -> impl Iterator<Item = Case> {
    let printed = [
        ("ErrImagePull", "Failed", "ImagePullFailed"),
        ("ImagePullBackOff", "Failed", "ImagePullFailed"),
        ("ErrorUnschedulable", "Starting", "PodUnschedulable"),
        ("ErrorPvcNotFound", "Failed", "VolumeMissing"),
        ("DataVolumeError", "Failed", "ImportFailed"),
        ("CrashLoopBackOff", "Failed", "MachineCrashes"),
        ("Paused", "Running", "MachinePaused"),
        ("Unknown", "Running", "MachineState"),
        ("Meditating", "Running", "MachineState"),
    ];
    printed.into_iter().map(|(state, phase, reason)| {
        let words = "in the words of KubeVirt";
        // The field from which KubeVirt takes the state, in addition to the message that every machine with
        // such a disk has.
        let (source, holds) = match state {
            "Paused" => ("Paused", "True"),
            "ErrorUnschedulable" => ("PodScheduled", "False"),
            "ErrImagePull" | "ImagePullBackOff" | "ErrorPvcNotFound" => ("Synchronized", "False"),
            _ => ("Ready", "False"),
        };
        let status = json!({"printableStatus": state, "conditions": [
            {"type": "LiveMigratable", "status": "False", "reason": "X", "message": "the disk is not shared"},
            {"type": source, "status": holds, "reason": "X", "message": words}]});
        Case::new(MACHINE, status, phase, reason, words)
    })
}

/// A running machine with a condition.
fn with(phase: &str, type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"phase": phase, "conditions": [
        {"type": type_, "status": status, "reason": reason, "message": message}]})
}

fn running() -> impl Iterator<Item = Case> {
    let ended = ["Succeeded", "Failed", "Unknown"].into_iter().map(|phase| {
        let status = with(phase, "Ready", "False", "PodTerminating", "virt-launcher pod has terminated");
        Case::new(RUNNING_MACHINE, status, "Failed", "MachineEnded", phase)
    });
    let words = "VMI was paused by user";
    let paused = with("Running", "Paused", "True", "PausedByUser", words);
    let paused = Case::new(RUNNING_MACHINE, paused, "Running", "MachinePaused", words);
    let unknown = with("WaitingForSync", "Ready", "False", "", "");
    let unknown = Case::new(RUNNING_MACHINE, unknown, "Running", "MachineState", "WaitingForSync");
    let words = "0/2 nodes are available: 2 Insufficient devices.kubevirt.io/kvm.";
    let waits = with("Scheduling", "PodScheduled", "False", "Unschedulable", words);
    let waits = Case::new(RUNNING_MACHINE, waits, "Starting", "PodUnschedulable", words);
    ended.chain([paused, unknown, waits])
}

fn refused() -> impl Iterator<Item = Case> {
    let quota = "pods \"virt-launcher-x\" is forbidden: exceeded quota: q";
    let refused = |phase, reason, message| {
        let status = with("Pending", "Synchronized", "False", "FailedCreate", message);
        Case::new(RUNNING_MACHINE, status, phase, reason, message)
    };
    let messages = [
        "pods \"virt-launcher-x\" is forbidden: violates PodSecurity \"restricted:latest\"",
        "pods \"x\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
        "admission webhook \"no.example.org\" denied the request: never",
        "ValidatingAdmissionPolicy 'no' with binding 'no' denied request: never",
        "failed calling webhook \"no.example.org\": connection refused",
        "error looking up service account tenant-causes/default",
        "something that nobody has thought of",
    ];
    let others =
        messages.into_iter().map(move |message| refused("CreationLoopBackoff", "PodRefused", message));
    others.chain([refused("ResourceQuotaExceeded", "ResourceQuotaExceeded", quota)])
}

fn disks() -> impl Iterator<Item = Case> {
    let failures = [
        ("Error", "Virtual image size 21474836480 is larger than the reported available storage 10737418240"),
        ("ErrImagePull", "Unable to connect to http data source: lookup i.example.org: no such host"),
        ("ImagePullBackOff", "Back-off pulling image \"docker://r.example.org/vm:1\""),
        ("CrashLoopBackOff", "back-off 5m0s restarting failed container=importer"),
        ("Unheard", "a word of the future"),
    ];
    let failures = failures.into_iter().map(|(word, message)| {
        let status = json!({"phase": "ImportInProgress", "progress": "N/A", "restartCount": 2, "conditions": [
            {"type": "Running", "status": "False", "reason": word, "message": message}]});
        Case::new(DISK, status, "Importing", "ImportFailed", message)
    });
    let failed = Case::new(DISK, json!({"phase": "Failed"}), "Importing", "ImportFailed", ": Failed");
    let again = json!({"phase": "ImportInProgress", "progress": "0.00%", "restartCount": 1});
    let words = "the import has failed before, and runs again";
    failures.chain([failed, Case::new(DISK, again, "Importing", "ImportRestarted", words)])
}
