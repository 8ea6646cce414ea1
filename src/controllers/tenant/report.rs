//! The status of a Tenant: a pure function of what is observed after the plan was carried out, and of
//! what could not be.

use jiff::Timestamp;

use super::Settings;
use super::enrolment::Enrolment;
use super::lifetime::{Presence, presence};
use super::observe::{Account, Observed};
use super::plan::{PERSONAL_WORKSPACE, wants_own_workspace};
use super::quota::share;
use crate::api::tenant::TenantStatus;
use crate::api::workspace::NameCreated;
use crate::controllers::problems;
use crate::kinds::Namespace;
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;

/// The component of the account.
pub const KEYCLOAK: &str = "keycloak";
/// The name of the personal workspace among those that fail.
const OWN_WORKSPACE: &str = "personal-workspace";
/// Whether every Workspace that the Tenant names counts.
const ENROLLED: &str = "Enrolled";

/// What a pass reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The whole status.
    pub status: TenantStatus,
    /// What changed, for `kubectl describe`.
    pub events: Vec<EventNote>,
}

/// Failures in words.
fn describe(failure: &Failure) -> (&'static str, String) {
    ("EnforcementFailed", failure.to_string())
}

/// The report of a pass.
pub fn report(
    observed: &Observed,
    settings: &Settings,
    plan: &Plan,
    failures: &[Failure],
    now: Timestamp,
) -> Report {
    let old = &observed.tenant.status;
    let mut problems = problems::problems(plan, failures, describe);
    let mut status = old.clone();
    account(&observed.account, &mut status, &mut problems);
    let enrolment = Enrolment::of(observed);
    let children = &observed.children;
    status.failing_workspaces.clone_from(&enrolment.failing);
    status.personal_namespace = namespace(observed, children.namespace.as_deref());
    status.sandbox_namespace = namespace(observed, children.sandbox.as_deref());
    // A sandbox without its share is not complete.
    let quota = children.sandbox_quota.as_ref().is_some_and(|quota| observed.owns(&**quota));
    status.sandbox_namespace.created &= quota;
    let undecided = presence(observed, settings, now) == Presence::Undecided;
    let refused = problems.iter().any(|problem| problem.component.is_empty());
    if !undecided && !refused {
        status.quota = share(observed, &enrolment, &settings.config).0.status();
    }
    own_workspace(observed, settings, &problems, &mut status);
    status.ready = problems.is_empty() && failures.is_empty();
    let mut observations = vec![ready(&status, &problems, undecided), enrolled(&status.failing_workspaces)];
    observations.extend(problems::observations(&problems, "Everything that the Tenant needs is in place"));
    let retired = problems::retired(&observations);
    let generation = observed.tenant.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, &observations, retired, generation, now);
    let mut events = problems::events(&old.conditions, &problems);
    events.extend(failing_event(old, &status));
    Report { status, events }
}

/// What is known of the account. An account that could not be asked for stays as it was known.
fn account(account: &Account, status: &mut TenantStatus, problems: &mut Vec<Problem>) {
    let keycloak = &mut status.keycloak;
    let Account::On(synchronized) = account else {
        keycloak.user_synchronized = true;
        return;
    };
    if let Some(user) = &synchronized.user {
        keycloak.user_created = NameCreated { created: true, name: user.id.clone() };
        keycloak.user_confirmed = user.confirmed;
        keycloak.action_mail.clone_from(&user.mail);
    }
    keycloak.user_synchronized = synchronized.error.is_none();
    if let Some(error) = &synchronized.error {
        problems.push(Problem {
            component: KEYCLOAK.to_owned(),
            reason: error.reason(),
            message: error.to_string(),
            waiting: false,
        });
    }
}

/// A namespace counts once it takes objects, and no longer when it is being deleted.
fn namespace(observed: &Observed, namespace: Option<&Namespace>) -> NameCreated {
    let usable = namespace.filter(|found| observed.owns(*found) && !found.is_terminating());
    usable.map(|found| NameCreated { created: true, name: found.name().to_owned() }).unwrap_or_default()
}

/// The personal workspace; nothing is said of one that there never was (05 §17).
fn own_workspace(observed: &Observed, settings: &Settings, problems: &[Problem], status: &mut TenantStatus) {
    let wanted = wants_own_workspace(observed, settings);
    let binding = observed.children.templates.as_ref().is_some_and(|binding| observed.owns(&**binding));
    if wanted || status.personal_workspace_created.is_some() {
        status.personal_workspace_created = Some(wanted && binding);
    }
    if problems.iter().any(|problem| problem.component == PERSONAL_WORKSPACE) {
        status.failing_workspaces.push(OWN_WORKSPACE.to_owned());
    }
}

fn ready(status: &TenantStatus, problems: &[Problem], undecided: bool) -> Observation {
    let (reason, message) = match problems.first() {
        Some(problem) => (problem.reason.to_owned(), "See condition Reconciled".to_owned()),
        None if !status.ready => ("Pending".to_owned(), "The Tenant is being set up".to_owned()),
        None if undecided => (
            "AwaitingVerification".to_owned(),
            "The account exists; the rest follows when the e-mail address is confirmed".to_owned(),
        ),
        None if !status.personal_namespace.created => {
            ("Inactive".to_owned(), "The personal namespace is made when the Tenant logs in again".to_owned())
        }
        None => ("Ready".to_owned(), "The Tenant can work".to_owned()),
    };
    Observation { type_: "Ready", holds: Some(status.ready), reason, message }
}

fn enrolled(failing: &[String]) -> Observation {
    let (reason, message) = if failing.is_empty() {
        ("Enrolled", "Every Workspace of the Tenant counts".to_owned())
    } else {
        ("WorkspaceNotFound", failing_message(failing))
    };
    Observation { type_: ENROLLED, holds: Some(failing.is_empty()), reason: reason.to_owned(), message }
}

fn failing_message(failing: &[String]) -> String {
    format!("these Workspaces do not exist or do not take the Tenant in this role: {}", failing.join(", "))
}

/// Told once, when the list of failing Workspaces changes.
fn failing_event(old: &TenantStatus, new: &TenantStatus) -> Option<EventNote> {
    let changed = old.failing_workspaces != new.failing_workspaces && !new.failing_workspaces.is_empty();
    changed.then(|| EventNote {
        type_: EventType::Warning,
        reason: "WorkspaceNotFound".to_owned(),
        message: failing_message(&new.failing_workspaces),
    })
}
