//! The tenant room: namespaces, shares, walls, rights, a personal volume and an account for each user
//! (05 §4-12, §17).
//!
//! | stage | what |
//! |---|---|
//! | observe | the Tenant, its Workspaces, the objects that it owns, what is in its namespace, from the stores; its account from Keycloak |
//! | plan | finalizer and labels; rights to itself; the personal namespace with all that belongs in it, or its removal; the sandbox; the volume with its Secret and Job |
//! | apply | Keycloak, then the shared engine; before a namespace is deleted the API server is asked once more whether it is empty |
//! | report | namespaces, account, quota, failing workspaces, ready, conditions; one patch of the status, if it differs |
//!
//! If the process dies between any two writes, the next pass plans from what it finds. A Tenant that
//! is being deleted keeps its finalizer until all of that is deleted but the volume, which is kept
//! unless it is configured otherwise.

mod account_events;
pub mod drive;
pub mod enrolment;
#[cfg(test)]
mod fixtures;
pub mod lifetime;
pub mod names;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod quota;
pub mod report;
mod room;
mod setup;
pub mod world;

pub use room::Room;
pub use setup::{account_events, set_up};
pub use world::World;

use std::collections::BTreeMap;

use crate::config::TenantConfig;

/// The settings that plans depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The labels of what is ours.
    pub selector: BTreeMap<String, String>,
    /// The keys of the loop.
    pub config: TenantConfig,
}
