//! crownlabs: one daemon that runs every control loop of a `CrownLabs` cluster.
//!
//! The map of the house:
//!
//! - [`api`]: the custom resources, one file a kind; quantities, names, labels. Data only: no client,
//!   no runtime.
//! - [`kinds`]: the kinds of others (Deployments, virtual machines, …), as far as we read them.
//! - [`config`]: the configuration file: types, defaults, validation, schema.
//! - [`runtime`]: what every loop shares: stores, queue, apply engine, conditions, events, errors. It
//!   knows no loop.
//! - [`controllers`]: the rooms, one folder a loop. Each observes the stores, plans as a pure
//!   function, applies through the shared engine, and reports.
//! - [`clients`]: the outside world: servers that are not the cluster's.
//! - [`manager`]: start-up and shut-down: which loops run, the lease, readiness, metrics, probes.
//! - [`webhook`]: the admission webhooks: rules as pure functions, the HTTPS server, its certificate.
//! - [`offline`]: `crownlabs plan`, the same plans without a cluster.

pub mod api;
mod clients;
mod config;
mod controllers;
mod kinds;
mod manager;
mod offline;
mod runtime;
mod webhook;

pub use config::{
    Config, ConfigError, default_document as default_configuration, schema as configuration_schema,
};
pub use manager::lease::LostLease;
pub use manager::logging::{LogFilter, start as start_logging};
pub use manager::{EXIT_LEASE_LOST, Options, run};
pub use offline::{Output, plan};

/// The custom resource definitions, as YAML documents.
pub fn crds() -> String {
    api::crd::to_yaml(&api::crd::crds())
}

/// Parts that the integration tests drive by themselves. Nothing else may use them.
#[doc(hidden)]
pub mod testing {
    pub use crate::clients::keycloak;
    pub use crate::runtime::clock;
    pub use crate::runtime::gate::Gate;
    pub use crate::webhook::certificate::authority::Authority;
    pub use crate::webhook::certificate::bundle::Bundle;
}
