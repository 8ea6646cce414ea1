//! The reasons why a machine does not run, as other objects report them, and the effect of each on an environment.

use crate::api::instance::InstancePhase as Phase;
use crate::api::reason::{self, Reason};

/// The field of an object that reports a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The message of `ReplicaFailure` of a Deployment, or of `Synchronized` of a `VirtualMachineInstance`: its pod
    /// is rejected. The message contains the word.
    Refusal,
    /// The reason of the condition `Progressing` of a Deployment.
    Rollout,
    /// The reason of the condition `PodScheduled` of a Pod, or of its copy on a `VirtualMachineInstance`.
    Scheduling,
    /// The reason of a failed Pod.
    Failure,
    /// The reason why a container waits.
    Waiting,
    /// The reason why a container has ended.
    Ended,
    /// The phase of a `PersistentVolumeClaim`.
    Claim,
    /// The state of a `VirtualMachine` that KubeVirt shows to users (`printableStatus`).
    Machine,
    /// The phase of a `VirtualMachineInstance`.
    MachineInstance,
    /// The phase of a `DataVolume`, or the reason of its condition `Running`.
    Disk,
    /// The reason of an event about an object of the environment.
    Event,
    /// The Gateway controller's conditions of an `HTTPRoute`, if it rejects the route; or the absence of any status
    /// on an `HTTPRoute` or an Ingress; or the withdrawal of a route without an accepted policy.
    Exposure,
}

/// A word that an object uses, and its effect on the environment.
#[derive(Debug)]
pub struct CauseRow {
    /// The field that contains the word.
    pub source: Source,
    /// The word; empty for all other words of the field.
    pub word: &'static str,
    /// The phase of the environment; unset if the phase of its workload applies.
    pub phase: Phase,
    /// The phase once the problem has lasted, if it needs human action; `None` if the problem clears automatically.
    pub lasting: Option<Phase>,
    /// The reason for the conditions of the Instance.
    pub reason: Reason,
}

/// Declares the rows. `=> [phase]` clears automatically; `=> [phase, phase once it has lasted]` needs human action.
macro_rules! rows {
    (@phase [$phase:ident $(, $lasting:ident)?]) => { Phase::$phase };
    (@lasting [$phase:ident]) => { None };
    (@lasting [$phase:ident, $lasting:ident]) => { Some(Phase::$lasting) };
    ($($source:ident: $($word:literal)|+ => $phases:tt: $reason:path;)+) => {
        &[$($(CauseRow {
            source: Source::$source,
            word: $word,
            phase: rows!(@phase $phases),
            lasting: rows!(@lasting $phases),
            reason: $reason,
        }),+),+]
    };
}

