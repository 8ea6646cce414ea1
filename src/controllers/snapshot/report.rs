//! The status, the condition and the events of a snapshot.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::children::job_name;
use super::decide::{Decision, decide, is_refused, stored_condition};
use super::observe::Observed;
use super::trouble::Trouble;
use crate::api::condition::{Condition, READY, STALLED};
use crate::api::instance_snapshot::{
    InstanceSnapshot, InstanceSnapshotKind, InstanceSnapshotStatus, SnapshotPhase,
};
use crate::api::labels;
use crate::api::reason::{self, Reason};
use crate::config::SnapshotConfig;
use crate::runtime::clock::go_duration;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::ObjectPatch;
use crate::runtime::reconciler::{Reconciled, Report};

/// The report of a reconcile.
pub fn report(done: &Reconciled<'_, Observed, SnapshotConfig>) -> Report<InstanceSnapshotKind> {
    let snapshot = &done.observed.snapshot;
    let Some(decision) = decision(done) else { return Report::unchanged(snapshot) };
    let report = tell(snapshot, &decision, done.now);
    let has_failed = matches!(decision, Decision::Refuse(_) | Decision::Fail(_));
    Report { patch: has_failed.then(|| failed_generation(snapshot)).flatten(), ..report }
}

/// The decision to report: the decision of the plan, corrected by its outcome; `None` if there is nothing to report.
fn decision(done: &Reconciled<'_, Observed, SnapshotConfig>) -> Option<Decision> {
    let Reconciled { observed, settings: config, plan, outcome, now } = *done;
    if let Some(failure) = outcome.failures.first() {
        let wait = |reason, cause: &str| {
            Some(Decision::Wait { reason, message: format!("the Job cannot be created: {cause}") })
        };
        return match &failure.error {
            ApiError::QuotaExceeded(message) => wait(reason::QUOTA_EXCEEDED, message),
            error @ ApiError::Forbidden(_) => wait(reason::JOB_REFUSED, &error.to_string()),
            ApiError::Invalid(_) | ApiError::NameConflict { .. } => {
                Some(Decision::Refuse(failure.to_string()))
            }
            _ => None,
        };
    }
    let Some(problem) = plan.problems.first() else {
        let decision = decide(observed, config, now);
        let is_reported = match decision {
            Decision::Export(_) => !outcome.is_applied && !is_refused(&observed.snapshot),
            Decision::Running { .. } | Decision::Complete { .. } | Decision::Fail(_) => true,
            // The state has changed since the plan was made, which causes another reconcile.
            Decision::Ended | Decision::Wait { .. } | Decision::Refuse(_) | Decision::Abandon(_) => false,
        };
        return Some(decision).filter(|_| is_reported);
    };
    let message = problem.message.clone();
    Some(match problem.reason {
        reason::VALIDATION_ERROR => Decision::Refuse(message),
        reason::CREATION_FAILED => Decision::Fail(message),
        reason => Decision::Wait { reason, message },
    })
}

/// The patch that annotates a failed snapshot with the generation of its spec. The snapshot is retried when the spec
/// changes.
fn failed_generation(snapshot: &InstanceSnapshot) -> Option<ObjectPatch> {
    let generation = snapshot.metadata.generation.unwrap_or_default().to_string();
    let annotations = json!({labels::SNAPSHOT_OBSERVED_GENERATION: generation});
    ObjectPatch::of(snapshot, &json!({"metadata": {"annotations": annotations}}))
}

