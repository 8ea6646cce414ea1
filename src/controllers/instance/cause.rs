//! Why an environment does not run, as the objects that it consists of say.
//!
//! The table of [`CauseRow`] has every word by which they say so, and what it means. A word that it does not have is said as
//! it is.

use std::time::Duration;

use jiff::Timestamp;

use super::observe::Observed;
use crate::api::condition::{Condition, ConditionType, READY, STALLED};
use crate::api::instance::InstancePhase as Phase;
use crate::api::meta::Owner;
use crate::api::reason::{self, CauseRow, Source};
use crate::api::{Kind, Object};
use crate::config::InstanceConfig;
use crate::kinds::{
    ContainerStatus, DataVolume, DataVolumeKind, Deployment, DeploymentKind, ForeignCondition,
    PersistentVolumeClaim, PersistentVolumeClaimKind, Pod, VirtualMachine, VirtualMachineInstance,
    VirtualMachineInstanceKind,
};
use crate::runtime::events::{EventNote, EventType};

/// Why an environment does not run.
#[derive(Debug, Clone)]
pub struct Cause {
    /// What its word means.
    pub row: &'static CauseRow,
    /// The kind and the name of the object, and what it says.
    pub message: String,
}

impl Cause {
    fn new(source: Source, word: &str, message: String) -> Self {
        Self { row: CauseRow::of(source, word), message }
    }

    /// What it says. Between two attempts that is what was said before, if the reason is the same: that there is a pause says
    /// less than why the attempt has failed, and would be written anew at each of them.
    pub fn words<'a>(&'a self, ready: Option<&'a Condition>) -> &'a str {
        let is_pause = self.row.word.ends_with("BackOff");
        let before = ready.filter(|ready| is_pause && ready.reason == *self.row.reason);
        before.map_or(&*self.message, |before| &*before.message)
    }

    /// For how long it has to last until it is called stalled: `None` if it has lasted, or clears itself.
    pub fn left(
        &self,
        conditions: &[Condition],
        config: &InstanceConfig,
        now: Timestamp,
    ) -> Option<Duration> {
        self.row.lasting.as_ref()?;
        let all = config.stalled_after.get();
        let Some(stalled) = conditions.iter().find(|condition| condition.type_ == STALLED) else {
            return Some(all).filter(|all| !all.is_zero());
        };
        if stalled.status == "True" {
            return Some(all).filter(|all| stalled.reason != *self.row.reason && !all.is_zero());
        }
        let passed = now.duration_since(stalled.last_transition_time.0);
        let passed = Duration::try_from(passed).unwrap_or_default();
        Some(all.saturating_sub(passed)).filter(|left| !left.is_zero())
    }

    /// Whether it needs somebody, and has lasted.
    pub fn has_lasted(&self, conditions: &[Condition], config: &InstanceConfig, now: Timestamp) -> bool {
        self.row.lasting.is_some() && self.left(conditions, config, now).is_none()
    }

    /// The event that it is there, or that somebody has to do something about it by now; `None` if that was said.
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
        let is_worse = has_lasted && !was_stalled && *self.phase(true) != self.row.phase;
        if self.row.reason == reason::IMPORTING || is_known && !is_worse {
            return None;
        }
        let is_failure = matches!(self.phase(has_lasted), Phase::Failed | Phase::CreationLoopBackoff);
        let type_ = if is_failure { EventType::Warning } else { EventType::Normal };
        Some(EventNote::new(type_, self.row.reason, &*self.message))
    }

    /// The phase, of a cause that has lasted or not.
    pub fn phase(&self, has_lasted: bool) -> &'static Phase {
        self.row.lasting.as_ref().filter(|_| has_lasted).unwrap_or(&self.row.phase)
    }
}

/// The words of an object: its kind, its name, and those texts of it that are not empty.
fn say<T: Kind>(object: &Object<T>, texts: &[&str]) -> String {
    let texts: Vec<&str> = texts.iter().copied().filter(|text| !text.is_empty()).collect();
    format!("{} {}: {}", T::KIND, object.name(), texts.join(": "))
}

/// The cause in what a Deployment and its pods say, which has no pod that is ready.
pub fn of_deployment(observed: &Observed, deployment: &Deployment) -> Option<Cause> {
    let conditions = &deployment.status.conditions;
    let refusal = refusal(deployment, conditions, "ReplicaFailure");
    let pod = refusal.or_else(|| of_pods(observed, deployment));
    let claim = observed.own::<PersistentVolumeClaimKind>(deployment.name());
    let claim = claim.and_then(|claim| of_claim(claim, pod.as_ref()));
    claim.or(pod).or_else(|| {
        let late = conditions.iter().find(|condition| condition.type_ == "Progressing")?;
        Some(Cause::new(Source::Rollout, &late.reason, say(deployment, &[&late.reason, &late.message])))
    })
}

/// The cause in what a `VirtualMachine` that is not ready says, and the objects that KubeVirt has made for it.
pub fn of_machine(observed: &Observed, machine: &VirtualMachine) -> Option<Cause> {
    let name = machine.name();
    let state = machine.status.printable_status.as_str();
    let running = observed.named::<VirtualMachineInstanceKind>(name);
    let disk = observed.named::<DataVolumeKind>(name);
    let below = || {
        let running = running.and_then(|running| of_running_machine(observed, running));
        // One that has ended is replaced, with the same disk.
        let running = running.filter(|cause| cause.row.source != Source::MachineInstance);
        running.or_else(|| disk.and_then(of_disk))
    };
    match state {
        "" | "Stopped" | "Stopping" | "Terminating" | "Running" | "Migrating" | "WaitingForReceiver" => None,
        "Provisioning" | "Starting" | "WaitingForVolumeBinding" => below(),
        _ => {
            let untrue =
                |condition: &&ForeignCondition| condition.status != "True" && !condition.message.is_empty();
            let message = machine.status.conditions.iter().find(untrue).map_or("", |untrue| &untrue.message);
            let cause = Cause::new(Source::Machine, state, say(machine, &[state, message]));
            // The others say more than the state.
            let words = below().filter(|below| below.row.lasting.is_some() && cause.row.lasting.is_some());
            Some(Cause { message: words.map_or(cause.message, |words| words.message), ..cause })
        }
    }
}

