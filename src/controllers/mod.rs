//! The control loops, a folder each with the same files:
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs` | what the loop does, in a table |
//! | `stores.rs` | the stores that it reads, and which changes add which objects to the queue |
//! | `observe.rs` | what the plan and the report of one object depend on |
//! | `plan.rs` and its parts | the plan: pure functions |
//! | `report.rs` | status, conditions and events: a pure function |
//! | `reconcile.rs` | the implementation of `Reconciler`, which the driver in `runtime` calls |
//!
//! [`LOOPS`] is the table of all loops; [`shared`] is the code that several of them use.

#[cfg(test)]
mod example;
mod expiration;
mod inactivity;
mod instance;
mod public_exposure;
mod shared;
mod shared_volume;
mod snapshot;
mod submission;
mod table;
mod tenant;
mod termination;
mod workspace;

pub use shared::accounts::Accounts;
pub use table::{LOOPS, Planned};

use std::net::SocketAddr;

use jiff::Timestamp;

use crate::clients::mail::Mailer;
use crate::clients::prometheus::Prometheus;
use crate::config::Config;
use crate::runtime::files::WatchedFile;
use crate::runtime::gate::Gate;
use crate::runtime::http_server::Handler;
use crate::runtime::reconciler::Reconciler;
use crate::runtime::store_set::StoreSet;

/// What loops are built from, and what they register in addition to their stores.
pub struct Setup<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The gate that is open while this replica leads.
    pub gate: Gate,
    /// Accounts and roles in Keycloak; `None` where it is not configured.
    pub accounts: Option<Accounts>,
    /// Mails to tenants; `None` where no transport is configured.
    pub mailer: Option<Mailer>,
    /// The metrics by which the use of Instances is seen; `None` where no URL is configured.
    pub prometheus: Option<Prometheus>,
    /// Files that loops watch.
    pub files: Vec<WatchedFile>,
    /// HTTP endpoints that loops serve.
    pub endpoints: Vec<Endpoint>,
}

impl<'a> Setup<'a> {
    /// A set-up without any server outside of the cluster.
    pub fn new(config: &'a Config, gate: Gate) -> Self {
        Self {
            config,
            gate,
            accounts: None,
            mailer: None,
            prometheus: None,
            files: Vec::new(),
            endpoints: Vec::new(),
        }
    }
}

/// An HTTP endpoint that a loop serves.
pub struct Endpoint {
    /// Its key below `server` in the configuration.
    pub name: &'static str,
    /// The address on which it listens; `None` where it is disabled.
    pub address: Option<SocketAddr>,
    /// The handler of its requests.
    pub handler: Handler,
}

/// How a loop is built.
pub trait Definition: Reconciler + Sized {
    /// The reporting controller that its events name.
    const EVENT_SOURCE: &'static str;

    /// Declares the stores of the loop, and returns it and its settings. Nothing is read or sent yet.
    ///
    /// # Errors
    /// When the configuration cannot be used; it is checked for that before.
    fn build(setup: &mut Setup<'_>, stores: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)>;

    /// Messages of `crownlabs plan` about an object, in addition to the problems of its plan.
    fn remarks(_observed: &Self::Observed, _settings: &Self::Settings, _now: Timestamp) -> Vec<String> {
        Vec::new()
    }
}
