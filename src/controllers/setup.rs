//! What a loop is built from, and how.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use crate::capture::{ConnectionCounter, OpenConnections};
use crate::clients::mail::Mailer;
use crate::clients::prometheus::Prometheus;
use crate::config::Config;
use crate::controllers::accounts::Accounts;
use crate::runtime::client::UserClient;
use crate::runtime::files::WatchedFile;
use crate::runtime::gate::Gate;
use crate::runtime::http_server::Handler;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::Reconciler;
use crate::runtime::replica::ReplicaLoop;
use crate::runtime::store_set::StoreSet;

/// What loops are built from, and what they register in addition to their stores.
pub struct Setup<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The gate that is open while this replica leads.
    pub gate: Gate,
    /// A client that sends writes without the lease, for the loops of every replica; `None` where there is no cluster.
    pub ungated: Option<Client>,
    /// Accounts and roles in Keycloak; `None` where it is not configured.
    pub accounts: Option<Accounts>,
    /// Mails to tenants; `None` where no transport is configured.
    pub mailer: Option<Mailer>,
    /// The metrics by which the use of Instances is seen; `None` where no URL is configured.
    pub prometheus: Option<Prometheus>,
    /// Reads and writes in the name of users; `None` in `crownlabs plan`, which has no API server.
    pub users: Option<UserClient>,
    /// Files that loops watch.
    pub files: Vec<WatchedFile>,
    /// HTTP endpoints that loops serve.
    pub endpoints: Vec<Endpoint>,
    /// The SSH connections from the bastion, as far as they are tracked.
    pub ssh_connections: Arc<ConnectionCounter>,
    /// The SSH connections from the web terminal, if it is on.
    pub web_ssh_connections: Arc<ConnectionCounter>,
    /// The SSH connections that are open now, from the bastion and from the web terminal, as far as they are tracked.
    pub open_connections: Arc<OpenConnections>,
    /// Whether `expositions` has them.
    are_open_shown: bool,
    /// Families of metrics that loops render themselves.
    pub expositions: Vec<Exposition>,
    /// Sets gauges, when metrics are read.
    pub gauges: Vec<Measure>,
}

/// Sets gauges.
pub type Measure = Box<dyn Fn() + Send + Sync>;

/// Appends families of metrics to a text in the format of Prometheus.
pub type Exposition = Box<dyn Fn(&mut String) + Send + Sync>;

impl<'a> Setup<'a> {
    /// A set-up without any server outside of the cluster.
    pub fn new(config: &'a Config, gate: Gate) -> Self {
        Self {
            config,
            gate,
            ungated: None,
            accounts: None,
            mailer: None,
            prometheus: None,
            users: None,
            files: Vec::new(),
            endpoints: Vec::new(),
            ssh_connections: Arc::new(ConnectionCounter::new(
                "bastion_ssh_connections",
                "SSH connections detected from bastion to a target",
            )),
            web_ssh_connections: Arc::new(ConnectionCounter::new(
                "bastion_web_ssh_connections",
                "SSH connections established through the WebSocket bridge",
            )),
            open_connections: Arc::default(),
            are_open_shown: false,
            expositions: Vec::new(),
            gauges: Vec::new(),
        }
    }

    /// The SSH connections that are open now, which `/metrics` shows once.
    pub fn shown_open_connections(&mut self) -> Arc<OpenConnections> {
        if !std::mem::replace(&mut self.are_open_shown, true) {
            let shown = Arc::clone(&self.open_connections);
            self.expositions.push(Box::new(move |text| shown.render(text)));
        }
        Arc::clone(&self.open_connections)
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

    /// Objects that the loop makes once others have done their part, for the loops that `crownlabs plan` runs after it:
    /// with placeholders for what only they know.
    fn foreseen(
        _observed: &Self::Observed,
        _settings: &Self::Settings,
        _plan: &Plan<Self::Effect>,
    ) -> Vec<Value> {
        Vec::new()
    }
}

/// How a replica loop is built.
pub trait ReplicaDefinition: ReplicaLoop {
    /// Whether the loop uses the API server. A process in which nothing does starts without one.
    const USES_API_SERVER: bool = true;

    /// Declares the stores of the loop, and returns it. Nothing is read or sent yet.
    ///
    /// # Errors
    /// When the configuration cannot be used; it is checked for that before.
    fn build(setup: &mut Setup<'_>, stores: &mut StoreSet<'_>) -> anyhow::Result<Self>;
}
