//! The status, the condition and the events of an Instance with a status URL.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observe::{Check, Observed, is_ending, is_watched, stored_condition};
use super::plan::{Decision, Effect, decide};
use crate::api::condition::STATUS_CHECKED;
use crate::api::instance::{Automation, InstanceKind, InstanceStatus};
use crate::api::labels;
use crate::api::reason::{KEPT, Reason, STATUS_CHECK_FAILED, TERMINATED, TERMINATING, UNCONFIRMED};
use crate::clients::status_check::{Verdict, host};
use crate::config::TerminationConfig;
use crate::runtime::conditions::{self, Observation, whole_seconds};
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Reconciled, Report};

/// The news about an Instance.
struct News {
    /// Whether the query succeeded.
    succeeded: bool,
    reason: Reason,
    message: String,
    /// The generation that the condition is about.
    generation: Option<i64>,
    /// The time of the query, if it has to be written.
    checked: Option<Timestamp>,
    /// The time of the termination.
    ends: Ends,
}

impl News {
    /// News without times.
    fn new(succeeded: bool, reason: Reason, message: String, generation: Option<i64>) -> Self {
        Self { succeeded, reason, message, generation, checked: None, ends: Ends::AsBefore }
    }
}

/// The change of the time of the termination in the status.
enum Ends {
    /// It does not change.
    AsBefore,
    /// It is removed.
    NotKnown,
    /// It is written.
    At(Timestamp),
}

/// The report of a reconcile.
pub fn report(done: &Reconciled<'_, Observed, TerminationConfig, Effect>) -> Report<InstanceKind> {
    let Reconciled { observed, settings: config, plan, outcome, now } = *done;
    let instance = &observed.instance;
    let old = &instance.status;
    let decision = decide(observed, config, now);
    let Some(news) = news(observed, &decision, plan).filter(|_| outcome.failures.is_empty()) else {
        return Report::unchanged(instance);
    };
    let mut status = old.clone();
    record(&mut status, &news);
    let observation = Observation::new(STATUS_CHECKED, news.succeeded, news.reason, &*news.message);
    let known = stored_condition(instance);
    let is_new =
        known.is_none_or(|known| known.reason != news.reason || known.message != observation.message);
    status.conditions = conditions::merge(&old.conditions, &[observation], &[], news.generation, now);
    let type_ = if news.reason == TERMINATED { EventType::Normal } else { EventType::Warning };
    let is_shown = news.reason == TERMINATED || !news.succeeded || !plan.problems.is_empty();
    let event = (is_new && is_shown).then(|| EventNote::new(type_, news.reason, news.message));
    // The next reconcile acts on the new status.
    let requeue_at_once = matches!(decision, Decision::Conclude { .. });
    Report { requeue_at_once, ..Report::new(status, event.into_iter().collect()) }
}

/// The news about an Instance; `None` if nothing has happened.
fn news(observed: &Observed, decision: &Decision, plan: &Plan<Effect>) -> Option<News> {
    let instance = &observed.instance;
    let generation = instance.metadata.generation;
    let url = instance.spec.effective_status_check_url();
    let host = host(url).unwrap_or_else(|| "an unknown host".to_owned());
    let of = |succeeded, reason, message| News::new(succeeded, reason, message, generation);
    if let Some(problem) = plan.problems.first() {
        return Some(of(problem.reason == TERMINATING, problem.reason, problem.message.clone()));
    }
    match decision {
        Decision::Ignore if !is_watched(instance) && is_ending(instance) => {
            let upload = if instance.label(labels::SUBMISSION_REQUESTED) == Some("true") {
                "its content will be uploaded"
            } else {
                "there is nothing to upload"
            };
            Some(of(true, TERMINATED, format!("The exam is over: the Instance was stopped, {upload}")))
        }
        Decision::Conclude { at, code } => Some(News {
            checked: Some(*at),
            ends: Ends::At(*at),
            ..of(true, TERMINATING, format!("{host} answered {code}: the exam is over"))
        }),
        Decision::Check | Decision::UnderWay | Decision::WaitUntil(_) => {
            let check = observed.current_check()?;
            let (at, verdict) = check.result.as_ref()?;
            Some(answered(check, *at, verdict, &host))
        }
        Decision::Ignore | Decision::NoUrl | Decision::Terminate => None,
    }
}

/// The news about a query that does not end the exam, or does not end it yet.
fn answered(check: &Check, at: Timestamp, verdict: &Verdict, host: &str) -> News {
    let of = |succeeded, reason, message| News::new(succeeded, reason, message, check.generation);
    match verdict {
        Verdict::Keep { code, deadline } => {
            let (ends, doubt) = match deadline {
                Ok(Some(at)) => (Ends::At(*at), String::new()),
                Ok(None) => (Ends::NotKnown, String::new()),
                Err(problem) => (Ends::AsBefore, format!("; the end of the exam cannot be read: {problem}")),
            };
            let message = format!("{host} answered {code}: the Instance is kept{doubt}");
            News { checked: Some(at), ends, ..of(true, KEPT, message) }
        }
        Verdict::Failed { reason, has_answered } => {
            let message = format!("the status URL at {host} could not be checked: {reason}; it is retried");
            News { checked: has_answered.then_some(at), ..of(false, STATUS_CHECK_FAILED, message) }
        }
        Verdict::Gone { code } => {
            let why = if check.gone_since.is_some() {
                ": the exam is over if a second answer says so"
            } else {
                ", which does not end an exam before its machine has been ready"
            };
            let message = format!("{host} answered {code}{why}; it is queried again");
            News { checked: Some(at), ..of(true, UNCONFIRMED, message) }
        }
    }
}

/// Writes the times into the status of the Instance and of each environment.
fn record(status: &mut InstanceStatus, news: &News) {
    let time = |time: Timestamp| Time(whole_seconds(time));
    let write = |automation: &mut Automation| {
        if let Some(at) = news.checked {
            automation.last_check_time = Some(time(at));
        }
        match news.ends {
            Ends::AsBefore => {}
            Ends::NotKnown => automation.termination_time = None,
            Ends::At(at) => automation.termination_time = Some(time(at)),
        }
    };
    write(&mut status.automation);
    status.environments.iter_mut().for_each(|environment| write(&mut environment.automation));
}
