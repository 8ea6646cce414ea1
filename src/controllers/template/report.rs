//! The status of a Template: a pure function of its problems.

use jiff::Timestamp;

use super::observe::Observed;
use crate::api::condition::{Condition, READY, STALLED, VALID};
use crate::api::reason;
use crate::api::template::{TemplateKind, TemplateStatus};
use crate::controllers::shared::problems::event;
use crate::runtime::conditions::{Observation, merge};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::Report;

/// The report of a reconcile.
pub fn report(observed: &Observed, plan: &Plan, now: Timestamp) -> Report<TemplateKind> {
    let template = &observed.template;
    if template.is_terminating() {
        return Report::unchanged(template);
    }
    let (faults, obstacles): (Vec<&Problem>, Vec<&Problem>) =
        plan.problems.iter().partition(|problem| problem.stalled);
    let valid = match faults.first() {
        None => Observation::new(VALID, true, reason::VALID, can_be_made(&template.spec.cleanup_remarks())),
        Some(first) => Observation::new(VALID, false, first.reason, joined(&faults)),
    };
    let ready = match (faults.first(), obstacles.first()) {
        (Some(first), _) => Observation::new(READY, false, first.reason, "See condition Valid"),
        (None, Some(first)) => Observation::new(READY, false, first.reason, joined(&obstacles)),
        (None, None) => Observation::new(READY, true, reason::READY, "Its environments can start"),
    };
    let stalled = faults.first().map(|first| Observation::new(STALLED, true, first.reason, joined(&faults)));
    let retired = if stalled.is_some() { &[][..] } else { &[STALLED] };
    let old = &template.status.conditions;
    let own: Vec<Observation> = [valid, ready].into_iter().chain(stalled).collect();
    let conditions = merge(old, &own, retired, template.metadata.generation, now);
    let events = plan.problems.iter().filter(|problem| !is_said(old, problem)).map(event).collect();
    Report::new(TemplateStatus { conditions }, events)
}

fn can_be_made(remarks: &[String]) -> String {
    [&["Instances can be made of the Template".to_owned()], remarks].concat().join("; ")
}

/// Whether the stored conditions name a problem.
fn is_said(old: &[Condition], problem: &Problem) -> bool {
    let mut refusals = old.iter().filter(|condition| condition.status == "False");
    refusals.any(|condition| condition.message.contains(&problem.message))
}

fn joined(problems: &[&Problem]) -> String {
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    messages.join("; ")
}
