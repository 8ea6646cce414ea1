//! The report of an Instance's expiration: a pure function.

use jiff::Timestamp;

use super::Settings;
use super::observe::{EXPIRING, Observed};
use crate::api::instance::InstanceKind;
use crate::controllers::shared::ending::{Effect, observation, tell};
use crate::runtime::conditions::{self, Observation};
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Outcome, Report};

/// The report. Nothing is written about an Instance that is not overdue and was never warned.
pub fn report(
    observed: &Observed,
    settings: &Settings,
    plan: &Plan<Effect>,
    outcome: &Outcome<Timestamp>,
    now: Timestamp,
) -> Report<InstanceKind> {
    let instance = &observed.instance;
    let old = &instance.status;
    let mut status = old.clone();
    let mut events = Vec::new();
    let mut requeue_at_once = false;
    let mut condition: Option<Observation> =
        plan.problems.first().map(|problem| observation(problem, EXPIRING));
    status.expiration = None;
    if let Ok(Some(ending)) = observed.ending(settings, now) {
        let before = old.expiration.as_deref().cloned().unwrap_or_default();
        let told = tell(&ending, &before, plan, outcome, !plan.remove.is_empty(), now);
        if told.promise.warnings > 0 || !plan.effects.is_empty() || told.problem.is_some() {
            condition = Some(told.condition);
            requeue_at_once = outcome.is_applied && outcome.is_success() && told.promise != before;
            status.expiration = Some(Box::new(told.promise));
        }
        events = told.events;
    }
    let retired: &[&str] = if condition.is_some() { &[] } else { &[EXPIRING] };
    let generation = instance.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, condition.as_slice(), retired, generation, now);
    Report { requeue_at_once, ..Report::new(status, events) }
}