/// The cause in what a `VirtualMachineInstance` that is not ready says, and its pod.
pub fn of_running_machine(observed: &Observed, machine: &VirtualMachineInstance) -> Option<Cause> {
    let status = &machine.status;
    let condition = |type_: &str, value: &str| {
        status.conditions.iter().find(|condition| condition.type_ == type_ && condition.status == value)
    };
    match &*status.phase {
        "" | "Pending" | "Scheduling" | "Scheduled" => {
            let refusal = refusal(machine, &status.conditions, "Synchronized");
            refusal.or_else(|| of_pods(observed, machine)).or_else(|| {
                let waits = condition("PodScheduled", "False")?;
                Some(Cause::new(
                    Source::Scheduling,
                    &waits.reason,
                    say(machine, &[&waits.reason, &waits.message]),
                ))
            })
        }
        "Running" => {
            let paused = condition("Paused", "True")?;
            let message = say(machine, &["Paused", &paused.message]);
            Some(Cause::new(Source::MachineInstance, "Paused", message))
        }
        phase => Some(Cause::new(Source::MachineInstance, phase, say(machine, &[phase]))),
    }
}

/// The cause in what the import of a disk says.
fn of_disk(disk: &DataVolume) -> Option<Cause> {
    let status = &disk.status;
    if let Some(failed) = status.conditions.first() {
        return Some(Cause::new(Source::Disk, &failed.reason, say(disk, &[&failed.reason, &failed.message])));
    }
    match &*status.phase {
        "Failed" => Some(Cause::new(Source::Disk, "Failed", say(disk, &["Failed"]))),
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

/// The cause in what the claim of a pod says: that it is lost, or not bound while the pod cannot be scheduled. Until then,
/// it may be bound by the first pod that needs it.
fn of_claim(claim: &PersistentVolumeClaim, pod: Option<&Cause>) -> Option<Cause> {
    let phase = &*claim.status.phase;
    let waits = pod.filter(|pod| pod.row.source == Source::Scheduling);
    match (phase, waits) {
        ("Lost", _) => Some(Cause::new(Source::Claim, phase, say(claim, &[phase, "its volume is gone"]))),
        ("Pending", Some(pod)) => {
            let class = claim.spec.storage_class_name.as_ref().map_or_else(
                || "it has no storage class, and the cluster no default one".to_owned(),
                |class| format!("storage class {class}"),
            );
            let message = format!("{}; {}", say(claim, &[phase, &class]), pod.message);
            Some(Cause::new(Source::Claim, phase, message))
        }
        _ => None,
    }
}

/// The cause that an object may not make its pod, which a condition of it says.
fn refusal<T: Kind>(object: &Object<T>, conditions: &[ForeignCondition], type_: &str) -> Option<Cause> {
    let refused = conditions.iter().find(|condition| {
        condition.type_ == type_
            && (condition.reason == "FailedCreate" || condition.reason == "FailedCreatePod")
    })?;
    Some(Cause::new(Source::Refusal, &refused.message, say(object, &[&refused.message])))
}

/// The cause in what the pods of a workload say: the newest that lives, or else the newest that has failed. The pods of a
/// Deployment belong to a `ReplicaSet`.
fn of_pods<T: Kind>(observed: &Observed, workload: &Object<T>) -> Option<Cause> {
    let is_owner = |owner: &Owner| {
        if T::KIND == DeploymentKind::KIND {
            let hash = owner.name.strip_prefix(workload.name()).and_then(|rest| rest.strip_prefix('-'));
            owner.kind == "ReplicaSet" && hash.is_some_and(|hash| !hash.contains('-'))
        } else {
            owner.kind == T::KIND && *owner.name == *workload.name()
        }
    };
    let newest = |is_failed: bool| {
        let pods = observed.pods.iter().filter(|pod| {
            let phase = pod.status.phase.as_deref();
            !pod.is_terminating()
                && phase != Some("Succeeded")
                && (phase == Some("Failed")) == is_failed
                && pod.metadata.controller().is_some_and(is_owner)
        });
        pods.max_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone()))
    };
    newest(false).and_then(|pod| of_pod(pod)).or_else(|| {
        let pod = newest(true)?;
        let [reason, message] =
            [&pod.status.reason, &pod.status.message].map(|text| text.as_deref().unwrap_or_default());
        Some(Cause::new(Source::Failure, reason, say(pod, &["has failed", reason, message])))
    })
}

/// The cause in what a pod says that lives.
fn of_pod(pod: &Pod) -> Option<Cause> {
    let status = &pod.status;
    let waits = status.conditions.first().map(|waits| {
        Cause::new(Source::Scheduling, &waits.reason, say(pod, &[&waits.reason, &waits.message]))
    });
    let mut containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    waits.or_else(|| containers.find_map(|container| of_container(pod, container)))
}

/// The cause in what a container says.
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
    // How it has ended stays the same while it is started again and again.
    let is_image = waits.as_ref().is_some_and(|waits| waits.row.reason == reason::IMAGE_PULL_FAILED);
    if is_image { waits } else { ended.or(waits) }
}