/// The status and the events of a decision.
pub(super) fn tell(
    snapshot: &InstanceSnapshot,
    decision: &Decision,
    now: Timestamp,
) -> Report<InstanceSnapshotKind> {
    let old = &snapshot.status;
    let (phase, reason, message) = match decision {
        Decision::Ended => return Report::unchanged(snapshot),
        Decision::Wait { reason, message } => (SnapshotPhase::Pending, *reason, message.clone()),
        Decision::Export(_) => {
            (SnapshotPhase::Pending, reason::CREATING, "the Job is being created".to_owned())
        }
        Decision::Refuse(message) => (SnapshotPhase::Failed, reason::VALIDATION_ERROR, message.clone()),
        Decision::Running { destination, trouble, .. } => running(snapshot, destination, trouble.as_ref()),
        Decision::Complete { destination, took } => (
            SnapshotPhase::Completed,
            reason::COMPLETED,
            format!("Image {destination} created and uploaded{}", within(*took)),
        ),
        Decision::Fail(message) | Decision::Abandon(message) => {
            (SnapshotPhase::Failed, reason::CREATION_FAILED, message.clone())
        }
    };
    let mut observation = Observation::new(READY, phase == SnapshotPhase::Completed, reason, message);
    if reason == reason::ANOTHER_SNAPSHOT {
        // Its last transition then marks the start of the snapshot's own turn.
        observation.holds = None;
    }
    let has_failed = phase == SnapshotPhase::Failed;
    let stalled =
        has_failed.then(|| Observation { type_: STALLED, holds: Some(true), ..observation.clone() });
    // A new attempt restarts the time.
    let retired = if old.phase == SnapshotPhase::Failed { &[READY, STALLED][..] } else { &[] };
    let events = events(snapshot, decision, &phase, &observation);
    let generation = snapshot.metadata.generation;
    let observations: Vec<Observation> = [observation].into_iter().chain(stalled).collect();
    let conditions = conditions::merge(&old.conditions, &observations, retired, generation, now);
    Report::new(InstanceSnapshotStatus { observed_generation: generation, phase, conditions }, events)
}

/// Phase, reason and message while the Job is running.
fn running(
    snapshot: &InstanceSnapshot,
    destination: &str,
    trouble: Option<&Trouble>,
) -> (SnapshotPhase, Reason, String) {
    let Some(trouble) = trouble else {
        let message = format!("Job {} makes image {destination}", job_name(snapshot.name()));
        return (SnapshotPhase::Processing, reason::JOB_RUNNING, message);
    };
    // The scheduler and the kubelet word the same problem differently at each attempt.
    let is_same =
        |stored: &&Condition| stored.reason == trouble.reason && stored.message.starts_with(&trouble.subject);
    let stored = stored_condition(snapshot).filter(|stored| trouble.is_obstacle() && is_same(stored));
    let message = stored.map_or_else(|| trouble.to_string(), |stored| stored.message.to_string());
    (SnapshotPhase::Processing, trouble.reason, message)
}

/// One event for each transition.
fn events(
    snapshot: &InstanceSnapshot,
    decision: &Decision,
    phase: &SnapshotPhase,
    now: &Observation,
) -> Vec<EventNote> {
    let before = &snapshot.status.phase;
    let mut events = Vec::new();
    let is_new = matches!(before, SnapshotPhase::Unset | SnapshotPhase::Failed);
    let has_begun = matches!(
        decision,
        Decision::Running { .. } | Decision::Complete { .. } | Decision::Fail(_) | Decision::Abandon(_)
    );
    if is_new && !has_begun {
        let message = "Start validation of the request";
        events.push(EventNote::new(EventType::Normal, reason::VALIDATING, message));
    }
    let is_reported = stored_condition(snapshot)
        .is_some_and(|stored| stored.reason == now.reason && stored.message == now.message);
    if is_reported {
        return events;
    }
    let image = &snapshot.spec.image_name;
    let note = match decision {
        Decision::Ended | Decision::Export(_) => return events,
        Decision::Wait { reason, message } => EventNote::new(EventType::Normal, *reason, message),
        Decision::Refuse(message) => EventNote::warning(reason::VALIDATION_ERROR, message),
        Decision::Running { .. } if phase == before => {
            let type_ =
                if now.reason == reason::JOB_RUNNING { EventType::Normal } else { EventType::Warning };
            EventNote::new(type_, now.reason, &now.message)
        }
        Decision::Running { .. } => {
            let message = format!("Job {} for snapshot creation started", job_name(snapshot.name()));
            EventNote::new(EventType::Normal, reason::CREATION, message)
        }
        Decision::Complete { took, .. } => {
            let message = format!("Image {image} created and uploaded{}", within(*took));
            EventNote::new(EventType::Normal, reason::CREATED, message)
        }
        Decision::Fail(message) | Decision::Abandon(message) => {
            EventNote::warning(reason::CREATION_FAILED, format!("The creation job failed: {message}"))
        }
    };
    events.push(note);
    events
}

/// The duration of the Job, as the end of a sentence.
fn within(took: Option<i64>) -> String {
    let seconds = took.map(|seconds| u64::try_from(seconds).unwrap_or_default());
    seconds.map_or_else(String::new, |seconds| format!(" in {}", go_duration(Duration::from_secs(seconds))))
}
