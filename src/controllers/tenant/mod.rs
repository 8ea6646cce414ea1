//! The tenant loop: namespaces, quota, network policies, RBAC, a personal volume and an account for each user.
//!
//! | stage | what |
//! |---|---|
//! | observe | the Tenant, its Workspaces, the objects that it owns, and what is in its namespace, from the stores |
//! | plan | finalizer and labels; RBAC for itself; the personal namespace with all that belongs in it, or its removal; the sandbox; the volume with its Secret and Job; the account in Keycloak |
//! | apply | the shared engine, which asks the API server once more whether a namespace is empty before it deletes it; Keycloak beside it |
//! | report | namespaces, account, quota, failing workspaces, ready, conditions; one patch of the status, if it differs |
//!
//! Whether the e-mail address is confirmed is learned from Keycloak, and stored in the status: the next
//! reconcile, which follows at once, plans by it. If the process dies between any two writes, the next reconcile
//! plans from what it finds. A Tenant that is being deleted keeps its finalizer until all of that is deleted but
//! the volume, which is kept unless it is configured otherwise.

mod account_events;
mod enrolment;
#[cfg(test)]
mod fixtures;
mod lifetime;
mod my_drive;
mod names;
mod objects;
mod observe;
mod plan;
mod quota;
mod reconcile;
mod report;
mod stores;

pub use reconcile::TenantReconciler;

use std::collections::BTreeMap;

use crate::config::TenantConfig;

/// What plans and reports depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The labels of what is ours.
    pub selector: BTreeMap<String, String>,
    /// The keys of the loop.
    pub config: TenantConfig,
    /// Whether Keycloak is configured.
    pub has_keycloak: bool,
}

/// What a plan wants done in Keycloak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The account exists, says what the Tenant says, and has exactly these of our roles.
    SynchronizeAccount {
        /// The names of the roles.
        roles: Vec<String>,
    },
    /// The account does not exist.
    RemoveAccount,
}
