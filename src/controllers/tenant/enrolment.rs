//! The Workspaces that a Tenant is enrolled in, and the labels for them.

use std::collections::BTreeMap;

use super::names::clean;
use super::observe::Observed;
use crate::api::labels;
use crate::api::tenant::Role;
use crate::api::workspace::{AutoEnroll, Workspace};

/// The Workspaces of a Tenant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Enrolment<'a> {
    /// Those that the Tenant is enrolled in or a candidate of, in the order of the spec, with the role in
    /// each.
    pub valid: Vec<(&'a Workspace, &'a Role)>,
    /// The names of those that the Tenant cannot be in.
    pub failing: Vec<String>,
}

impl<'a> Enrolment<'a> {
    /// The Workspaces of a Tenant. One is failing if it does not exist, does not accept candidates, or has a
    /// name that does not fit into a label. One that cannot be read accepts whom it has.
    pub fn of(observed: &'a Observed) -> Self {
        let mut enrolment = Self::default();
        for entry in &observed.tenant.spec.workspaces {
            match observed.workspaces.get(&entry.name) {
                Some(workspace) if accepts(workspace, &entry.role) => {
                    enrolment.valid.push((workspace, &entry.role));
                }
                _ => enrolment.failing.push(entry.name.clone()),
            }
        }
        enrolment
    }

    /// The Workspaces in which the Tenant is a user or a manager.
    pub fn enrolled(&self) -> impl Iterator<Item = (&'a Workspace, &'a Role)> {
        self.valid.iter().copied().filter(|(_, role)| matches!(role, Role::User | Role::Manager))
    }

    /// The roles that the Tenant has in Keycloak.
    pub fn roles(&self) -> Vec<String> {
        self.enrolled().map(|(workspace, role)| format!("workspace-{}:{role}", workspace.name())).collect()
    }
}

fn accepts(workspace: &Workspace, role: &Role) -> bool {
    let candidates = workspace.malformed.is_some() || workspace.spec.auto_enroll == AutoEnroll::WithApproval;
    labels::workspace_role(workspace.name()).is_some()
        && match role {
            Role::Candidate => candidates,
            Role::User | Role::Manager => true,
            Role::Other(_) => false,
        }
}

/// The labels of a Tenant; `None` for one that it must not have.
pub fn wanted_labels(
    observed: &Observed,
    enrolment: &Enrolment<'_>,
    selector: &BTreeMap<String, String>,
    base_workspaces: &[String],
) -> BTreeMap<String, Option<String>> {
    let spec = &observed.tenant.spec;
    let mut wanted: BTreeMap<String, Option<String>> = BTreeMap::new();
    let present = observed.tenant.metadata.labels.iter().map(|(key, _)| key);
    wanted.extend(
        present.filter(|key| key.starts_with(labels::WORKSPACE_PREFIX)).map(|key| (key.to_owned(), None)),
    );
    wanted.extend(selector.iter().map(|(key, value)| (key.clone(), Some(value.clone()))));
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
