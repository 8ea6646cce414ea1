//! The reason why an environment does not run, according to its objects.
//!
//! The table of [`CauseRow`] lists the words that these objects use, with their meaning. An unknown word is reported
//! unchanged.

use std::time::Duration;

use jiff::Timestamp;

use super::observe::Observed;
use crate::api::condition::{Condition, ConditionType, READY, STALLED};
use crate::api::instance::InstancePhase as Phase;
use crate::api::meta::Owner;
use crate::api::reason::{self, CauseRow, Source};
use crate::api::{Kind, Object};
use crate::config::InstanceConfig;
use crate::controllers::shared::problems::stalls_in;
use crate::controllers::shared::waits::class_fault;
use crate::kinds::{
    ContainerStatus, DataVolume, DataVolumeKind, Deployment, DeploymentKind, ForeignCondition,
    PersistentVolumeClaim, PersistentVolumeClaimKind, Pod, VirtualMachine, VirtualMachineInstance,
    VirtualMachineInstanceKind,
};
use crate::runtime::events::{EventNote, EventType};

/// The reason why an environment does not run.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The meaning of its word.
    pub row: &'static CauseRow,
    /// The message: kind and name of the object, and its words.
    pub message: String,
    /// How much longer it has to last before it counts as stalled, because events may still explain it.
    pub grace: Duration,
}

impl Cause {
    /// Creates a cause from the word in a field.
    pub fn new(source: Source, word: &str, message: String) -> Self {
        Self { row: CauseRow::of(source, word), message, grace: Duration::ZERO }
    }

    /// Creates a cause from the word in a field of an object. The message has further `detail`, which may be empty.
    fn of<T: Kind>(source: Source, object: &Object<T>, word: &str, detail: &str) -> Self {
        Self::new(source, word, say(object, &[word, detail]))
    }

    /// The message to report. During a back-off with the same reason as before, it is the previous message: it says why
    /// the attempt failed, and would otherwise be rewritten at each attempt.
    pub fn words<'a>(&'a self, ready: Option<&'a Condition>) -> &'a str {
        let is_pause = self.row.word.ends_with("BackOff");
        let before = ready.filter(|ready| is_pause && ready.reason == *self.row.reason);
        before.map_or(&*self.message, |before| &*before.message)
    }

    /// How long the cause must still last before it counts as stalled; `None` if it has lasted or clears itself.
    pub fn left(
        &self,
        conditions: &[Condition],
        config: &InstanceConfig,
        now: Timestamp,
    ) -> Option<Duration> {
        self.row.lasting.as_ref()?;
        stalls_in(conditions, self.row.reason, config.stalled_after.get() + self.grace, now)
    }

    /// Whether the cause requires human action and has lasted.
    pub fn has_lasted(&self, conditions: &[Condition], config: &InstanceConfig, now: Timestamp) -> bool {
        self.row.lasting.is_some() && self.left(conditions, config, now).is_none()
    }

    /// The event that the cause exists or now requires human action; `None` if it was already published.
    pub fn event(
        &self,
        conditions: &[Condition],
        config: &InstanceConfig,
        now: Timestamp,
    ) -> Option<EventNote> {
        let find = |type_: ConditionType| conditions.iter().find(|condition| condition.type_ == type_);
        let is_known = find(READY).is_some_and(|ready| ready.reason == *self.row.reason);
        let was_stalled = find(STALLED).is_some_and(|stalled| stalled.status == "True");
        let has_lasted = self.has_lasted(conditions, config, now);
        let is_worse = has_lasted && !was_stalled && self.phase(true) != self.phase(false);
        if self.row.reason == reason::IMPORTING || is_known && !is_worse {
            return None;
        }
        let is_failure = matches!(self.phase(has_lasted), Some(Phase::Failed | Phase::CreationLoopBackoff));
        let type_ = if is_failure { EventType::Warning } else { EventType::Normal };
        Some(EventNote::new(type_, self.row.reason, &*self.message))
    }

