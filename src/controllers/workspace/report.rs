//! The status of a Workspace: a pure function of the state after the plan was carried out, and of the failures.

use super::children::{CLUSTER, NAMESPACE};
use super::observe::Observed;
use super::reconcile::{Effect, Settings};
use crate::api::reason;
use crate::api::workspace::{SubscriptionStatus, WorkspaceKind};
use crate::controllers::accounts::KEYCLOAK;
use crate::controllers::accounts::internal_errors::internal_error;
use crate::controllers::shared::children::namespace_status;
use crate::controllers::shared::problems;
use crate::controllers::shared::responsibility::Standing;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Counter, Outcome, Reconciled, Report};

/// The report of a reconcile.
pub fn report(done: &Reconciled<'_, Observed, Settings, Effect>) -> Report<WorkspaceKind> {
    let Reconciled { observed, settings, plan, outcome, now } = *done;
    if observed.standing == Standing::Deselected {
        return Report::unchanged(&observed.workspace);
    }
    let old = &observed.workspace.status;
    let problems = problems::problems(plan, outcome, now, problems::describe);
    let mut status = old.clone();
    status.namespace = namespace_status(&observed.workspace, observed.namespace());
    // As in the Go operator, the subscription is `Failed` if Keycloak is not configured, but the Workspace can still be
    // ready.
    let has_roles = settings.has_keycloak && outcome.effect_problems().next().is_none();
    let subscription = if has_roles { SubscriptionStatus::Ok } else { SubscriptionStatus::Failed };
    status.subscription.insert(KEYCLOAK.to_owned(), subscription);
    status.ready = status.namespace.created && problems.is_empty() && outcome.is_success();
    let state = if status.ready {
        (reason::READY, "The Workspace can be used")
    } else {
        (reason::PENDING, "The Workspace is being set up")
    };
    status.observed_generation = observed.workspace.metadata.generation;
    let own = vec![problems::ready(status.ready, &problems, state)];
    let well = "All objects of the Workspace are up to date";
    let stalled_after = settings.stalled_after;
    status.conditions =
        problems::conditions(&observed.workspace, &old.conditions, own, &problems, well, stalled_after, now);
    Report {
        requeue_after: problems::requeue_after(&status.conditions, stalled_after, now),
        counters: counters(plan, outcome),
        ..Report::new(status, problems::events(&old.conditions, &problems))
    }
}

/// The reasons of the metric `tenant_operator_internal_errors_total`.
pub const REASONS: [&str; 5] = ["cluster-resources", "create-namespace", "workspaces", KEYCLOAK, STATUS];
/// The reason of a status that could not be written.
pub const STATUS: &str = "status";

fn counters(plan: &Plan<Effect>, outcome: &Outcome<()>) -> Vec<Counter> {
    let failed = outcome.failures.iter().map(|failure| &failure.component);
    let planned = plan.problems.iter().filter(|problem| !problem.waiting);
    let components = planned.map(|problem| &problem.component).chain(failed);
    let reasons = components.map(|component| match *component {
        CLUSTER => "cluster-resources",
        NAMESPACE => "create-namespace",
        // The Workspace itself, and the lists of Tenants.
        _ => "workspaces",
    });
    let keycloak = outcome.effect_problems().map(|_| KEYCLOAK);
    reasons.chain(keycloak).map(|reason| internal_error("workspace", reason)).collect()
}
