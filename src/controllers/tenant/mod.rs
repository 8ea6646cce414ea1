//! The tenant loop makes the namespaces, quota, network policies, RBAC, personal volume and Keycloak account
//! of Tenants.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Tenant, its Workspaces, the objects that it owns, and the Instances and Templates in its namespace |
//! | plan | finalizer and labels; RBAC for itself; the personal namespace with its objects, or its removal; the sandbox; the volume with its Secret and Job; the account in Keycloak |
//! | apply | the shared engine, which asks the API server whether a namespace is empty before it deletes it; Keycloak at the same time |
//! | report | namespaces, account, quota, failing workspaces, ready, conditions; one patch of the status, if it differs |
//!
//! Keycloak knows whether the e-mail address is confirmed. That is stored in the status, and the next
//! reconcile, which follows at once, plans with it. If the process dies between any two writes, the next
//! reconcile plans the rest from what exists. A Tenant that is being deleted keeps its finalizer until all
//! of these objects are deleted; the personal volume is kept unless it is configured otherwise.

mod account_events;
mod children;
mod enrolment;
#[cfg(test)]
mod fixtures;
mod gauges;
mod lifetime;
mod my_drive;
mod names;
mod observe;
mod plan;
mod quota;
mod reconcile;
mod report;
mod stores;
pub mod telemetry;

pub use reconcile::TenantReconciler;

use crate::config::TenantConfig;
use crate::controllers::accounts::Known;
use crate::controllers::shared::responsibility::Responsibility;
use crate::runtime::reconciler;

/// The settings that plans and reports depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Which Tenants this daemon is responsible for.
    pub responsibility: Responsibility,
    /// The configuration of the loop.
    pub config: TenantConfig,
    /// Whether Keycloak is configured.
    pub has_keycloak: bool,
}

/// The effects in Keycloak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Create or update the account, and assign exactly these of our roles.
    SynchronizeAccount {
        /// The names of the roles.
        roles: Vec<String>,
    },
    /// Delete the account.
    RemoveAccount,
}

impl reconciler::Effect for Effect {
    type Result = Known;
}