    /// The phase for a cause that has lasted or not; `None` to use the phase of the workload.
    pub fn phase(&self, has_lasted: bool) -> Option<&'static Phase> {
        let phase = self.row.lasting.as_ref().filter(|_| has_lasted).unwrap_or(&self.row.phase);
        Some(phase).filter(|phase| **phase != Phase::Unset)
    }
}

/// Formats the words of an object: its kind, its name, and the non-empty texts.
pub fn say<T: Kind>(object: &Object<T>, texts: &[&str]) -> String {
    let texts: Vec<&str> = texts.iter().copied().filter(|text| !text.is_empty()).collect();
    format!("{} {}: {}", T::KIND, object.name(), texts.join(": "))
}

/// The cause according to a Deployment without ready pods, and its pods.
pub fn of_deployment(observed: &Observed, deployment: &Deployment) -> Option<Cause> {
    let conditions = &deployment.status.conditions;
    let refusal = refusal(deployment, conditions, ("ReplicaFailure", "True"));
    let pod = refusal.or_else(|| of_pods(observed, deployment));
    let claim = observed.own::<PersistentVolumeClaimKind>(deployment.name());
    let claim = claim.and_then(|claim| of_claim(observed, claim, pod.as_ref()));
    claim.or(pod).or_else(|| {
        let late = condition(conditions, ("Progressing", "False"))?;
        if !pods_of(observed, deployment).any(has_started) {
            let message = say(deployment, &["no container has started", &late.message]);
            return Some(Cause::new(Source::Rollout, "NotStarted", message));
        }
        Some(Cause::of(Source::Rollout, deployment, &late.reason, &late.message))
    })
}

/// The cause according to a `VirtualMachine` that is not ready, and the objects that KubeVirt has created for it.
pub fn of_machine(observed: &Observed, machine: &VirtualMachine) -> Option<Cause> {
    let name = machine.name();
    let state = machine.status.printable_status.as_str();
    let running = observed.named::<VirtualMachineInstanceKind>(name);
    let disk = observed.named::<DataVolumeKind>(name);
    let below = || {
        let running = running.and_then(|running| of_running_machine(observed, running));
        // A machine that has ended is replaced, with the same disk.
        let running = running.filter(|cause| cause.row.source != Source::MachineInstance);
        running.or_else(|| disk.and_then(of_disk))
    };
    match state {
        "" | "Stopped" | "Stopping" | "Terminating" | "Running" | "Migrating" | "WaitingForReceiver" => None,
        "Provisioning" | "Starting" | "WaitingForVolumeBinding" => {
            let refusal = refusal(machine, &machine.status.conditions, ("Failure", "True"));
            refusal.or_else(below)
        }
        _ => {
            let message = message_of(&machine.status.conditions, state);
            let cause = Cause::of(Source::Machine, machine, state, message);
            // The other objects provide more detail than the state.
            match below().filter(|below| below.row.lasting.is_some() && cause.row.lasting.is_some()) {
                // An autoscaler may add a node.
                Some(below) if below.row.source == Source::Scheduling => Some(below),
                Some(below) => Some(Cause { message: below.message, ..cause }),
                None => Some(cause),
            }
        }
    }
}

/// The cause according to a `VirtualMachineInstance` that is not ready, and its pod.
pub fn of_running_machine(observed: &Observed, machine: &VirtualMachineInstance) -> Option<Cause> {
    let status = &machine.status;
    match &*status.phase {
        "" | "Pending" | "Scheduling" | "Scheduled" => {
            let refusal = refusal(machine, &status.conditions, ("Synchronized", "False"));
            refusal.or_else(|| of_pods(observed, machine)).or_else(|| {
                let waits = condition(&status.conditions, ("PodScheduled", "False"))?;
                Some(Cause::of(Source::Scheduling, machine, &waits.reason, &waits.message))
            })
        }
        "Running" => {
            let paused = condition(&status.conditions, ("Paused", "True"))?;
            Some(Cause::of(Source::MachineInstance, machine, "Paused", &paused.message))
        }
        phase => {
            let message = message_of(&status.conditions, phase);
            Some(Cause::of(Source::MachineInstance, machine, phase, message))
        }
    }
}

