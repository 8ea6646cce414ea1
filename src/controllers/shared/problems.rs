//! Problems and failures of a reconcile, as conditions and events.

use jiff::Timestamp;

use crate::api::condition::{
    ACCOUNT_EXISTS, Condition, ConditionType, NAME_CONFLICT, READY, RECONCILED, STALLED, TENANT_MISMATCH,
};
use crate::api::reason::{self, Reason};
use crate::api::{Kind, Object};
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::Outcome;

/// The problems that have a condition of their own.
const CONFLICTS: [(Reason, ConditionType); 3] = [
    (reason::NAME_CONFLICT, NAME_CONFLICT),
    (reason::TENANT_MISMATCH, TENANT_MISMATCH),
    (reason::ACCOUNT_EXISTS, ACCOUNT_EXISTS),
];

/// The problems of the plan, and the writes and effects that failed. Transient failures are left out: the
/// next attempt usually succeeds, and their condition would disappear again at once. `describe` returns
/// reason and message of a failure; those of name conflicts are made here.
pub fn problems<E, R>(
    plan: &Plan<E>,
    outcome: &Outcome<R>,
    describe: impl Fn(&Failure) -> (Reason, String),
) -> Vec<Problem> {
    let planned = plan.problems.iter().cloned();
    let failed = outcome.failures.iter().filter(|failure| !failure.error.is_transient()).map(|failure| {
        let (reason, message) = match &failure.error {
            error @ ApiError::NameConflict { .. } => {
                (reason::NAME_CONFLICT, format!("{error}: it is left alone"))
            }
            _ => describe(failure),
        };
        let stalled = matches!(failure.error, ApiError::NameConflict { .. } | ApiError::Invalid(_));
        Problem { stalled, ..Problem::fault(failure.component.clone(), reason, message) }
    });
    planned.chain(failed).chain(outcome.effect_problems().cloned()).collect()
}

/// Reason and message of a failed write, for loops that distinguish no kinds of failures.
pub fn describe(failure: &Failure) -> (Reason, String) {
    (reason::ENFORCEMENT_FAILED, failure.to_string())
}

/// The condition `Ready`. `state` are its reason and message when there is no problem.
pub fn ready(is_ready: bool, problems: &[Problem], state: (Reason, &str)) -> Observation {
    let problem = problems.first().map(|problem| (problem.reason, "See condition Reconciled"));
    let (reason, message) = problem.unwrap_or(state);
    Observation::new(READY, is_ready, reason, message)
}

/// The condition [`STALLED`], if there is such a problem.
fn stalled(problems: &[Problem]) -> Option<Observation> {
    let problem = problems.iter().find(|problem| problem.stalled)?;
    Some(Observation::new(STALLED, true, problem.reason, &*problem.message))
}

/// The conditions of an object after a reconcile: `own`, [`RECONCILED`], [`STALLED`], and those of [`CONFLICTS`] that there
/// are. Those of other loops stay as they are. `well` is the message of [`RECONCILED`] if there is no problem.
pub fn conditions<T: Kind>(
    object: &Object<T>,
    old: &[Condition],
    mut own: Vec<Observation>,
    problems: &[Problem],
    well: &str,
    now: Timestamp,
) -> Vec<Condition> {
    let worst = problems.iter().find(|problem| !problem.waiting).or(problems.first());
    own.push(match worst {
        None => Observation::new(RECONCILED, true, reason::RECONCILED, well),
        Some(worst) => {
            let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
            Observation::new(RECONCILED, false, worst.reason, messages.join("; "))
        }
    });
    own.extend(stalled(problems));
    let mut retired = Vec::new();
    if !own.iter().any(|observation| observation.type_ == STALLED) {
        retired.push(STALLED);
    }
    for (conflict, type_) in CONFLICTS {
        match problems.iter().find(|problem| problem.reason == conflict) {
            Some(found) => own.push(Observation::new(type_, true, conflict, &*found.message)),
            None => retired.push(type_),
        }
    }
    conditions::merge(old, &own, &retired, object.metadata.generation, now)
}

/// Whether the condition [`RECONCILED`] is about this generation of the object: its spec has not changed since.
pub fn is_observed<T: Kind>(object: &Object<T>, conditions: &[Condition]) -> bool {
    let reconciled = conditions.iter().find(|condition| condition.type_ == RECONCILED);
    reconciled.is_some_and(|condition| condition.observed_generation == object.metadata.generation)
}

/// One event for each problem that the stored conditions do not contain yet.
pub fn events(old: &[Condition], problems: &[Problem]) -> Vec<EventNote> {
    news(old, problems).map(event).collect()
}

/// The problems that the stored conditions do not contain yet.
pub fn news<'a>(old: &'a [Condition], problems: &'a [Problem]) -> impl Iterator<Item = &'a Problem> {
    let reported = old.iter().find(|condition| condition.type_ == RECONCILED && condition.status == "False");
    let reported = reported.map_or("", |condition| condition.message.as_str());
    problems.iter().filter(move |problem| !reported.contains(&problem.message))
}

/// The event about a problem.
pub fn event(problem: &Problem) -> EventNote {
    let type_ = if problem.waiting { EventType::Normal } else { EventType::Warning };
    EventNote::new(type_, problem.reason, &*problem.message)
}
