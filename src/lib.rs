//! crownlabs: one daemon that runs every control loop of a `CrownLabs` cluster. `docs/architecture.md` follows
//! one object from the watch event to its status.
//!
//! A module imports only those before it in this list:
//!
//! - [`api`]: the custom resources, one file for each kind; quantities, names, labels. Data only: no client of
//!   the API server and no async runtime.
//! - [`kinds`]: the kinds of Kubernetes and other projects, with the fields that a loop reads.
//! - [`config`]: the configuration file: types, defaults, validation, schema.
//! - [`runtime`]: what all loops share: stores, queue, driver, apply engine, events, errors, the HTTP server. It
//!   knows no loop.
//! - [`clients`]: the servers outside of the cluster.
//! - [`controllers`]: the control loops, one folder for each: what it observes, plans and reports.
//! - [`webhook`]: the admission webhooks: rules as pure functions, the HTTPS server, its certificate.
//! - [`manager`]: start and stop of the process: connections, loops, lease, probes, metrics.
//! - [`offline`]: `crownlabs plan`, which prints the plans of the same loops without a cluster.

pub mod api;
pub mod clients;
pub mod config;
pub mod controllers;
pub mod kinds;
pub mod manager;
pub mod offline;
pub mod runtime;
pub mod webhook;
