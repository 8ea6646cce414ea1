//! Problems and failures of a reconcile, as conditions and events.

use crate::runtime::apply::Failure;
use crate::runtime::conditions::Observation;
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::Outcome;

/// Condition: whether everything that the object specifies is enforced.
pub const RECONCILED: &str = "Reconciled";
/// Condition: whether an object of another owner has a name that is needed; absent when there is none.
pub const NAME_CONFLICT: &str = "NameConflict";

/// The problems of the plan, and the writes and effects that failed. Transient failures are left out: the
/// next attempt usually succeeds, and their condition would disappear again at once. `describe` returns
/// reason and message of a failure; those of name conflicts are made here.
pub fn problems<E, R>(
    plan: &Plan<E>,
    outcome: &Outcome<R>,
    describe: impl Fn(&Failure) -> (&'static str, String),
) -> Vec<Problem> {
    let planned = plan.problems.iter().cloned();
    let failed = outcome.failures.iter().filter(|failure| !failure.error.is_transient()).map(|failure| {
        let (reason, message) = match &failure.error {
            error @ ApiError::NameConflict { .. } => (NAME_CONFLICT, format!("{error}: it is left alone")),
            _ => describe(failure),
        };
        Problem::fault(&failure.component, reason, message)
    });
    planned.chain(failed).chain(outcome.effect_problems().cloned()).collect()
}

/// Reason and message of a failed write, for loops that distinguish no kinds of failures.
pub fn describe(failure: &Failure) -> (&'static str, String) {
    ("EnforcementFailed", failure.to_string())
}

/// The condition `Ready`. `state` are its reason and message when there is no problem.
pub fn ready(is_ready: bool, problems: &[Problem], state: (&str, &str)) -> Observation {
    let problem = problems.first().map(|problem| (problem.reason, "See condition Reconciled"));
    let (reason, message) = problem.unwrap_or(state);
    Observation {
        type_: "Ready",
        holds: Some(is_ready),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// The condition [`RECONCILED`], and [`NAME_CONFLICT`] if there is one. `well` is the message if there is no
/// problem.
pub fn observations(problems: &[Problem], well: &str) -> Vec<Observation> {
    let worst = problems.iter().find(|problem| !problem.waiting).or(problems.first());
    let reconciled = match worst {
        None => Observation {
            type_: RECONCILED,
            holds: Some(true),
            reason: RECONCILED.to_owned(),
            message: well.to_owned(),
        },
        Some(worst) => Observation {
            type_: RECONCILED,
            holds: Some(false),
            reason: worst.reason.to_owned(),
            message: problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; "),
        },
    };
    let conflict =
        problems.iter().find(|problem| problem.reason == NAME_CONFLICT).map(|conflict| Observation {
            type_: NAME_CONFLICT,
            holds: Some(true),
            reason: NAME_CONFLICT.to_owned(),
            message: conflict.message.clone(),
        });
    [reconciled].into_iter().chain(conflict).collect()
}

/// The types of conditions to be removed.
pub fn retired(observations: &[Observation]) -> &'static [&'static str] {
    if observations.iter().any(|observation| observation.type_ == NAME_CONFLICT) {
        &[]
    } else {
        &[NAME_CONFLICT]
    }
}

/// One event for each problem that the stored conditions do not contain yet.
pub fn events(old: &[crate::api::condition::Condition], problems: &[Problem]) -> Vec<EventNote> {
    let told = old.iter().find(|condition| condition.type_ == RECONCILED && condition.status == "False");
    let told = told.map_or("", |condition| condition.message.as_str());
    problems
        .iter()
        .filter(|problem| !told.contains(&problem.message))
        .map(|problem| EventNote {
            type_: if problem.waiting { EventType::Normal } else { EventType::Warning },
            reason: problem.reason.to_owned(),
            message: problem.message.clone(),
        })
        .collect()
}
