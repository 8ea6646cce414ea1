//! The decision about a snapshot: a pure function of the observed state.

use std::time::Duration;

use jiff::Timestamp;

use super::observe::{Observed, instance_key};
use super::trouble::{PATIENCE, Trouble, failure, is_running, trouble, waited};
use super::{children, image};
use crate::api::condition::{Condition, READY};
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::instance::Instance;
use crate::api::instance_snapshot::{InstanceSnapshot, InstanceSnapshotKind, SnapshotPhase};
use crate::api::parts::reserving;
use crate::api::reason::{self, Reason};
use crate::api::{Kind, labels};
use crate::config::SnapshotConfig;
use crate::kinds::{DataVolume, Job, JobEnd, JobKind};
use crate::runtime::ObjectKey;

/// The decision about a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Do nothing: the snapshot has ended.
    Ended,
    /// Wait until the disk or a name is free.
    Wait {
        /// The reason of the condition.
        reason: Reason,
        /// The message of the condition.
        message: String,
    },
    /// Reject the snapshot with this message.
    Refuse(String),
    /// Create the Job.
    Export(Export),
    /// Its Job is running.
    Running {
        /// The name of the image to be pushed.
        destination: String,
        /// The problem of the Job, if any.
        trouble: Option<Trouble>,
        /// The time until the next look; `None` while it makes progress.
        next: Option<Duration>,
    },
    /// The Job is complete: the image is in the registry.
    Complete {
        /// The name of the image.
        destination: String,
        /// The duration of the Job in seconds, if its status states it.
        took: Option<i64>,
    },
    /// The Job has failed, or could not be created in time, with this message.
    Fail(String),
    /// The Job has not started in time, for the reason in this message. It is deleted.
    Abandon(String),
}

/// The input of a Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The name of the `PersistentVolumeClaim` of the disk.
    pub disk: String,
    /// The name of the image to be pushed.
    pub destination: String,
}

/// Decides about a snapshot.
pub fn decide(observed: &Observed, config: &SnapshotConfig, now: Timestamp) -> Decision {
    let snapshot = &observed.snapshot;
    let phase = &snapshot.status.phase;
    match phase {
        SnapshotPhase::Completed => return Decision::Ended,
        SnapshotPhase::Failed if observed.job().is_some() || !is_revised(snapshot) => return Decision::Ended,
        _ => {}
    }
    match observed.job() {
        Some(job) if job.is_controlled_by(&observed.snapshot) => return progress(observed, job, config, now),
        None if *phase == SnapshotPhase::Processing => {
            return Decision::Fail(format!(
                "Job {} was deleted before it was complete: make another snapshot",
                children::job_name(snapshot.name())
            ));
        }
        _ => {}
    }
    let decision = match judge(observed, config, now) {
        Ok(export) => {
            let obstacle = busy(observed, &export.disk).or_else(|| foreign_owner(observed));
            obstacle.unwrap_or(Decision::Export(export))
        }
        Err(message) => Decision::Refuse(format!(
            "{message} It is not possible to complete the InstanceSnapshot {}",
            snapshot.name()
        )),
    };
    expired(snapshot, &decision, config, now).unwrap_or(decision)
}

/// The decision that a snapshot has failed because it has waited too long for its start.
fn expired(
    snapshot: &InstanceSnapshot,
    decision: &Decision,
    config: &SnapshotConfig,
    now: Timestamp,
) -> Option<Decision> {
    let stored = stored_condition(snapshot).filter(|_| snapshot.status.phase == SnapshotPhase::Pending)?;
    let reason = match decision {
        Decision::Wait { reason, message } if *reason != reason::ANOTHER_SNAPSHOT => message.as_str(),
        Decision::Export(_) if is_refused(snapshot) => &stored.message,
        _ => return None,
    };
    // While it waits for another snapshot, the status of the condition is `Unknown`.
    let waited = now.duration_since(stored.last_transition_time.0);
    let is_over = Duration::try_from(waited).is_ok_and(|waited| waited >= config.start_deadline.get());
    (stored.status == "False" && is_over).then(|| Decision::Fail(too_late(config, reason)))
}

/// The message about a snapshot that could not start in time.
fn too_late(config: &SnapshotConfig, reason: &str) -> String {
    let deadline = config.start_deadline;
    format!("it could not start within {deadline} (controllers.snapshot.startDeadline): {reason}")
}

/// Whether the API server rejected the Job of a snapshot at the last attempt.
pub fn is_refused(snapshot: &InstanceSnapshot) -> bool {
    let is_pending = snapshot.status.phase == SnapshotPhase::Pending;
    is_pending
        && stored_condition(snapshot).is_some_and(|stored| {
            stored.reason == reason::QUOTA_EXCEEDED || stored.reason == reason::JOB_REFUSED
        })
}

