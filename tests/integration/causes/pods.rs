//! Messages of the kubelet and the scheduler about pods and their containers, and of the controller of volumes
//! about claims.

use serde_json::{Value, json};

use super::{CLAIM, Case, POD};

fn container(state: &Value, last: &Value) -> Value {
    json!({"phase": "Pending", "containerStatuses": [{"name": "main", "ready": false, "restartCount": 3,
        "image": "r.example.org/web:1", "imageID": "", "state": state, "lastState": last}]})
}

/// A container that waits.
fn waits(reason: &str, message: &str) -> Value {
    container(&json!({"waiting": {"reason": reason, "message": message}}), &json!({}))
}

/// A container that has ended, and waits for a restart.
fn ended(reason: &str, code: i32, message: &str) -> Value {
    let pause = "back-off 2m40s restarting failed container=main pod=web-7d9c5_tenant-causes(8a1)";
    let last = json!({"terminated": {"reason": reason, "exitCode": code, "message": message}});
    container(&json!({"waiting": {"reason": "CrashLoopBackOff", "message": pause}}), &last)
}

pub fn cases() -> Vec<Case> {
    let claims = [
        Case::new(CLAIM, json!({"phase": "Lost"}), "Failed", "VolumeMissing", "Lost: its volume is gone"),
        Case::new(
            CLAIM,
            json!({"phase": "Pending"}),
            "Starting",
            "VolumeUnbound",
            "Pending: storage class standard; Pod ",
        ),
    ];
    images().chain(containers()).chain(ends()).chain(scheduling()).chain(failures()).chain(claims).collect()
}

fn images() -> impl Iterator<Item = Case> {
    let words = [
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    ];
    let image = "failed to pull and unpack image \"r.example.org/web:1\": not found";
    words.into_iter().map(move |word| Case::new(POD, waits(word, image), "Failed", "ImagePullFailed", word))
}

fn containers() -> impl Iterator<Item = Case> {
    let not_started = [
        ("CreateContainerConfigError", "secret \"mydrive-info\" not found"),
        ("CreateContainerError", "context deadline exceeded"),
        ("RunContainerError", "exec: \"/start\": stat /start: no such file or directory"),
        ("PreCreateHookError", "the hook failed"),
        ("PreStartHookError", "the hook failed"),
        ("PostStartHookError", "command '/bin/false' exited with 1"),
    ];
    let not_started = not_started.into_iter().map(|(word, message)| {
        Case::new(POD, waits(word, message), "Failed", "ContainerNotStarted", message)
    });
    let pause = Case::new(
        POD,
        waits("CrashLoopBackOff", "back-off 10s"),
        "Failed",
        "ContainerFailed",
        "CrashLoopBackOff: back-off 10s",
    );
    let unknown = waits("AwaitingMoonrise", "in 2 h");
    let unknown = Case::new(POD, unknown, "Starting", "ContainerWaits", "AwaitingMoonrise: in 2 h");
    not_started.chain([pause, unknown])
}

fn ends() -> impl Iterator<Item = Case> {
    let ends = [
        ("OOMKilled", 137, "container main: OOMKilled (exit code 137): the last words"),
        ("Error", 1, "container main: Error (exit code 1): the last words"),
        ("Completed", 0, "container main: Completed (exit code 0): the last words"),
        ("ContainerCannotRun", 127, "container main: ContainerCannotRun (exit code 127): the last words"),
        ("StartError", 128, "container main: StartError (exit code 128): the last words"),
        ("DeadlineExceeded", 137, "container main: DeadlineExceeded (exit code 137): the last words"),
        (
            "ContainerStatusUnknown",
            137,
            "container main: ContainerStatusUnknown (exit code 137): the last words",
        ),
        ("EatenByWolves", 99, "container main: EatenByWolves (exit code 99): the last words"),
    ];
    ends.into_iter().map(|(word, code, words)| {
        Case::new(POD, ended(word, code, "the last words"), "Failed", "ContainerFailed", words)
    })
}

fn scheduling() -> impl Iterator<Item = Case> {
    let waits = [
        ("Unschedulable", "PodUnschedulable", "0/3 nodes are available: 3 Insufficient memory."),
        ("SchedulerError", "PodUnschedulable", "the plugin panicked"),
        ("Other", "PodUnschedulable", "the words of another scheduler"),
        ("SchedulingGated", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"),
    ];
    waits.into_iter().map(|(word, reason, message)| {
        Case::new(POD, unscheduled(word, message), "Starting", reason, message)
    })
}

/// A pod that waits for a node.
pub fn unscheduled(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]})
}

fn failures() -> impl Iterator<Item = Case> {
    let failures = [
        ("Evicted", "The node was low on resource: ephemeral-storage."),
        ("NodeShutdown", "Pod was rejected as the node is shutting down."),
        ("Terminated", "Pod was terminated in response to imminent node shutdown."),
        ("NodeLost", "Node n1 which was running pod web is unresponsive"),
        ("UnexpectedAdmissionError", "Allocate failed due to requested number of devices unavailable"),
        ("OutOfcpu", "Node didn't have enough resource: cpu"),
        ("OutOfmemory", "Node didn't have enough resource: memory"),
        ("NodeAffinity", "Predicate NodeAffinity failed"),
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),
        ("Unheard", "a word of the future"),
    ];
    failures.into_iter().map(|(word, message)| {
        let status = json!({"phase": "Failed", "reason": word, "message": message});
        Case::new(POD, status, "Starting", "PodFailed", message)
    })
}
