//! The rules for Tenants (05 §14b): what they are completed with, and who may change what of them.

pub mod changes;
pub mod defaults;
pub mod input;
pub mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::requester::Bypass;
use crate::api::tenant::Role;

/// The Tenant that owns the Instances of exams. It is not under the care of the Tenant loop unless
/// an administrator puts it there (05 §14b).
pub const SERVICE_TENANT: &str = "service-tenant";

/// What the rules for Tenants depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The labels of the Tenants that are ours.
    pub selector: BTreeMap<String, String>,
    /// Who is not held to the rules.
    pub bypass: Bypass,
    /// The Workspaces that every Tenant is a user of.
    pub base_workspaces: Vec<String>,
    /// Whether Tenants may have a Workspace of their own.
    pub personal_workspaces: bool,
}

impl Settings {
    /// Whether everybody has that role in that Workspace without being given it.
    fn is_everybodys(&self, workspace: &str, role: &Role) -> bool {
        *role == Role::User && self.base_workspaces.iter().any(|base| base == workspace)
    }
}
