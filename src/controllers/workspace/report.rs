//! The status of a Workspace: a pure function of what is observed after the plan was carried out.

use jiff::Timestamp;

use super::observe::Observed;
use super::reconcile::{Effect, Settings};
use crate::api::workspace::{NameCreated, SubscriptionStatus, WorkspaceKind};
use crate::controllers::shared::accounts::KEYCLOAK;
use crate::controllers::shared::problems;
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{Outcome, Report};

/// Failures in words.
fn describe(failure: &Failure) -> (&'static str, String) {
    ("EnforcementFailed", format!("{} {}: {}", failure.kind, failure.name, failure.error))
}

/// The report of a reconcile.
pub fn report(
    observed: &Observed,
    settings: &Settings,
    plan: &Plan<Effect>,
    outcome: &Outcome<()>,
    now: Timestamp,
) -> Report<WorkspaceKind> {
    let old = &observed.workspace.status;
    let problems = problems::problems(plan, outcome, describe);
    let mut status = old.clone();
    let created = observed.has_namespace();
    let name = if created { observed.namespace_name() } else { String::new() };
    status.namespace = NameCreated { created, name };
    // As the Go operator has it, a Keycloak that is not configured counts as failed here, and does not keep
    // the Workspace from being ready.
    let has_roles = settings.has_keycloak && outcome.effect_problems().next().is_none();
    let subscription = if has_roles { SubscriptionStatus::Ok } else { SubscriptionStatus::Failed };
    status.subscription.insert(KEYCLOAK.to_owned(), subscription);
    status.ready = created && problems.is_empty() && outcome.is_success();
    let mut observations = vec![ready(status.ready, &problems)];
    observations
        .extend(problems::observations(&problems, "All objects of the Workspace are as they should be"));
    let retired = problems::retired(&observations);
    let generation = observed.workspace.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, &observations, retired, generation, now);
    Report::new(status, problems::events(&old.conditions, &problems))
}

fn ready(ready: bool, problems: &[Problem]) -> Observation {
    let (reason, message) = match problems.first() {
        None if ready => ("Ready".to_owned(), "The Workspace can be used".to_owned()),
        None => ("Pending".to_owned(), "The Workspace is being set up".to_owned()),
        Some(problem) => (problem.reason.to_owned(), "See condition Reconciled".to_owned()),
    };
    Observation { type_: "Ready", holds: Some(ready), reason, message }
}
