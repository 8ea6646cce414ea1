//! The control loops, a folder each with the same files:
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs` | what the loop does, in a table |
//! | `stores.rs` | what it reads, and which changes ask for which objects |
//! | `observe.rs` | what is known of one object |
//! | `plan.rs` and its parts | what is to be done: pure functions |
//! | `report.rs` | what is told: a pure function |
//! | `reconcile.rs` | the loop itself: it puts these together for the driver in `runtime` |
//!
//! [`LOOPS`] is the table of all of them; [`shared`] is what several of them share.

#[cfg(test)]
mod example;
mod instance;
mod public_exposure;
mod shared;
mod shared_volume;
mod snapshot;
mod table;
mod tenant;
mod workspace;

pub use shared::accounts::Accounts;
pub use table::{LOOPS, Planned};

use std::net::SocketAddr;

use jiff::Timestamp;

use crate::config::Config;
use crate::runtime::files::WatchedFile;
use crate::runtime::gate::Gate;
use crate::runtime::http_server::Handler;
use crate::runtime::reconciler::Reconciler;
use crate::runtime::store_set::StoreSet;

/// What loops are built from, and what they ask of the process beside their stores.
pub struct Setup<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Whether this replica leads.
    pub gate: Gate,
    /// Accounts and roles in Keycloak, where that is configured.
    pub accounts: Option<Accounts>,
    /// Files that loops want to hear of when they change.
    pub files: Vec<WatchedFile>,
    /// Servers that loops want to answer.
    pub endpoints: Vec<Endpoint>,
}

/// A server that a loop answers.
pub struct Endpoint {
    /// Its key below `server` in the configuration.
    pub name: &'static str,
    /// Where it listens; `None` where it is switched off.
    pub address: Option<SocketAddr>,
    /// What it answers.
    pub handler: Handler,
}

/// How a loop is put together.
pub trait Definition: Reconciler + Sized {
    /// The source that its events name.
    const EVENT_SOURCE: &'static str;

    /// Declares the stores of the loop and builds it. Nothing is read or sent yet.
    ///
    /// # Errors
    /// When the configuration cannot be used; it is checked for that before.
    fn build(setup: &mut Setup<'_>, stores: &mut StoreSet<'_>) -> anyhow::Result<Self>;

    /// What `crownlabs plan` says of an object beside the problems of its plan.
    fn remarks(_observed: &Self::Observed, _settings: &Self::Settings, _now: Timestamp) -> Vec<String> {
        Vec::new()
    }
}
