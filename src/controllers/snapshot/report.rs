//! The status of a snapshot, and what is told of it.

use jiff::Timestamp;

use super::step::Step;
use crate::api::condition::Condition;
use crate::api::instance_snapshot::{InstanceSnapshot, InstanceSnapshotStatus, SnapshotPhase};
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::{EventNote, EventType};

/// Condition: whether the image is in the registry.
const READY: &str = "Ready";
/// The reason of a Job that is about to be made.
pub const CREATING: &str = "Creating";
/// The reason of a snapshot that cannot be made.
const REFUSED: &str = "ValidationError";
/// The reason of a snapshot whose Job failed.
const FAILED: &str = "CreationFailed";
/// The reason of a Job that gets no pod.
const STARVED: &str = "WaitingForPod";

/// What a pass reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The whole status.
    pub status: InstanceSnapshotStatus,
    /// What changed, for `kubectl describe`.
    pub events: Vec<EventNote>,
}

/// What is told of a step; nothing where there is no news.
#[must_use]
pub fn report(snapshot: &InstanceSnapshot, step: &Step, now: Timestamp) -> Option<Report> {
    let old = &snapshot.status;
    let (phase, reason, message) = match step {
        Step::Ended => return None,
        Step::Wait { reason, message } => (SnapshotPhase::Pending, *reason, message.clone()),
        Step::Export(_) => (SnapshotPhase::Pending, CREATING, "the Job is being made".to_owned()),
        Step::Refuse(message) => (SnapshotPhase::Failed, REFUSED, message.clone()),
        Step::Running { destination, starved } => {
            running(&super::job::name(snapshot.name()), destination, *starved)
        }
        Step::Complete { destination, took } => (
            SnapshotPhase::Completed,
            "Completed",
            format!("Image {destination} created and uploaded{}", within(*took)),
        ),
        Step::Fail(message) => (SnapshotPhase::Failed, FAILED, message.clone()),
    };
    let observation = Observation {
        type_: READY,
        holds: Some(phase == SnapshotPhase::Completed),
        reason: reason.to_owned(),
        message,
    };
    let events = events(snapshot, step, &phase, &observation);
    let generation = snapshot.metadata.generation;
    let conditions = conditions::merge(&old.conditions, &[observation], &[], generation, now);
    Some(Report { status: InstanceSnapshotStatus { phase, conditions }, events })
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

/// One event for each transition (B-SN-2).
fn events(
    snapshot: &InstanceSnapshot,
    step: &Step,
    phase: &SnapshotPhase,
    now: &Observation,
) -> Vec<EventNote> {
    let before = &snapshot.status.phase;
    let note = |type_, reason: &str, message: String| EventNote { type_, reason: reason.to_owned(), message };
    let mut events = Vec::new();
    let is_new = matches!(before, SnapshotPhase::Unset | SnapshotPhase::Failed);
    if is_new && !matches!(step, Step::Running { .. } | Step::Complete { .. } | Step::Fail(_)) {
        events.push(note(EventType::Normal, "Validating", "Start validation of the request".to_owned()));
    }
    let is_told = told(snapshot).is_some_and(|told| told.reason == now.reason && told.message == now.message);
    if is_told {
        return events;
    }
    let image = &snapshot.spec.image_name;
    match step {
        Step::Ended | Step::Export(_) => {}
        Step::Wait { reason, message } => events.push(note(EventType::Normal, reason, message.clone())),
        Step::Refuse(message) => events.push(note(EventType::Warning, REFUSED, message.clone())),
        Step::Running { .. } if phase == before => {
            let type_ = if now.reason == STARVED { EventType::Warning } else { EventType::Normal };
            events.push(note(type_, &now.reason, now.message.clone()));
        }
        Step::Running { .. } => {
            let message = format!("Job {} for snapshot creation started", super::job::name(snapshot.name()));
            events.push(note(EventType::Normal, "Creation", message));
        }
        Step::Complete { took, .. } => {
            let message = format!("Image {image} created and uploaded{}", within(*took));
            events.push(note(EventType::Normal, "Created", message));
        }
        Step::Fail(message) => {
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
