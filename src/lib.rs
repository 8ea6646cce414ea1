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
pub mod clients;
pub mod config;
pub mod controllers;
pub mod kinds;
pub mod manager;
pub mod offline;
pub mod runtime;
pub mod webhook;
