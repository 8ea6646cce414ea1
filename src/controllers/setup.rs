//! The dependencies of loops, and how a loop is built.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use crate::capture::{ConnectionCounter, OpenConnections};
use crate::clients::mail::Mailer;
#[cfg(feature = "daemon")]
use crate::clients::oidc::Provider;
use crate::clients::prometheus::Prometheus;
use crate::config::{Config, Reader, read};
use crate::controllers::accounts::Accounts;
use crate::controllers::shared::former::Census;
use crate::controllers::shared::rivals::Rivals;
use crate::runtime::client::UserClient;
use crate::runtime::files::WatchedFile;
use crate::runtime::gate::Gate;
use crate::runtime::http_server::Handler;
use crate::runtime::object_events::EventLists;
use crate::runtime::outages::Outages;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::Reconciler;
use crate::runtime::replica::ReplicaLoop;
use crate::runtime::store_set::StoreSet;

/// The dependencies of loops, and everything that loops register in addition to their stores.
pub struct Setup<'a> {
    /// Reads the keys of the configuration.
    pub config: Reader<'a>,
    /// The gate that is open while this replica leads.
    pub gate: Gate,
    /// The outages of systems outside of the cluster, which clients report.
    pub outages: Outages,
    /// A client that sends writes without the lease, for loops that run on every replica; `None` without a cluster.
    pub ungated: Option<Client>,
    /// The clients of external services.
    integrations: Integrations,
    /// The issuer for the dashboard login; `None` if the dashboard is off or has no issuer.
    #[cfg(feature = "daemon")]
    pub issuer: Option<Provider>,
    /// Reads and writes on behalf of users; `None` in `crownlabs plan`, which has no API server.
    pub users: Option<UserClient>,
    /// The other installations named by marks on objects.
    pub rivals: Rivals,
    /// Counts the objects that were taken under another selector.
    pub censuses: Vec<Census>,
    /// Other leftovers of a former configuration.
    pub notices: Vec<Notice>,
    /// Lists the events of namespaces. In `crownlabs plan`, nothing is listed.
    pub events: EventLists,
    /// Files that loops watch.
    pub files: Vec<WatchedFile>,
    /// HTTP endpoints that loops serve.
    pub endpoints: Vec<Endpoint>,
    /// The SSH connections from the bastion, as far as they are tracked.
    pub ssh_connections: Arc<ConnectionCounter>,
    /// The SSH connections from the web terminal, if it is on.
    pub web_ssh_connections: Arc<ConnectionCounter>,
    /// The open SSH connections, from the bastion and from the web terminal, as far as they are tracked.
    pub open_connections: Arc<OpenConnections>,
    /// Whether `expositions` contains them.
    are_open_shown: bool,
    /// Families of metrics that loops render themselves.
    pub expositions: Vec<Exposition>,
    /// Functions that set gauges when metrics are read.
    pub gauges: Vec<Measure>,
}

/// The clients of external services that are configured.
#[derive(Default)]
pub struct Integrations {
    /// Accounts and roles in Keycloak.
    pub accounts: Option<Accounts>,
    /// Mails to tenants.
    pub mailer: Option<Mailer>,
    /// The metrics that show the use of Instances.
    pub prometheus: Option<Prometheus>,
}

/// A message for administrators. It is logged at the start and shown in the readiness while it applies.
pub struct Notice {
    /// Its name in the readiness.
    pub name: &'static str,
    /// The message; `None` while there is nothing to report.
    pub sentence: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

/// Sets gauges.
pub type Measure = Box<dyn Fn() + Send + Sync>;

/// Appends families of metrics to a text in the format of Prometheus.
pub type Exposition = Box<dyn Fn(&mut String) + Send + Sync>;

impl<'a> Setup<'a> {
    /// Creates a set-up without any external servers.
    pub fn new(config: &'a Config, gate: Gate) -> Self {
        Self {
            config: Reader::new(config),
            gate,
            outages: Outages::default(),
            ungated: None,
            integrations: Integrations::default(),
            #[cfg(feature = "daemon")]
            issuer: None,
            users: None,
            rivals: Rivals::default(),
            censuses: Vec::new(),
            notices: Vec::new(),
            events: EventLists::new(None),
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

    /// Sets the clients of external services.
    pub fn set_integrations(&mut self, integrations: Integrations) {
        self.integrations = integrations;
    }

    /// Accounts and roles in Keycloak; `None` if it is not configured.
    pub fn accounts(&mut self) -> Option<Accounts> {
        read!(self.config, integrations.keycloak);
        self.integrations.accounts.clone()
    }

    /// Mails to tenants; `None` if no transport is configured.
    pub fn mailer(&mut self) -> Option<Mailer> {
        read!(self.config, integrations.mail);
        self.integrations.mailer.clone()
    }

    /// The metrics that show the use of Instances; `None` if no URL is configured.
    pub fn prometheus(&mut self) -> Option<Prometheus> {
        read!(self.config, integrations.prometheus);
        self.integrations.prometheus.clone()
    }

    /// The open SSH connections, which `/metrics` shows once.
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
    /// The address that it listens on; `None` if it is disabled.
    pub address: Option<SocketAddr>,
    /// The handler of its requests.
    pub handler: Handler,
}

/// How a loop is built.
pub trait Definition: Reconciler + Sized {
    /// The reporting controller of its events.
    const EVENT_SOURCE: &'static str;

    /// Declares the stores of the loop, and returns the loop and its settings. Nothing is read or sent yet.
    ///
    /// # Errors
    /// If the configuration is invalid, although it was validated before.
    fn build(setup: &mut Setup<'_>, stores: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)>;

    /// Messages of `crownlabs plan` and `crownlabs takeover check` about an object, in addition to the problems of
    /// its plan.
    fn remarks(_observed: &Self::Observed, _settings: &Self::Settings, _now: Timestamp) -> Vec<String> {
        Vec::new()
    }

    /// The messages of `crownlabs plan -f`, which queries no cluster and no other system.
    fn remarks_from_files(
        observed: &Self::Observed,
        settings: &Self::Settings,
        now: Timestamp,
    ) -> Vec<String> {
        Self::remarks(observed, settings, now)
    }

    /// Objects that the loop creates once other components have done their part, for the loops that `crownlabs plan`
    /// runs after it. Placeholders stand for values that only those components know.
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
    /// Whether the loop uses the API server. A process starts without an API server if none of its loops uses it.
    const USES_API_SERVER: bool = true;

    /// Declares the stores of the loop, and returns it. Nothing is read or sent yet.
    ///
    /// # Errors
    /// If the configuration is invalid, although it was validated before.
    fn build(setup: &mut Setup<'_>, stores: &mut StoreSet<'_>) -> anyhow::Result<Self>;
}
