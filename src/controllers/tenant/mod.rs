//! The tenant loop creates the namespaces, quota, network policies, RBAC, personal volume and Keycloak account of
//! Tenants.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Tenant, its Workspaces, the objects that it owns, and the Instances and Templates in its namespace |
//! | plan | finalizer and labels; RBAC for itself; the personal namespace with its objects, or its removal; the sandbox; the volume with its Secret and Job; the account in Keycloak |
//! | apply | the shared engine, which asks the API server whether a namespace is empty before it deletes it; Keycloak at the same time |
//! | report | namespaces, account, quota, failing workspaces, ready, conditions; one patch of the status, if it differs |
//!
//! Keycloak knows whether the e-mail address is confirmed. The answer is stored in the status, and the next reconcile,
//! which follows at once, plans with it. If the process dies between two writes, the next reconcile plans the remaining
//! ones from the existing objects. A Tenant that is being deleted keeps its finalizer until all of these objects are
//! deleted. The personal volume is kept unless the configuration says otherwise.

mod account_events;
mod children;
mod claims;
mod enrolment;
#[cfg(test)]
mod fixtures;
mod gauges;
mod lifetime;
mod managers;
mod my_drive;
mod names;
mod observe;
mod plan;
mod policies;
mod quota;
mod reconcile;
mod report;
mod stores;
pub mod telemetry;

pub use reconcile::TenantReconciler;

use std::time::Duration;

use crate::config::{Storage, SwitchedOff, TenantConfig};
use crate::controllers::accounts::Known;
use crate::controllers::shared::responsibility::Responsibility;
use crate::runtime::reconciler;

/// The settings that plans and reports depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The Tenants that this daemon is responsible for.
    pub responsibility: Responsibility,
    /// The configuration of the loop.
    pub config: TenantConfig,
    /// Whether Keycloak is configured.
    pub has_keycloak: bool,
    /// How environments mount personal volumes.
    pub storage: Storage,
    /// Whether the network of machines in an exam is restricted.
    pub restricts_exams: bool,
    /// How long a problem outside the Tenant must last to make it `Stalled`.
    pub stalled_after: Duration,
    /// The fields that the configuration switches off.
    pub off: SwitchedOff,
}

/// The effects: changes in Keycloak, and lists of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Create or update the account, and assign exactly these managed roles.
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
