//! The rules for Tenants: their defaults, and the users who may change each member.

pub mod changes;
pub mod defaults;
pub mod input;
pub mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::requester::Bypass;

/// The Tenant that owns the Instances of exams. It does not get the label that the Tenant loop selects Tenants by,
/// unless the request sets it.
pub const SERVICE_TENANT: &str = "service-tenant";

/// The settings of the rules for Tenants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The labels of the Tenants that this daemon reconciles (`selector`).
    pub selector: BTreeMap<String, String>,
    /// The users who are exempt from the rules.
    pub bypass: Bypass,
    /// The Workspaces that every Tenant is a user of (`baseWorkspaces`).
    pub base_workspaces: Vec<String>,
    /// Whether personal workspaces are enabled.
    pub personal_workspaces: bool,
}
