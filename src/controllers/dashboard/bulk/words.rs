//! The words for the state of a row.

use crate::api::csv;
use crate::api::denial::{Cause, DenialReason};
use crate::api::shown::{escaped, message};
use crate::class::model::{Refusal, Row, State, Unchanged, Verb};
use crate::controllers::dashboard::texts::Texts;
use crate::runtime::error::ApiError;

/// The names of the columns of the CSV file. They are the same in all languages, for programs that read them.
const COLUMNS: [&str; 5] = ["user", "name", "machine", "state", "reason"];

/// Returns the word for a state.
pub fn word(texts: &'static Texts, verb: Verb, state: &State) -> &'static str {
    let texts = &texts.bulk;
    match state {
        State::Done => texts.done.of(verb),
        State::Running => &texts.running,
        State::Unchanged(_) => &texts.unchanged,
        State::ToDo(_) => &texts.to_do,
        State::Refused(_) => &texts.refused,
    }
}

/// Returns the mark of a state, see [`Standing`](crate::controllers::dashboard::standing::Standing).
pub const fn mark(state: &State) -> &'static str {
    match state {
        State::Done => "good",
        State::Running | State::ToDo(_) => "busy",
        State::Unchanged(_) => "quiet",
        State::Refused(_) => "bad",
    }
}

/// Returns the reason of a state; empty without one.
pub fn reason(texts: &'static Texts, verb: Verb, state: &State) -> String {
    let bulk = &texts.bulk;
    match state {
        State::Done | State::Running | State::ToDo(_) => String::new(),
        State::Unchanged(Unchanged::NoMachine) => bulk.no_machine.clone(),
        State::Unchanged(Unchanged::Later) if verb == Verb::Delete => bulk.newer.clone(),
        State::Unchanged(Unchanged::Later) => bulk.later.clone(),
        State::Unchanged(Unchanged::Already) => bulk.already.of(verb).clone(),
        State::Refused(Refusal::NotEnrolled) => bulk.not_enrolled.clone(),
        State::Refused(Refusal::NoNamespace) => bulk.no_namespace.clone(),
        State::Refused(Refusal::Leaving) => bulk.leaving.clone(),
        State::Refused(Refusal::NoDestination) => bulk.no_destination.clone(),
        State::Refused(Refusal::NotUploaded(why)) => bulk.not_uploaded.fill(&[("message", &message(why))]),
        State::Refused(Refusal::Api(ApiError::Denied { causes, .. })) => denied(texts, causes),
        State::Refused(Refusal::Api(error)) => message(&error.to_string()),
    }
}

/// Returns why a webhook refuses a change of a student's machine. The quota is that of the student.
fn denied(texts: &'static Texts, causes: &[Cause]) -> String {
    let is_quota = |cause: &&Cause| matches!(cause.reason, DenialReason::QuotaExceeded | DenialReason::Full);
    let limits: Vec<&str> = causes.iter().filter(is_quota).map(|cause| cause.value.as_str()).collect();
    if limits.is_empty() {
        return texts.denied(causes);
    }
    texts.bulk.quota.fill(&[("limits", &escaped(&limits.join(", ")))])
}

/// Returns the rows as CSV.
pub fn csv(texts: &'static Texts, verb: Verb, rows: &[Row]) -> String {
    let cells = |row: &Row| {
        let machine = row.machine.as_ref().map(ToString::to_string).unwrap_or_default();
        let (state, reason) = (word(texts, verb, &row.state), reason(texts, verb, &row.state));
        let cells = [row.person.as_str(), row.title.as_str(), machine.as_str(), state, reason.as_str()];
        cells.map(|cell| escaped(cell).into_owned())
    };
    csv::csv([COLUMNS.map(str::to_owned)].into_iter().chain(rows.iter().map(cells)))
}
