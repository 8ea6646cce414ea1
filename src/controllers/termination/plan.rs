//! The plan of an Instance with a status URL: a pure function of the observed state, the configuration and the time.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::observe::{Check, Observed, is_ending, is_watched, stored_condition, was_ready};
use crate::api::labels;
use crate::api::reason::{KEPT, STATUS_CHECK_FAILED, TERMINATING};
use crate::clients::status_check::Verdict;
use crate::config::TerminationConfig;
use crate::controllers::cleanup::promise::later as after;
use crate::controllers::shared::environments::has_destination;
use crate::controllers::shared::references::template_key;
use crate::runtime::component::Component;
use crate::runtime::plan::{ObjectPatch, Plan, Requeue};
use crate::runtime::problem::Problem;
use crate::runtime::reconciler;

/// The minimum time between two queries for an Instance.
pub(super) const SHORTEST: Duration = Duration::from_secs(5);
/// The maximum delay before a failed query is repeated, unless the interval is shorter.
const LONGEST: Duration = Duration::from_mins(5);
/// The longest time until an Instance without a Template is reconciled again. The creation of a Template is watched.
const WAIT: Duration = Duration::from_mins(1);

/// The effects outside the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Start a query of the Instance's status URL.
    Check {
        /// The URL.
        url: String,
    },
}

impl reconciler::Effect for Effect {
    type Result = ();
}

/// The decision about an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The Instance is not watched, or cannot be read.
    Ignore,
    /// It has no status URL.
    NoUrl,
    /// Its URL has to be queried now.
    Check,
    /// A query is running.
    UnderWay,
    /// Its URL is queried at this time.
    WaitUntil(Timestamp),
    /// The exam is over: this is written into the status first.
    Conclude {
        /// The time of the answer.
        at: Timestamp,
        /// The HTTP status code of the answer.
        code: u16,
    },
    /// The exam is over, and the status states it: the Instance has to be stopped.
    Terminate,
}

/// Decides about an Instance.
pub fn decide(observed: &Observed, config: &TerminationConfig, now: Timestamp) -> Decision {
    let instance = &observed.instance;
    if !is_watched(instance) || instance.malformed.is_some() {
        return Decision::Ignore;
    }
    let generation = instance.metadata.generation;
    let condition = stored_condition(instance);
    if is_ending(instance) && condition.is_some_and(|known| known.observed_generation == generation) {
        return Decision::Terminate;
    }
    if instance.spec.effective_status_check_url().is_empty() {
        return Decision::NoUrl;
    }
    let interval = config.status_check_interval.get();
    let due = match observed.current_check() {
        Some(Check { result: None, .. }) => return Decision::UnderWay,
        Some(Check { result: Some((at, verdict)), gone_since, generation: queried, failures, .. }) => {
            match (verdict, gone_since) {
                (Verdict::Gone { code }, Some(first)) => {
                    let confirmed = after(*first, config.confirm_after.get());
                    if *at >= confirmed {
                        return Decision::Conclude { at: *at, code: *code };
                    }
                    confirmed
                }
                (Verdict::Gone { .. }, None) if was_ready(instance) => after(*at, SHORTEST),
                // The spec has changed since the query.
                _ if *queried != generation => after(*at, SHORTEST),
                (Verdict::Keep { .. }, _) => after(*at, interval),
                (Verdict::Failed { .. } | Verdict::Gone { .. }, _) => {
                    after(*at, retry_delay(*failures, interval))
                }
            }
        }
        // This process has not queried the URL yet. The status contains the time of an earlier process's query.
        None => condition
            .filter(|known| known.reason == KEPT && known.observed_generation == generation)
            .and(instance.status.automation.last_check_time.as_ref())
            // Other clients can write the status, so a time in the future is ignored.
            .filter(|last| last.0 <= now)
            .map_or(now, |last| after(last.0, interval)),
    };
    let earliest = observed.begun.filter(|begun| *begun <= now).map_or(now, |begun| after(begun, SHORTEST));
    let due = due.max(earliest);
    if due <= now { Decision::Check } else { Decision::WaitUntil(due) }
}

/// The delay before a query is repeated after `failures` consecutive queries without a decision: 5 s, doubled each
/// time, up to 5 min or the interval.
fn retry_delay(failures: u32, interval: Duration) -> Duration {
    let doubled = SHORTEST.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(LONGEST).min(interval)
}

/// The plan.
pub fn plan(observed: &Observed, config: &TerminationConfig, now: Timestamp) -> Plan<Effect> {
    let mut plan = Plan::default();
    let instance = &observed.instance;
    match decide(observed, config, now) {
        Decision::Ignore => plan.requeue = Requeue::OnChange,
        Decision::NoUrl => {
            let message = format!(
                "the label {} asks for status checks, but there is no status URL: set spec.statusCheckUrl, or remove \
                 the label",
                labels::WATCH_FOR_TERMINATION
            );
            plan.problems.push(Problem::fault(Component::Whole, STATUS_CHECK_FAILED, message));
            plan.requeue = Requeue::OnChange;
        }
        Decision::Check => {
            plan.effects.push(Effect::Check { url: instance.spec.effective_status_check_url().to_owned() });
        }
        // The result of the query adds the Instance to the queue. The report writes the end of the exam.
        Decision::UnderWay | Decision::Conclude { .. } => {}
        Decision::WaitUntil(due) => {
            plan.requeue_after(Duration::try_from(due.duration_since(now)).unwrap_or_default());
        }
        Decision::Terminate => match ending(observed) {
            Ok(patch) => plan.patches.extend(patch),
            Err(problem) => {
                plan.problems.push(problem);
                plan.requeue_after(WAIT);
            }
        },
    }
    plan
}

/// The patch that stops an Instance and says whether its content will be uploaded, or the reason why this is unknown.
fn ending(observed: &Observed) -> Result<Option<ObjectPatch>, Problem> {
    let instance = &observed.instance;
    let key = template_key(instance);
    let waiting = |what: &str| {
        let message = format!(
            "the exam is over, but Template {key} {what}, so it is unknown whether the content has to be uploaded: the \
             Instance is stopped once this is corrected"
        );
        Problem::fault(Component::Whole, TERMINATING, message)
    };
    let template = observed.template.as_ref().ok_or_else(|| waiting("does not exist"))?;
    if template.malformed.is_some() {
        return Err(waiting("cannot be read"));
    }
    let requested = has_destination(instance, &template.spec.environment_list);
    let wanted = json!({
        "metadata": {"labels": {
            labels::WATCH_FOR_TERMINATION: "false",
            labels::SUBMISSION_REQUESTED: if requested { "true" } else { "false" },
        }},
        "spec": {"running": false},
    });
    Ok(ObjectPatch::of(instance, &wanted))
}