/// The condition with this type and status.
pub fn condition<'a>(
    conditions: &'a [ForeignCondition],
    (type_, status): (&str, &str),
) -> Option<&'a ForeignCondition> {
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == status)
}

/// The message of the condition that KubeVirt derives a state from, or of `Ready`. Other conditions, such as
/// `LiveMigratable`, are irrelevant.
fn message_of<'a>(conditions: &'a [ForeignCondition], state: &str) -> &'a str {
    let source = match state {
        "Paused" => ("Paused", "True"),
        "ErrorUnschedulable" => ("PodScheduled", "False"),
        "ErrImagePull" | "ImagePullBackOff" | "ErrorPvcNotFound" => ("Synchronized", "False"),
        "DataVolumeError" => ("DataVolumesReady", "False"),
        _ => ("Failure", "True"),
    };
    let sources = [source, ("Ready", "False"), ("Ready", "Unknown")];
    let mut found = sources.into_iter().filter_map(|source| condition(conditions, source));
    found.find(|condition| !condition.message.is_empty()).map_or("", |condition| &condition.message)
}

/// The cause that the storage class of a disk cannot provide a volume.
pub fn of_disk_class(observed: &Observed, machine: &VirtualMachine, class: &str) -> Option<Cause> {
    let disk = observed.named::<DataVolumeKind>(machine.name())?;
    let is_waiting =
        matches!(&*disk.status.phase, "" | "Pending" | "WaitForFirstConsumer" | "PendingPopulation");
    let fault = class_fault(observed.cluster.storage_classes.as_ref(), class).filter(|_| is_waiting)?;
    Some(Cause::of(Source::Claim, disk, "Pending", &fault))
}

/// The cause according to the import of a disk.
fn of_disk(disk: &DataVolume) -> Option<Cause> {
    let status = &disk.status;
    if let Some(failed) = status.conditions.first().filter(|_| status.phase != "Succeeded") {
        return Some(Cause::of(Source::Disk, disk, &failed.reason, &failed.message));
    }
    match &*status.phase {
        "Failed" => Some(Cause::of(Source::Disk, disk, "Failed", "")),
        "Succeeded" => None,
        _ if status.restart_count > 0 => {
            let message = "the import has failed before, and runs again";
            Some(Cause::new(Source::Disk, "restarted", say(disk, &[message])))
        }
        _ if status.progress.is_empty() || status.progress == "N/A" => None,
        _ => {
            let message = format!("{} imported", status.progress);
            Some(Cause::new(Source::Disk, "progress", say(disk, &[&message])))
        }
    }
}

/// The cause according to the claim of a pod: the claim is lost, or it is not bound and the pod cannot be scheduled for
/// that reason. Otherwise, an unbound claim may still be bound by the first pod that needs it.
fn of_claim(observed: &Observed, claim: &PersistentVolumeClaim, pod: Option<&Cause>) -> Option<Cause> {
    let phase = &*claim.status.phase;
    let waits = pod.filter(|pod| pod.row.source == Source::Scheduling);
    match (phase, waits) {
        ("Lost", _) => Some(Cause::of(Source::Claim, claim, phase, "its volume is gone")),
        ("Pending", Some(pod)) => {
            let class = claim.spec.storage_class_name.as_deref().unwrap_or_default();
            let fault = class_fault(observed.cluster.storage_classes.as_ref(), class);
            // The scheduler lists what each node lacks, such as processor cores or a volume.
            let lacks_volume = pod.message.to_ascii_lowercase().contains("volume");
            if fault.is_none() && !lacks_volume {
                return None;
            }
            let class = fault.unwrap_or_else(|| match class {
                "" => "it names no storage class".to_owned(),
                class => format!("storage class {class}"),
            });
            let message = format!("{}; {}", say(claim, &[phase, &class]), pod.message);
            Some(Cause::new(Source::Claim, phase, message))
        }
        _ => None,
    }
}

