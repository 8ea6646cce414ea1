//! What kept a pass from doing all of its work, as users are told of it.

use crate::runtime::apply::Failure;
use crate::runtime::conditions::Observation;
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::Outcome;

/// Condition: whether everything that the object asks for is as it should be.
pub const RECONCILED: &str = "Reconciled";
/// Condition: whether something of another owner stands in the way; absent when not.
pub const NAME_CONFLICT: &str = "NameConflict";

/// What the plan could not do, and what failed when it was carried out. A failure that the next
/// try is likely to mend is no news for a user (02 D9); `describe` words all others but those of names.
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

/// The condition [`RECONCILED`], and [`NAME_CONFLICT`] if there is one; `well` says that all is.
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

/// The types of conditions that no longer apply.
pub fn retired(observations: &[Observation]) -> &'static [&'static str] {
    if observations.iter().any(|observation| observation.type_ == NAME_CONFLICT) {
        &[]
    } else {
        &[NAME_CONFLICT]
    }
}

/// One event for each problem that the stored conditions do not tell of yet.
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
