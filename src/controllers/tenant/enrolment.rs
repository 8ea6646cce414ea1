//! The Workspaces that a Tenant is enrolled in, and the labels for them.

use std::collections::BTreeMap;

use super::names::clean;
use super::observe::Observed;
use crate::api::tenant::Role;
use crate::api::workspace::{AutoEnroll, Workspace};
use crate::api::{labels, reason};
use crate::controllers::shared::children::exactly;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The component of the enrolments.
pub const ENROLMENT: Component = Component::Part("enrolment");

/// The maximum number of Workspaces in a message.
const NAMED: usize = 5;

/// The Workspaces of a Tenant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Enrolment<'a> {
    /// The Workspaces that the Tenant is enrolled in or a candidate of, with its role, in the order of the spec.
    pub valid: Vec<(&'a Workspace, &'a Role)>,
    /// The names of the Workspaces that the Tenant cannot be in.
    pub failing: Vec<String>,
    /// The reasons in the same order, one sentence each.
    why: Vec<String>,
}

impl<'a> Enrolment<'a> {
    /// The Workspaces of a Tenant. A Workspace fails if it does not exist, does not accept candidates, or has a name
    /// that does not fit into a label. A Workspace that cannot be read accepts its current members.
    pub fn of(observed: &'a Observed) -> Self {
        let mut enrolment = Self::default();
        for entry in &observed.tenant.spec.workspaces {
            let workspace = observed.workspaces.get(&entry.name);
            match (workspace, refusal(&entry.name, workspace.map(AsRef::as_ref), &entry.role)) {
                (Some(workspace), None) => enrolment.valid.push((workspace, &entry.role)),
                (_, why) => {
                    enrolment.failing.push(entry.name.clone());
                    enrolment.why.extend(why);
                }
            }
        }
        enrolment
    }

    /// The problem that some Workspaces of the Tenant fail. All other work for the Tenant continues.
    pub fn problem(&self) -> Option<Problem> {
        let named = self.why.iter().take(NAMED).cloned();
        let more = self.why.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("{more} more Workspaces fail, too"));
        let message = named.chain(more).collect::<Vec<_>>().join("; ");
        let problem = || Problem::elsewhere(ENROLMENT, reason::WORKSPACE_NOT_FOUND, message);
        (!self.failing.is_empty()).then(problem)
    }

    /// The Workspaces with the Tenant as a user or a manager.
    pub fn enrolled(&self) -> impl Iterator<Item = (&'a Workspace, &'a Role)> {
        self.valid.iter().copied().filter(|(_, role)| matches!(role, Role::User | Role::Manager))
    }

    /// The roles that the Tenant has in Keycloak.
    pub fn roles(&self) -> Vec<String> {
        self.enrolled().map(|(workspace, role)| format!("workspace-{}:{role}", workspace.name())).collect()
    }
}

/// The reason why a Tenant cannot have this role in the Workspace with this name; `None` if it can.
fn refusal(name: &str, workspace: Option<&Workspace>, role: &Role) -> Option<String> {
    let fix = "remove it from spec.workspaces of the Tenant";
    let Some(workspace) = workspace else {
        return Some(format!("Workspace {name} does not exist: create it, or {fix}"));
    };
    if labels::workspace_role(name).is_none() {
        return Some(format!("the name of Workspace {name} does not fit into a label: {fix}"));
    }
    let takes_candidates =
        workspace.malformed.is_some() || workspace.spec.auto_enroll == AutoEnroll::WithApproval;
    match role {
        Role::Candidate if !takes_candidates => Some(format!(
            "Workspace {name} does not accept candidates: set its spec.autoEnroll to withApproval, or {fix}"
        )),
        Role::Other(role) => {
            Some(format!("role {role:?} in Workspace {name} is unknown: write user, manager or candidate"))
        }
        Role::Candidate | Role::User | Role::Manager => None,
    }
}

/// The labels of a Tenant. A label with `None` must be removed.
pub fn wanted_labels(
    observed: &Observed,
    enrolment: &Enrolment<'_>,
    selector: &BTreeMap<String, String>,
    base_workspaces: &[String],
) -> BTreeMap<String, Option<String>> {
    let spec = &observed.tenant.spec;
    let present = observed.tenant.metadata.labels.iter().map(|(key, _)| key);
    let of_workspaces = present.filter(|key| key.starts_with(labels::WORKSPACE_PREFIX));
    let former = of_workspaces.map(|key| (key.to_owned(), None));
    let mut wanted: BTreeMap<String, Option<String>> = former.chain(exactly(selector)).collect();
    wanted.insert(labels::MANAGED_BY.to_owned(), Some(labels::MANAGED_BY_TENANT.to_owned()));
    wanted.insert(labels::FIRST_NAME.to_owned(), Some(clean(&spec.first_name)));
    wanted.insert(labels::LAST_NAME.to_owned(), Some(clean(&spec.last_name)));
    for (workspace, role) in &enrolment.valid {
        let key = labels::workspace_role(workspace.name());
        wanted.extend(key.map(|key| (key, Some(role.to_string()))));
    }
    let mut counted = enrolment.valid.iter().map(|(workspace, _)| workspace.name().to_owned());
    let none = counted.all(|name| base_workspaces.contains(&name));
    wanted.insert(labels::NO_WORKSPACES.to_owned(), none.then(|| "true".to_owned()));
    wanted
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use crate::api::condition::Condition;
    use crate::controllers::tenant::fixtures::{observed, settings};
    use crate::controllers::tenant::plan::plan;
    use crate::controllers::tenant::report::report;
    use crate::runtime::reconciler::{Outcome, Reconciled};

    #[test]
    fn many_unknown_courses_are_one_problem_of_bounded_length() {
        let entries: Vec<Value> =
            (0..1_000).map(|n| json!({"name": format!("ghost-{n}"), "role": "user"})).collect();
        let observed = observed(&json!({"workspaces": entries}), &[]);
        let now = Timestamp::UNIX_EPOCH;
        let plan = plan(&observed, &settings(), now);
        let first = report(&Reconciled::of(&observed, &settings(), &plan, &Outcome::of(Vec::new()), now));
        let events: Vec<&str> = first.events.iter().map(|event| event.reason.as_str()).collect();
        assert_eq!(events, ["WorkspaceNotFound"]);
        for type_ in ["Ready", "Reconciled", "Enrolled"] {
            let condition = first.status.conditions.iter().find(|condition| condition.type_ == type_);
            let Condition { status, reason, message, .. } = condition.expect("it is there");
            assert_eq!((&**status, &**reason), ("False", "WorkspaceNotFound"), "{type_}");
            assert!(message.contains("Workspace ghost-4 does not exist"), "{message}");
            assert!(message.ends_with("995 more Workspaces fail, too") && message.len() < 1_000, "{message}");
        }
        let counted: Vec<&str> = first.counters.iter().map(|counter| counter.labels[1].1.as_str()).collect();
        assert_eq!(counted, ["workspace-not-exist"]);
    }
}