/// The cause that an object may not create its pod, according to the object's condition with this status.
fn refusal<T: Kind>(
    object: &Object<T>,
    conditions: &[ForeignCondition],
    source: (&str, &str),
) -> Option<Cause> {
    let is_refusal =
        |refused: &&ForeignCondition| refused.reason == "FailedCreate" || refused.reason == "FailedCreatePod";
    let refused = condition(conditions, source).filter(is_refusal)?;
    Some(Cause::of(Source::Refusal, object, &refused.message, ""))
}

/// The pods of a workload that are not being deleted. The pods of a Deployment belong to a `ReplicaSet`.
pub fn pods_of<'a, T: Kind>(
    observed: &'a Observed,
    workload: &'a Object<T>,
) -> impl Iterator<Item = &'a Pod> + Clone {
    let is_owner = |owner: &Owner| {
        if T::KIND == DeploymentKind::KIND {
            let hash = owner.name.strip_prefix(workload.name()).and_then(|rest| rest.strip_prefix('-'));
            owner.kind == "ReplicaSet" && hash.is_some_and(|hash| !hash.contains('-'))
        } else {
            owner.kind == T::KIND && *owner.name == *workload.name()
        }
    };
    let pods = observed.pods.iter().map(AsRef::as_ref);
    pods.filter(move |pod| !pod.is_terminating() && pod.metadata.controller().is_some_and(is_owner))
}

/// Whether a container of a pod is running, or has run.
fn has_started(pod: &Pod) -> bool {
    let status = &pod.status;
    matches!(status.phase.as_deref(), Some("Running" | "Succeeded"))
        || status.container_statuses.iter().any(|container| container.end().is_some())
}

/// The newest pod of a workload that has not ended.
pub fn live_pod<'a, T: Kind>(observed: &'a Observed, workload: &'a Object<T>) -> Option<&'a Pod> {
    newest_pod(observed, workload, false)
}

/// The newest pod of a workload that has failed, or that has not ended.
fn newest_pod<'a, T: Kind>(
    observed: &'a Observed,
    workload: &'a Object<T>,
    is_failed: bool,
) -> Option<&'a Pod> {
    let pods = pods_of(observed, workload).filter(|pod| {
        let phase = pod.status.phase.as_deref();
        phase != Some("Succeeded") && (phase == Some("Failed")) == is_failed
    });
    pods.max_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone()))
}

/// The cause according to the pods of a workload: the newest live pod, or else the newest failed pod.
fn of_pods<T: Kind>(observed: &Observed, workload: &Object<T>) -> Option<Cause> {
    live_pod(observed, workload).and_then(of_pod).or_else(|| {
        let pod = newest_pod(observed, workload, true)?;
        let [reason, message] =
            [&pod.status.reason, &pod.status.message].map(|text| text.as_deref().unwrap_or_default());
        Some(Cause::new(Source::Failure, reason, say(pod, &["has failed", reason, message])))
    })
}

/// The cause according to a live pod.
fn of_pod(pod: &Pod) -> Option<Cause> {
    let status = &pod.status;
    let waits = condition(&status.conditions, ("PodScheduled", "False"));
    let waits = waits.map(|waits| Cause::of(Source::Scheduling, pod, &waits.reason, &waits.message));
    let mut containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    waits.or_else(|| containers.find_map(|container| of_container(pod, container)))
}

/// The cause according to a container.
fn of_container(pod: &Pod, container: &ContainerStatus) -> Option<Cause> {
    let name = format!("container {}", container.name);
    let waits = container.state.waiting.as_ref().map(|waiting| {
        let message = say(pod, &[&name, &waiting.reason, &waiting.message]);
        Cause::new(Source::Waiting, &waiting.reason, message)
    });
    let ended = container.end().map(|end| {
        let code = format!("{} (exit code {})", end.reason, end.exit_code);
        Cause::new(Source::Ended, &end.reason, say(pod, &[&name, &code, &end.message]))
    });
    // The reason of the last end stays the same while the container restarts repeatedly.
    let is_image = waits.as_ref().is_some_and(|waits| waits.row.reason == reason::IMAGE_PULL_FAILED);
    if is_image { waits } else { ended.or(waits) }
}
