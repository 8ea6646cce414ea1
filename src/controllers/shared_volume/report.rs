//! The status of a shared volume: a pure function of the state after the plan was carried out, and of the failures.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::observe::Observed;
use super::reconcile::Settings;
use crate::api::condition::{ConditionType, DELETION_BLOCKED, NAME_CONFLICT, READY};
use crate::api::reason::{self, Reason};
use crate::api::shared_volume::{SharedVolumeKind, SharedVolumePhase};
use crate::api::{labels, shown};
use crate::controllers::shared::nfs_volume::{is_bound, location};
use crate::controllers::shared::problems;
use crate::controllers::shared::responsibility::Standing;
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::error::ApiError;
use crate::runtime::events::EventNote;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{Reconciled, Report};
use crate::runtime::{ObjectKey, finalizer};

/// The maximum number of Templates and Instances in a message.
const NAMED: usize = 20;

/// The reason and message of a failed write.
fn describe(failure: &Failure) -> (Reason, String) {
    let ApiError::QuotaExceeded(message) = &failure.error else { return problems::describe(failure) };
    (reason::QUOTA_EXCEEDED, format!("PVC exceeded the resource quota: {message}"))
}

/// The report of a reconcile.
pub fn report(done: &Reconciled<'_, Observed, Settings>) -> Report<SharedVolumeKind> {
    let Reconciled { observed, settings, plan, outcome, now } = *done;
    if observed.standing == Standing::Deselected {
        return Report::unchanged(&observed.volume);
    }
    if observed.volume.is_terminating() {
        return deleting(observed, now);
    }
    let old = &observed.volume.status;
    let problems = problems::problems(plan, outcome, now, describe);
    let mut status = old.clone();
    let storage =
        observed.own_claim().filter(|claim| is_bound(claim)).and(observed.persistent_volume.as_deref());
    if let Some(storage) = storage.filter(|storage| settings.is_usable(storage)) {
        if let Some(found) = location(storage) {
            status.server_address = found.server;
            status.export_path = found.share;
        }
        storage.name().clone_into(&mut status.pv_name);
    }
    status.phase = phase(observed, &problems);
    status.observed_generation = observed.volume.metadata.generation;
    let own = vec![ready(&status.phase, &problems)];
    let well = "All objects of the volume are up to date";
    let stalled_after = settings.stalled_after;
    status.conditions =
        problems::conditions(&observed.volume, &old.conditions, own, &problems, well, stalled_after, now);
    let requeue_after = problems::requeue_after(&status.conditions, stalled_after, now);
    Report { requeue_after, ..Report::new(status, problems::events(&old.conditions, &problems)) }
}

fn phase(observed: &Observed, problems: &[Problem]) -> SharedVolumePhase {
    if problems.iter().any(|problem| problem.reason == reason::QUOTA_EXCEEDED) {
        return SharedVolumePhase::ResourceQuotaExceeded;
    }
    let is_pending = |problem: &Problem| {
        problem.waiting || [reason::STORAGE_CLASS_NOT_FOUND, reason::VOLUME_UNBOUND].contains(&problem.reason)
    };
    if !problems.iter().all(is_pending) {
        return SharedVolumePhase::Error;
    }
    let Some(claim) = observed.own_claim().filter(|claim| is_bound(claim)) else {
        return SharedVolumePhase::Pending;
    };
    if observed.persistent_volume.is_none() {
        return SharedVolumePhase::Pending;
    }
    let is_prepared = claim.label(labels::VOLUME_PROVISIONING) == Some(labels::PROVISIONING_COMPLETED);
    if is_prepared && finalizer::holds(&observed.volume, labels::SHARED_VOLUME_FINALIZER) {
        SharedVolumePhase::Ready
    } else {
        SharedVolumePhase::Provisioning
    }
}

fn ready(phase: &SharedVolumePhase, problems: &[Problem]) -> Observation {
    let worst = problems.iter().find(|problem| !problem.waiting).or(problems.first());
    let (reason, message) = match (phase, worst) {
        (SharedVolumePhase::Ready, _) => (reason::READY, "The volume can be mounted"),
        (_, Some(worst)) => (worst.reason, worst.message.as_str()),
        (SharedVolumePhase::Provisioning, None) => {
            (reason::PROVISIONING, "The volume is being prepared for the machines")
        }
        (_, None) => (reason::PENDING, "The claim waits for its storage"),
    };
    Observation::new(READY, *phase == SharedVolumePhase::Ready, reason, message)
}

/// The report of a volume that is being deleted and still in use.
fn deleting(observed: &Observed, now: Timestamp) -> Report<SharedVolumeKind> {
    let old = &observed.volume.status;
    let mut status = old.clone();
    status.phase = SharedVolumePhase::Deleting;
    let mut observations =
        vec![Observation::new(READY, false, reason::DELETING, "The volume is being deleted")];
    let mut events = Vec::new();
    if let Some(message) = blocked(observed) {
        let before = old.conditions.iter().find(|condition| condition.type_ == DELETION_BLOCKED);
        let message = shown::message(&message);
        if before.is_none_or(|before| before.message != message) {
            events.push(EventNote::warning(reason::DELETION_BLOCKED, &*message));
        }
        observations.push(Observation::new(DELETION_BLOCKED, true, reason::IN_USE, message));
    }
    let retired: &[ConditionType] =
        if observations.len() > 1 { &[NAME_CONFLICT] } else { &[NAME_CONFLICT, DELETION_BLOCKED] };
    let generation = observed.volume.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, &observations, retired, generation, now);
    Report::new(status, events)
}

/// The message of the condition [`DELETION_BLOCKED`]; `None` if the volume is unused.
fn blocked(observed: &Observed) -> Option<String> {
    let Observed { templates, instances, mirrors, .. } = observed;
    if !observed.is_used() {
        return None;
    }
    let names: BTreeSet<&str> =
        templates.iter().chain(instances).chain(mirrors).map(|key| key.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().take(NAMED).collect();
    let users =
        [("Templates", templates), ("Instances", instances), ("PersistentVolumes of mirrors", mirrors)];
    let lists: Vec<String> = users
        .into_iter()
        .filter(|(_, keys)| !keys.is_empty())
        .map(|(kind, keys)| format!("{kind} {}", listed(keys)))
        .collect();
    Some(format!(
        "Cannot delete shvol since it is mounted on [{}] ({}): it is deleted as soon as none of them mounts it",
        names.join(" "),
        lists.join("; ")
    ))
}

/// The first keys, and the number of further ones.
fn listed(keys: &BTreeSet<ObjectKey>) -> String {
    let names: Vec<String> = keys.iter().take(NAMED).map(ToString::to_string).collect();
    let more = keys.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
