//! The status of a snapshot, and what is told of it.

use jiff::Timestamp;
use serde_json::json;

use super::decide::{Decision, decide};
use super::observe::Observed;
use super::plan::{FAILED, REFUSED};
use crate::api::condition::Condition;
use crate::api::instance_snapshot::{
    InstanceSnapshot, InstanceSnapshotKind, InstanceSnapshotStatus, SnapshotPhase,
};
use crate::api::labels;
use crate::config::SnapshotConfig;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::{ObjectPatch, Plan};
use crate::runtime::reconciler::{Outcome, Report};

/// Condition: whether the image is in the registry.
const READY: &str = "Ready";
/// The reason of a Job that is about to be made.
pub const CREATING: &str = "Creating";
/// The reason of a Job that gets no pod.
const STARVED: &str = "WaitingForPod";

/// The report of a reconcile.
#[must_use]
pub fn report(
    observed: &Observed,
    config: &SnapshotConfig,
    plan: &Plan,
    outcome: &Outcome<()>,
    now: Timestamp,
) -> Report<InstanceSnapshotKind> {
    let snapshot = &observed.snapshot;
    let Some(decision) = decision(observed, config, plan, outcome, now) else {
        return Report::unchanged(snapshot);
    };
    let report = tell(snapshot, &decision, now);
    let has_failed = matches!(decision, Decision::Refuse(_) | Decision::Fail(_));
    Report { patch: has_failed.then(|| failed_generation(snapshot)).flatten(), ..report }
}

/// What is told: what the plan decided, corrected by what came of it. `None` where there is no news.
fn decision(
    observed: &Observed,
    config: &SnapshotConfig,
    plan: &Plan,
    outcome: &Outcome<()>,
    now: Timestamp,
) -> Option<Decision> {
    if let Some(failure) = outcome.failures.first() {
        return match &failure.error {
            ApiError::QuotaExceeded(message) => {
                let message = format!("the Job cannot be made: {message}");
                Some(Decision::Wait { reason: "ResourceQuotaExceeded", message })
            }
            ApiError::Invalid(_) | ApiError::NameConflict { .. } => {
                Some(Decision::Refuse(failure.to_string()))
            }
            _ => None,
        };
    }
    let Some(problem) = plan.problems.first() else {
        let decision = decide(observed, config, now);
        let is_told = match decision {
            Decision::Export(_) => !outcome.is_applied,
            Decision::Running { .. } | Decision::Complete { .. } | Decision::Fail(_) => true,
            // Something has changed since the plan was made: that asks for another reconcile.
            Decision::Ended | Decision::Wait { .. } | Decision::Refuse(_) => false,
        };
        return Some(decision).filter(|_| is_told);
    };
    let message = problem.message.clone();
    Some(match problem.reason {
        REFUSED => Decision::Refuse(message),
        FAILED => Decision::Fail(message),
        reason => Decision::Wait { reason, message },
    })
}

/// Writes on a snapshot for which generation of its spec it failed: it is looked at again when that has
/// changed.
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
        Decision::Export(_) => (SnapshotPhase::Pending, CREATING, "the Job is being made".to_owned()),
        Decision::Refuse(message) => (SnapshotPhase::Failed, REFUSED, message.clone()),
        Decision::Running { destination, starved } => {
            running(&super::job::name(snapshot.name()), destination, *starved)
        }
        Decision::Complete { destination, took } => (
            SnapshotPhase::Completed,
            "Completed",
            format!("Image {destination} created and uploaded{}", within(*took)),
        ),
        Decision::Fail(message) => (SnapshotPhase::Failed, FAILED, message.clone()),
    };
    let observation = Observation {
        type_: READY,
        holds: Some(phase == SnapshotPhase::Completed),
        reason: reason.to_owned(),
        message,
    };
    let events = events(snapshot, decision, &phase, &observation);
    let generation = snapshot.metadata.generation;
    let conditions = conditions::merge(&old.conditions, &[observation], &[], generation, now);
    Report::new(InstanceSnapshotStatus { phase, conditions }, events)
}

/// What a Job does that has not ended.
fn running(job: &str, destination: &str, starved: bool) -> (SnapshotPhase, &'static str, String) {
    if starved {
        let message = format!(
            "Job {job} has no pod: see its events. A ResourceQuota of the namespace may leave no room for it \
             (controllers.snapshot.pusherMemoryLimit counts against it)"
        );
        return (SnapshotPhase::Processing, STARVED, message);
    }
    (SnapshotPhase::Processing, "JobRunning", format!("Job {job} makes image {destination}"))
}

fn told(snapshot: &InstanceSnapshot) -> Option<&Condition> {
    snapshot.status.conditions.iter().find(|condition| condition.type_ == READY)
}

/// One event for each transition.
fn events(
    snapshot: &InstanceSnapshot,
    decision: &Decision,
    phase: &SnapshotPhase,
    now: &Observation,
) -> Vec<EventNote> {
    let before = &snapshot.status.phase;
    let note = |type_, reason: &str, message: String| EventNote { type_, reason: reason.to_owned(), message };
    let mut events = Vec::new();
    let is_new = matches!(before, SnapshotPhase::Unset | SnapshotPhase::Failed);
    if is_new && !matches!(decision, Decision::Running { .. } | Decision::Complete { .. } | Decision::Fail(_))
    {
        events.push(note(EventType::Normal, "Validating", "Start validation of the request".to_owned()));
    }
    let is_told = told(snapshot).is_some_and(|told| told.reason == now.reason && told.message == now.message);
    if is_told {
        return events;
    }
    let image = &snapshot.spec.image_name;
    match decision {
        Decision::Ended | Decision::Export(_) => {}
        Decision::Wait { reason, message } => events.push(note(EventType::Normal, reason, message.clone())),
        Decision::Refuse(message) => events.push(note(EventType::Warning, REFUSED, message.clone())),
        Decision::Running { .. } if phase == before => {
            let type_ = if now.reason == STARVED { EventType::Warning } else { EventType::Normal };
            events.push(note(type_, &now.reason, now.message.clone()));
        }
        Decision::Running { .. } => {
            let message = format!("Job {} for snapshot creation started", super::job::name(snapshot.name()));
            events.push(note(EventType::Normal, "Creation", message));
        }
        Decision::Complete { took, .. } => {
            let message = format!("Image {image} created and uploaded{}", within(*took));
            events.push(note(EventType::Normal, "Created", message));
        }
        Decision::Fail(message) => {
            let message = format!("The creation job failed: {message}");
            events.push(note(EventType::Warning, FAILED, message));
        }
    }
    events
}

/// How long it took, as the end of a sentence.
fn within(took: Option<i64>) -> String {
    took.map_or_else(String::new, |seconds| format!(" in {}", go_duration(seconds)))
}

/// A time in the notation of Go, which readers of these events know: `59s`, `4m0s`, `1h1m1s`.
fn go_duration(seconds: i64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, minutes) => format!("{minutes}m{rest}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_go() {
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (240, "4m0s"), (3661, "1h1m1s"), (7200, "2h0m0s"), (90_000, "25h0m0s")]
        {
            assert_eq!(go_duration(seconds), text);
        }
    }
}
