//! The status of a Template: a pure function of its problems.

use std::time::Duration;

use jiff::Timestamp;

use super::observe::Observed;
use crate::api::condition::{Condition, READY, STALLED, VALID};
use crate::api::reason;
use crate::api::template::{TemplateKind, TemplateStatus};
use crate::controllers::shared::problems;
use crate::runtime::conditions::{Observation, merge};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::Report;

/// The report of a reconcile.
pub fn report(
    observed: &Observed,
    stalled_after: Duration,
    plan: &Plan,
    now: Timestamp,
) -> Report<TemplateKind> {
    let template = &observed.template;
    let (faults, obstacles): (Vec<&Problem>, Vec<&Problem>) =
        plan.problems.iter().partition(|problem| problem.stalled);
    let valid = match faults.first() {
        None => Observation::new(VALID, true, reason::VALID, can_be_made(&template.spec.cleanup_remarks())),
        Some(first) => Observation::new(VALID, false, first.reason, joined(&faults)),
    };
    let hindrance = obstacles.iter().find(|obstacle| obstacle.reason != reason::NODE_ON_DEMAND);
    let ready = match (faults.first(), hindrance) {
        (Some(first), _) => Observation::new(READY, false, first.reason, "See condition Valid"),
        (None, Some(first)) => Observation::new(READY, false, first.reason, joined(&obstacles)),
        (None, None) if obstacles.is_empty() => {
            Observation::new(READY, true, reason::READY, "Its environments can start")
        }
        // The environments can start. The node is added once one of them does.
        (None, None) => Observation::new(READY, true, reason::NODE_ON_DEMAND, joined(&obstacles)),
    };
    let old = &template.status.conditions;
    let stalled = problems::stalled(old, &plan.problems, stalled_after, now);
    let retired = if stalled.is_some() { &[][..] } else { &[STALLED] };
    let own: Vec<Observation> = [valid, ready].into_iter().chain(stalled).collect();
    let observed_generation = template.metadata.generation;
    let conditions = merge(old, &own, retired, observed_generation, now);
    let events = plan.problems.iter().filter(|problem| !is_said(old, problem)).map(problems::event).collect();
    let requeue_after = problems::requeue_after(&conditions, stalled_after, now);
    Report { requeue_after, ..Report::new(TemplateStatus { observed_generation, conditions }, events) }
}

fn can_be_made(remarks: &[String]) -> String {
    [&["Instances can be created from the Template".to_owned()], remarks].concat().join("; ")
}

/// Whether the stored conditions contain a problem.
fn is_said(old: &[Condition], problem: &Problem) -> bool {
    let says_problems =
        |condition: &&Condition| condition.status == "False" || condition.reason == *reason::NODE_ON_DEMAND;
    old.iter().filter(says_problems).any(|condition| condition.message.contains(&problem.message))
}

fn joined(problems: &[&Problem]) -> String {
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    messages.join("; ")
}