/// The stored condition [`READY`].
pub fn stored_condition(snapshot: &InstanceSnapshot) -> Option<&Condition> {
    snapshot.status.conditions.iter().find(|condition| condition.type_ == READY)
}

/// Whether the spec of a snapshot was changed since it failed.
fn is_revised(snapshot: &InstanceSnapshot) -> bool {
    let failed_at = snapshot.annotation(labels::SNAPSHOT_OBSERVED_GENERATION);
    let generation = snapshot.metadata.generation.map(|generation| generation.to_string());
    failed_at.is_some() && failed_at != generation.as_deref()
}

/// The decision about a snapshot with a Job.
fn progress(observed: &Observed, job: &Job, config: &SnapshotConfig, now: Timestamp) -> Decision {
    let destination = children::destination(job);
    match job.end() {
        None => {
            let trouble = trouble(observed, job, &config.vm_registry_secret, now);
            let left = config.start_deadline.get().saturating_sub(waited(observed, job, now));
            match trouble.as_ref().filter(|trouble| trouble.is_obstacle()) {
                Some(obstacle) if left.is_zero() => {
                    Decision::Abandon(too_late(config, &obstacle.to_string()))
                }
                obstacle => {
                    let is_watched = obstacle.is_some() || !is_running(observed);
                    let next = is_watched.then(|| PATIENCE.min(left.max(Duration::from_secs(1))));
                    Decision::Running { destination, trouble, next }
                }
            }
        }
        Some(JobEnd::Complete) => {
            let times = job.status.start_time.as_ref().zip(job.status.completion_time.as_ref());
            let took = times.map(|(start, end)| end.0.as_second() - start.0.as_second());
            Decision::Complete { destination, took }
        }
        Some(JobEnd::Failed(condition)) => {
            // The pods of a failed Job may be gone. In that case the reason was reported before.
            let stored = stored_condition(&observed.snapshot);
            let stored = stored.filter(|stored| stored.reason == reason::CONTAINER_FAILED);
            let failure = failure(observed).map(|failure| failure.to_string());
            let failure = failure.or_else(|| stored.map(|stored| stored.message.to_string()));
            let failure = failure.map_or_else(String::new, |failure| format!("; {failure}"));
            Decision::Fail(format!("{}: {}{failure}", condition.reason, condition.message))
        }
    }
}

/// The decision if a Job with another owner has the same name.
fn foreign_owner(observed: &Observed) -> Option<Decision> {
    let job = observed.job()?;
    let is_leftover = job.metadata.controller().is_some_and(|owner| {
        owner.kind == InstanceSnapshotKind::KIND && owner.name == observed.snapshot.name()
    });
    Some(if is_leftover {
        Decision::Wait {
            reason: reason::PREDECESSOR_LEAVING,
            message: format!("Job {} of a deleted snapshot of this name is still being removed", job.name()),
        }
    } else {
        Decision::Refuse(format!(
            "a Job named {} already exists and does not belong to this snapshot: it is left alone; give the snapshot \
             another name",
            job.name()
        ))
    })
}

/// The input of the Job, or the first reason why the snapshot is rejected.
fn judge(observed: &Observed, config: &SnapshotConfig, now: Timestamp) -> Result<Export, String> {
    let snapshot = &observed.snapshot;
    if let Some(reason) = &snapshot.malformed {
        return Err(format!("the spec cannot be read: {reason}."));
    }
    let job = children::job_name(snapshot.name());
    if let Some(part) = reserving(JobKind::KIND, &job) {
        return Err(format!(
            "the name of the Job, {job}, is reserved for {} of an Instance: give the snapshot another name.",
            part.called
        ));
    }
    let key = instance_key(snapshot);
    if key.namespace != snapshot.namespace() {
        return Err(format!(
            "instance {} is in namespace {}: a snapshot is made in the namespace of its instance.",
            key.name, key.namespace
        ));
    }
    let (instance, environment) = found(observed, &key)?;
    let alone = observed.template.as_ref().is_some_and(|template| template.spec.environment_list.len() == 1);
    if instance.spec.running {
        return Err("the vm is running.".to_owned());
    }
    let tenant = &instance.spec.tenant_ref.name;
    if let Some(namespace_tenant) =
        observed.namespace_tenant.as_ref().filter(|namespace_tenant| tenant != *namespace_tenant)
    {
        return Err(format!(
            "instance {} names tenant {tenant}, but namespace {} belongs to tenant {namespace_tenant}: nothing is \
             pushed into the repositories of another tenant.",
            key.name, key.namespace
        ));
    }
    if let Some(repository_owner) = &observed.repository_owner {
        return Err(format!(
            "tenant {tenant} would share the repositories ({}) of tenant {repository_owner}: \
             contact the administrator.",
            image::directory(tenant)
        ));
    }
    let destination = image::destination(&config.vm_registry, tenant, &snapshot.spec.image_name, now)
        .map_err(|message| format!("{message}."))?;
    for (key, value) in
        [("vmRegistry", &config.vm_registry), ("vmRegistrySecret", &config.vm_registry_secret)]
    {
        if value.is_empty() {
            return Err(format!(
                "there is no registry for images (controllers.snapshot.{key} is empty): contact the administrator."
            ));
        }
    }
    Ok(Export { disk: observed.disk(instance, &environment.name, alone), destination })
}

