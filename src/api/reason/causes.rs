//! Why a machine does not run: the words by which the objects of others say so, and what each means for an environment.

use crate::api::instance::InstancePhase as Phase;
use crate::api::reason::{self, Reason};

/// The field in which an object says that something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The message of `ReplicaFailure` of a Deployment, or of `Synchronized` of a `VirtualMachineInstance`: its pod is
    /// refused. The word is a part of it.
    Refusal,
    /// The reason of the condition `Progressing` of a Deployment.
    Rollout,
    /// The reason of the condition `PodScheduled` of a Pod, or of its copy on a `VirtualMachineInstance`.
    Scheduling,
    /// The reason of a Pod that has failed.
    Failure,
    /// The reason for which a container waits.
    Waiting,
    /// The reason for which a container has ended.
    Ended,
    /// The phase of a `PersistentVolumeClaim`.
    Claim,
    /// The state of a `VirtualMachine` for users (`printableStatus`).
    Machine,
    /// The phase of a `VirtualMachineInstance`.
    MachineInstance,
    /// The phase of a `DataVolume`, or the reason of its condition `Running`.
    Disk,
}

/// A word of an object, and what it means for the environment.
#[derive(Debug)]
pub struct CauseRow {
    /// The field that has the word.
    pub source: Source,
    /// The word; empty for all others of that field.
    pub word: &'static str,
    /// The phase of the environment.
    pub phase: Phase,
    /// The phase once it has lasted, if somebody has to do something then; `None` if it clears itself.
    pub lasting: Option<Phase>,
    /// The reason on the conditions of the Instance.
    pub reason: Reason,
}

/// Declares the rows: `=> [phase]` clears itself, `=> [phase, phase once it has lasted]` needs somebody.
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
pub static CAUSES: &[CauseRow] = rows! {
    Refusal: "exceeded quota" => [ResourceQuotaExceeded]: reason::QUOTA_EXCEEDED;
    Refusal: "violates PodSecurity" | " usage per " | "denied the request" | "denied request" | "failed calling webhook"
        | "service account" | "" => [CreationLoopBackoff, CreationLoopBackoff]: reason::POD_REFUSED;
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
    Disk: "progress" => [Importing]: reason::IMPORTING;
    Disk: "restarted" => [Importing]: reason::IMPORT_RESTARTED;
    Disk: "Failed" | "Error" | "ErrImagePull" | "ImagePullBackOff" | "CrashLoopBackOff" | ""
        => [Importing, Failed]: reason::IMPORT_FAILED;
};

impl CauseRow {
    /// The row of a word: its own, or that of all other words of the field.
    pub fn of(source: Source, word: &str) -> &'static Self {
        let is_it = |row: &&Self| {
            row.source == source
                && match source {
                    Source::Refusal => word.contains(row.word),
                    _ => row.word == word || row.word.is_empty(),
                }
        };
        // Each field has a row for all other words, which is its last.
        CAUSES.iter().find(is_it).unwrap_or(&CAUSES[0])
    }
}