/// All words.
static CAUSES: &[CauseRow] = rows! {
    Refusal: "exceeded quota" => [ResourceQuotaExceeded]: reason::QUOTA_EXCEEDED;
    Refusal: "violates PodSecurity" | " usage per " | "denied the request" | "denied request" | "failed calling webhook"
        | "service account" | "" => [CreationLoopBackoff, CreationLoopBackoff]: reason::POD_REFUSED;
    Rollout: "NotStarted" => [Starting, Failed]: reason::POD_NOT_STARTED;
    Rollout: "ProgressDeadlineExceeded" | "" => [Failed, Failed]: reason::PROGRESS_DEADLINE_EXCEEDED;
    Scheduling: "SchedulingGated" => [Starting]: reason::SCHEDULING_GATED;
    Scheduling: "Unschedulable" | "SchedulerError" | "" => [Starting, Failed]: reason::POD_UNSCHEDULABLE;
    Claim: "Lost" => [Failed, Failed]: reason::VOLUME_MISSING;
    Claim: "Pending" | "" => [Starting, Failed]: reason::VOLUME_UNBOUND;
    Failure: "Evicted" | "NodeShutdown" | "Terminated" | "NodeLost" | "UnexpectedAdmissionError" | "OutOfcpu" | "OutOfmemory"
        | "NodeAffinity" | "DeadlineExceeded" | "" => [Starting]: reason::POD_FAILED;
    Waiting: "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" | "ImageInspectError"
        | "RegistryUnavailable" | "SignatureValidationFailed" => [Failed, Failed]: reason::IMAGE_PULL_FAILED;
    Waiting: "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "PreCreateHookError"
        | "PreStartHookError" | "PostStartHookError" => [Failed, Failed]: reason::CONTAINER_NOT_STARTED;
    Waiting: "CrashLoopBackOff" => [Failed, Failed]: reason::CONTAINER_FAILED;
    Waiting: "" => [Starting, Failed]: reason::CONTAINER_WAITS;
    Ended: "OOMKilled" | "Error" | "Completed" | "ContainerCannotRun" | "StartError" | "DeadlineExceeded"
        | "ContainerStatusUnknown" | "" => [Failed, Failed]: reason::CONTAINER_FAILED;
    Machine: "ErrImagePull" | "ImagePullBackOff" => [Failed, Failed]: reason::IMAGE_PULL_FAILED;
    Machine: "ErrorUnschedulable" => [Starting, Failed]: reason::POD_UNSCHEDULABLE;
    Machine: "ErrorPvcNotFound" => [Failed, Failed]: reason::VOLUME_MISSING;
    Machine: "DataVolumeError" => [Failed, Failed]: reason::IMPORT_FAILED;
    Machine: "CrashLoopBackOff" => [Failed, Failed]: reason::MACHINE_CRASHES;
    Machine: "Paused" => [Running]: reason::MACHINE_PAUSED;
    Machine: "Unknown" | "" => [Running]: reason::MACHINE_STATE;
    MachineInstance: "Succeeded" | "Failed" | "Unknown" => [Failed, Failed]: reason::MACHINE_ENDED;
    MachineInstance: "Paused" => [Running]: reason::MACHINE_PAUSED;
    MachineInstance: "" => [Running]: reason::MACHINE_STATE;
    Exposure: "refused" => [Running, Running]: reason::ROUTE_REFUSED;
    Exposure: "unguarded" => [Running, Running]: reason::ROUTE_UNGUARDED;
    Exposure: "ignored" | "" => [Running, Running]: reason::ROUTE_IGNORED;
    Disk: "progress" => [Importing]: reason::IMPORTING;
    Disk: "restarted" => [Importing]: reason::IMPORT_RESTARTED;
    Disk: "Failed" | "Error" | "ErrImagePull" | "ImagePullBackOff" | "CrashLoopBackOff" | ""
        => [Importing, Failed]: reason::IMPORT_FAILED;
    Event: "TriggeredScaleUp" => [Unset]: reason::WAITING_FOR_NODE;
    Event: "NotTriggerScaleUp" => [Unset, Failed]: reason::POD_UNSCHEDULABLE;
    Event: "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => [Unset, Failed]: reason::VOLUME_NOT_MOUNTED;
    Event: "ProvisioningFailed" | "FailedBinding" | "ExternalProvisioning" => [Unset, Failed]: reason::VOLUME_UNBOUND;
    Event: "FailedCreatePodSandBox" => [Unset, Failed]: reason::CONTAINER_NOT_STARTED;
    Event: "Pulling" => [Unset]: reason::IMAGE_PULLING;
    Event: "Unhealthy" | "ProbeError" => [Unset]: reason::NOT_ANSWERING;
    Event: "" => [Unset]: reason::OBJECT_WARNING;
};

impl CauseRow {
    /// All rows.
    pub fn all() -> &'static [Self] {
        CAUSES
    }

    /// The row of a word: its own row, or the row for all other words of the field.
    pub fn of(source: Source, word: &str) -> &'static Self {
        let is_it = |row: &&Self| {
            row.source == source
                && match source {
                    Source::Refusal => word.contains(row.word),
                    _ => row.word == word || row.word.is_empty(),
                }
        };
        // The last row of each field is the row for all other words.
        CAUSES.iter().find(is_it).unwrap_or(&CAUSES[0])
    }
}
