//! The status of a Workspace: a pure function of what is observed after the plan was carried out.

use jiff::Timestamp;

use super::observe::Observed;
use crate::api::workspace::{NameCreated, SubscriptionStatus, WorkspaceStatus};
use crate::controllers::problems;
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::EventNote;
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;

/// The subscription to Keycloak in the status.
pub const KEYCLOAK: &str = "keycloak";

/// What came of the roles in Keycloak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roles {
    /// Keycloak is not configured.
    Off,
    /// They are there.
    Ready,
    /// They are not, for this reason.
    Failed {
        /// A stable word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
}

/// What a pass reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The whole status.
    pub status: WorkspaceStatus,
    /// What changed, for `kubectl describe`.
    pub events: Vec<EventNote>,
}

/// Failures in words.
fn describe(failure: &Failure) -> (&'static str, String) {
    ("EnforcementFailed", format!("{} {}: {}", failure.kind, failure.name, failure.error))
}

/// The report of a pass.
pub fn report(
    observed: &Observed,
    plan: &Plan,
    failures: &[Failure],
    roles: &Roles,
    now: Timestamp,
) -> Report {
    let old = &observed.workspace.status;
    let mut problems = problems::problems(plan, failures, describe);
    if let Roles::Failed { reason, message } = roles {
        problems.push(Problem::fault(KEYCLOAK, reason, message));
    }
    let mut status = old.clone();
    let created = observed.has_namespace();
    let name = if created { observed.namespace_name() } else { String::new() };
    status.namespace = NameCreated { created, name };
    // A Keycloak that is not configured counts as failed here, and does not keep the Workspace from
    // being ready (05 §10).
    let subscription =
        if *roles == Roles::Ready { SubscriptionStatus::Ok } else { SubscriptionStatus::Failed };
    status.subscription.insert(KEYCLOAK.to_owned(), subscription);
    status.ready = created && problems.is_empty() && failures.is_empty();
    let mut observations = vec![ready(status.ready, &problems)];
    observations
        .extend(problems::observations(&problems, "All objects of the Workspace are as they should be"));
    let retired = problems::retired(&observations);
    let generation = observed.workspace.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, &observations, retired, generation, now);
    Report { events: problems::events(&old.conditions, &problems), status }
}

fn ready(ready: bool, problems: &[Problem]) -> Observation {
    let (reason, message) = match problems.first() {
        None if ready => ("Ready".to_owned(), "The Workspace can be used".to_owned()),
        None => ("Pending".to_owned(), "The Workspace is being set up".to_owned()),
        Some(problem) => (problem.reason.to_owned(), "See condition Reconciled".to_owned()),
    };
    Observation { type_: "Ready", holds: Some(ready), reason, message }
}
