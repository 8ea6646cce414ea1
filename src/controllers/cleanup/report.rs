//! The report about the ending of an Instance: the promise to be stored, and the condition and the event that report
//! it.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::delivery::Sent;
use super::ending::{Effect, Ending, EndingKind};
use super::promise::{self, Due, Next};
use crate::api::condition::{Condition, ConditionType};
use crate::api::promise::Promise;
use crate::api::reason::{MAIL_UNDELIVERABLE, NOT_OVERDUE, OVERDUE, Reason, WARNED};
use crate::runtime::clock::rfc3339;
use crate::runtime::conditions::Observation;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::Outcome;

/// The witness of a promise that was read from the annotations of the Go operator.
pub const ANNOTATION: &str = "annotation";

/// The reasons of a condition that reports the promise: warnings were sent, are due, or are not due yet.
const REASONS: [Reason; 3] = [WARNED, OVERDUE, NOT_OVERDUE];

impl Ending<'_> {
    /// The condition that reports the promise. `problem` says why no decision is possible now.
    pub fn condition(&self, promise: &Promise, now: Timestamp, problem: Option<&Problem>) -> Observation {
        let EndingKind { condition, end, .. } = self.kind;
        let at = |time: Timestamp| end.sentence(&format!(" at {}", rfc3339(time)));
        let never = || format!("the Instance is never {}", end.action());
        if let Some(problem) = problem {
            return observation(problem, condition);
        }
        if promise.undeliverable.is_some() {
            let message = "the mail server permanently rejects mails to the Tenant";
            return Observation::new(condition, true, MAIL_UNDELIVERABLE, message);
        }
        let next = promise::next(&self.terms, self.since, promise);
        if promise.warnings > 0
            && let Some(deadline) = &promise.deadline
        {
            let then = match next {
                Next::Warning(time) => {
                    format!("the next one is due at {}; {}", rfc3339(time), at(deadline.0))
                }
                Next::End(time) => at(time),
                Next::Never => never(),
            };
            let (warnings, of) = (promise.warnings, self.terms.warnings);
            let message = format!("{warnings} of {of} warnings were sent; {then}");
            return Observation::new(condition, true, WARNED, message);
        }
        let is_warned = matches!(next, Next::Warning(_));
        let (is_overdue, reason, message) = match promise::due(&self.terms, self.since, promise, now) {
            Due::Never => (false, NOT_OVERDUE, never()),
            Due::At(time) => {
                let what =
                    if is_warned { format!("a warning is due at {}", rfc3339(time)) } else { at(time) };
                (false, NOT_OVERDUE, format!("counted since {}; {what}", rfc3339(self.since)))
            }
            Due::Warn(_) => (true, OVERDUE, end.sentence(" after the warnings")),
            Due::Final(_) => (true, OVERDUE, end.sentence(" after a last mail")),
            Due::Act => (true, OVERDUE, end.sentence(" now")),
        };
        Observation::new(condition, is_overdue, reason, message)
    }

    /// The event about the latest change. `acts` says whether the plan stops or deletes the Instance.
    pub fn event(&self, old: &Promise, new: &Promise, acts: bool) -> Option<EventNote> {
        let EndingKind { warned, ended, end, .. } = self.kind;
        if new.warnings <= old.warnings {
            let message = format!("The deadline has passed; {}", end.sentence(""));
            return acts.then(|| EventNote::warning(ended, message));
        }
        let when = new.deadline.as_ref().map(|deadline| format!(" at {}", rfc3339(deadline.0)));
        let then = end.sentence(&when.unwrap_or_default());
        let (number, of) = (new.warnings, self.terms.warnings);
        let is_read = old.sending.is_none() && self.promise.witness == ANNOTATION;
        if is_read && self.promise.warnings == number {
            let message =
                format!("According to the annotations, {number} of {of} warnings were sent before; {then}");
            return Some(EventNote::new(EventType::Normal, warned, message));
        }
        Some(EventNote::warning(warned, format!("Warning {number} of {of} was sent; {then}")))
    }
}

/// The report about the ending of an Instance.
#[derive(Debug, Clone, PartialEq)]
pub struct EndingReport {
    /// The promise to be stored.
    pub promise: Promise,
    /// The condition.
    pub condition: Observation,
    /// The problem that the condition reports, if any.
    pub problem: Option<Problem>,
    /// Events.
    pub events: Vec<EventNote>,
    /// The annotations about mails that are missing on the Instance.
    pub lacking: Map<String, Value>,
}

/// The report after a plan with its outcome. `old` is the stored promise.
pub fn ending_report(
    ending: &Ending<'_>,
    old: &Promise,
    plan: &Plan<Effect>,
    outcome: &Outcome<Sent>,
    now: Timestamp,
) -> EndingReport {
    let acts = !plan.remove.is_empty() || !plan.patches.is_empty();
    let notice = plan.effects.iter().enumerate().find_map(|(index, effect)| match effect {
        Effect::Mail(notice) => Some((index, &**notice)),
        Effect::Check => None,
    });
    let effect = notice.filter(|_| outcome.is_applied).and_then(|(index, _)| outcome.effects.get(index));
    let promise = ending.promised(notice.map(|(_, notice)| notice), effect, now);
    let problem = plan.problems.first().or(outcome.effect_problems().next()).cloned();
    let conditions = ending.candidate.instance.status.conditions.iter();
    let known = conditions.filter(|known| known.type_ == ending.kind.condition);
    // While a mail is retried or waits for a retry, the condition keeps the reason of the last failure.
    let is_being_sent = notice.is_some() && !outcome.is_applied;
    let is_retried = (is_being_sent || promise.undeliverable.is_some()) && problem.is_none();
    let retried = known.clone().filter(|_| is_retried).find_map(|known| again(known, ending.kind));
    let condition = retried.unwrap_or_else(|| ending.condition(&promise, now, problem.as_ref()));
    let mut events: Vec<EventNote> =
        ending.event(old, &promise, acts && !outcome.is_applied).into_iter().collect();
    if let Some(problem) = &problem
        && !known.into_iter().any(|known| known.message.as_str() == problem.message)
    {
        events.push(EventNote::warning(problem.reason, &*problem.message));
    }
    EndingReport { promise, condition, problem, events, lacking: ending.mailed_annotations(false) }
}

/// Whether a plan was carried out and nothing will be retried. A permanently rejected mail does not count as retried.
pub fn is_done(outcome: &Outcome<Sent>) -> bool {
    outcome.is_applied && outcome.failures.is_empty() && outcome.effect_failures().next().is_none()
}

/// Returns a condition unchanged if it says why a mail could not be sent.
fn again(known: &Condition, kind: EndingKind) -> Option<Observation> {
    let reason = Reason::named(&known.reason).filter(|reason| !REASONS.contains(reason))?;
    let holds = match known.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    Some(Observation { type_: kind.condition, holds, reason, message: known.message.to_string() })
}

/// Converts a problem to a condition. While the problem is expected to resolve on its own, the condition's status is
/// unknown.
pub fn observation(problem: &Problem, type_: ConditionType) -> Observation {
    let (reason, message) = (problem.reason, problem.message.clone());
    Observation { type_, holds: (!problem.waiting).then_some(true), reason, message }
}