/// The Instance and its environment, or their problem.
fn found<'a>(observed: &'a Observed, key: &ObjectKey) -> Result<(&'a Instance, &'a Environment), String> {
    let ObjectKey { namespace, name } = key;
    let instance = observed.instance.as_deref();
    let instance = instance.ok_or_else(|| format!("instance {name} not found in namespace {namespace}."))?;
    if let Some(reason) = &instance.malformed {
        return Err(format!("instance {name} cannot be read: {reason}."));
    }
    let reference = &instance.spec.template_ref;
    let template = observed.template.as_deref().ok_or_else(|| {
        format!("template {} not found in namespace {}.", reference.name, reference.namespace)
    })?;
    if let Some(reason) = &template.malformed {
        return Err(format!("template {} cannot be read: {reason}.", reference.name));
    }
    let environments = &template.spec.environment_list;
    let wanted = &observed.snapshot.spec.environment_ref.name;
    let environment = if wanted.is_empty() {
        environments.first().ok_or_else(|| format!("template {} has no environment.", reference.name))?
    } else {
        environments
            .iter()
            .find(|environment| *wanted == environment.name)
            .ok_or_else(|| format!("environment {wanted} not found in template {}.", reference.name))?
    };
    let is_machine = matches!(
        environment.environment_type,
        EnvironmentType::VirtualMachine | EnvironmentType::CloudVm | EnvironmentType::LocalVm
    );
    if !is_machine || !environment.persistent {
        return Err(format!("environment {} is not a persistent VM.", environment.name));
    }
    Ok((instance, environment))
}

/// The decision to wait if the disk is in use.
fn busy(observed: &Observed, disk: &str) -> Option<Decision> {
    let wait = |reason, message| Some(Decision::Wait { reason, message });
    if observed.running.iter().any(|machine| machine.name() == disk) {
        return wait(reason::MACHINE_STOPPING, format!("waiting until virtual machine {disk} is off"));
    }
    let ended = |phase: Option<&str>| matches!(phase, Some("Succeeded" | "Failed"));
    if let Some(pod) = observed.pods.iter().find(|pod| !ended(pod.status.phase.as_deref())) {
        return wait(reason::MACHINE_STOPPING, format!("waiting until pod {} has ended", pod.name()));
    }
    let filled = |disk: &DataVolume| disk.status.phase == "Succeeded";
    if let Some(volume) = observed.disks.iter().find(|volume| volume.name() == disk && !filled(volume)) {
        let phase = if volume.status.phase.is_empty() { "Pending" } else { &volume.status.phase };
        let cause = volume.status.conditions.first();
        let cause = cause.map_or_else(String::new, |cause| format!(": {}: {}", cause.reason, cause.message));
        let message = format!("waiting until disk {disk} is filled: it is {phase}{cause}");
        return wait(reason::DISK_NOT_READY, message);
    }
    if let Some(other) = observed.others.iter().find(|other| is_before(other, &observed.snapshot)) {
        let goes_on = |stored: &&Condition| {
            [reason::JOB_RUNNING, reason::CREATING].iter().any(|reason| stored.reason == **reason)
        };
        let cause = stored_condition(other).filter(|stored| !goes_on(stored));
        let cause = cause.map_or_else(String::new, |cause| format!(": {}", cause.message));
        let message =
            format!("waiting until InstanceSnapshot {} of the same instance has ended{cause}", other.name());
        return wait(reason::ANOTHER_SNAPSHOT, message);
    }
    None
}

/// Whether another snapshot of the same Instance is made before this one.
fn is_before(other: &InstanceSnapshot, snapshot: &InstanceSnapshot) -> bool {
    let turn = |snapshot: &InstanceSnapshot| {
        let waits = snapshot.status.phase != SnapshotPhase::Processing;
        (waits, snapshot.metadata.creation_timestamp.clone(), snapshot.name().to_owned())
    };
    turn(other) < turn(snapshot)
}
