//! crownlabs: one daemon that runs every control loop of a `CrownLabs` cluster. `docs/architecture.md` follows
//! one object from the watch event to its status.
//!
//! A module imports only modules before it in this list. `tests/layers` lists modules that do not import each other:
//!
//! - [`api`]: the custom resources, one file for each kind; quantities, names, labels. Data only: no client of
//!   the API server and no async runtime.
//! - [`kinds`]: the kinds of Kubernetes and other projects, with the fields that a loop reads.
//! - [`config`]: the configuration file: types, defaults, validation, schema.
//! - [`from_values`]: `crownlabs config from-values`, the configuration for the values of the Go operators' chart.
//! - [`runtime`]: the parts that all loops share: stores, queue, driver, apply engine, events, errors, the HTTP
//!   server. It knows no loop.
//! - [`clients`]: the servers outside the cluster.
//! - [`netlink`]: links, addresses and routes of network namespaces. It knows nothing of Kubernetes.
//! - [`capture`]: the packets of this host: counts the connections that it opens. It knows nothing of Kubernetes.
//! - [`class`]: the actions on the machines of a class, for the dashboard and the command line.
//! - [`controllers`]: the control loops, one folder for each: how it observes, plans and reports.
//! - [`webhook`]: the admission webhooks: rules as pure functions, the HTTPS server, its certificate.
//! - [`loops`]: the table of the control loops.
//! - [`manager`]: start and stop of the process: connections, loops, lease, probes, metrics.
//! - [`offline`]: `crownlabs plan`, which prints the plans of the same loops without a cluster.
//! - [`explain`]: `crownlabs why`, `crownlabs status` and `crownlabs --version`, in the words of conditions and events.
//! - [`release`]: `crownlabs release`, which releases objects of a former selector.
//! - [`preview`]: the writes of the loops in a live cluster: `crownlabs plan --kubeconfig`, `crownlabs takeover check`.
//! - [`connect`]: whether the daemon could work: `crownlabs config check --connect`.
//! - [`classroom`]: `crownlabs class`, the actions on a class from the command line.

// Code that only the daemon uses is also compiled for the commands; the linker removes it.
#![cfg_attr(not(feature = "daemon"), allow(dead_code, unused_imports))]

#[cfg(all(feature = "daemon", not(target_os = "linux")))]
compile_error!(
    "the daemon is for Linux: build the commands alone, with --no-default-features --features cli"
);

pub mod api;
mod capture;
mod class;
mod classroom;
mod clients;
mod config;
mod connect;
mod controllers;
mod explain;
#[cfg(test)]
mod fixtures;
mod from_values;
mod kinds;
mod loops;
mod manager;
#[cfg(feature = "daemon")]
mod netlink;
mod offline;
mod preview;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reference;
mod release;
mod runtime;
#[cfg(feature = "daemon")]
mod webhook;

pub use api::shown::escaped_lines;
pub use class::model::Verb as ClassVerb;
pub use classroom::{ClassAction, ClassFormat, ClassResult, class};
pub use config::{
    Config, ConfigError, SCHEMA as CONFIGURATION_SCHEMA, default_document as default_configuration,
};
pub use connect::connections;
pub use explain::{Answer, cluster_versions, installation, status, why};
pub use from_values::{FromValues, Made, from_values};
#[cfg(feature = "daemon")]
pub use manager::lease::LostLease;
#[cfg(feature = "daemon")]
pub use manager::logging::{LogFilter, start as start_logging};
pub use manager::start_up::ClusterOptions;
#[cfg(feature = "daemon")]
pub use manager::{EXIT_LEASE_LOST, Options, run};
pub use offline::files::{Input, read_one as read_input};
pub use offline::format::Format;
pub use offline::{Output, Surroundings, plan};
pub use preview::{Findings, changes, plan_beside, takeover};
pub use release::{Release, release};
pub use runtime::readiness::state::VERSION;

/// The custom resource definitions, as YAML documents. With `integer_cpu`, the processor cores of quotas are whole
/// numbers, as the newest dashboard and its relay expect. Otherwise they may also be amounts such as `500m`.
pub fn crds(integer_cpu: bool) -> String {
    let mut definitions = api::crd::crds();
    if integer_cpu {
        definitions.iter_mut().for_each(api::crd::with_integer_cpu);
    }
    api::crd::to_yaml(&definitions)
}

/// Parts that integration tests and the benchmark use directly. No other code may use them.
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod testing {
    pub use crate::capture::{
        Capture, ConnectionCounter, OpenConnections, Settings, State, THREAD, Tracked, program,
    };
    pub use crate::clients::oidc::Secret;
    pub use crate::clients::{cri, keycloak, mail, prometheus};
    pub use crate::config::{ConfigDuration, KeycloakConfig, MailConfig, MailTls, MailTransport};
    pub use crate::controllers::dashboard::session::{Keys, Session};
    pub use crate::controllers::shared::ended_session::annotation as ended_session;
    pub use crate::controllers::shared::machine_host::{HostKey, peer_label};
    pub use crate::controllers::shared::machine_login::{Code, Pass};
    pub use crate::controllers::ssh_tracker::SshTrackerLoop;
    pub use crate::runtime::clock;
    pub use crate::runtime::gate::Gate;
    pub use crate::runtime::readiness::Readiness;
    pub use crate::runtime::replica::{Replica, Replicas};
    pub use crate::webhook::certificate::authority::Authority;
    pub use crate::webhook::certificate::bundle::Bundle;
}
