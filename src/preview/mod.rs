//! The writes of the daemon in a live cluster: `crownlabs plan --kubeconfig` and `crownlabs takeover check`. They use
//! the loops and stores of `run` with a permanently closed gate, so only reads are sent.

mod diff;
mod layout;
mod obstacles;
mod surroundings;
pub mod text;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use tokio::task::JoinSet;

use self::obstacles::Obstacles;
use crate::config::Config;
use crate::controllers::setup::{Integrations, Setup};
use crate::loops::{BuiltLoop, leader_loops};
use crate::manager::start_up::{self, ClusterOptions};
use crate::offline::format::Format;
use crate::offline::{self, Output};
use crate::runtime::client::{self, UserClient, Writer};
use crate::runtime::gate::Gate;
use crate::runtime::preview::Previewed;
use crate::runtime::store::StoreFactory;
use crate::runtime::watch_health::WatchHealth;
use crate::runtime::{clock, readiness};

/// The time limit for the API server's version.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a list may keep failing.
const LIST: Duration = Duration::from_secs(5);
/// The interval between checks of the lists.
const LOOK: Duration = Duration::from_millis(500);

/// The text to print, and whether there are no findings.
#[derive(Debug)]
pub struct Findings {
    /// For people.
    pub text: String,
    /// For `plan`: there are no writes. For `takeover check`: there are no obstacles.
    pub is_clean: bool,
}

/// Previews the writes of the loops in a cluster: one reconcile of each object, and a second one if the answer of
/// Keycloak or Prometheus changes the plan. Consequences of the writes are not included.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn changes(
    config: &Config,
    cluster: &ClusterOptions,
    format: Option<Format>,
) -> anyhow::Result<Findings> {
    let live = Live::connect(cluster).await?;
    let mut previews = live.preview(config).await?;
    if let Some(namespace) = &cluster.namespace {
        previews.previews.retain(|preview| preview.key.namespace == *namespace);
    }
    let Previews { previews: found, messages } = &previews;
    let is_clean = found.iter().all(|preview| preview.writes.is_empty() && preview.later.is_empty());
    let text = match format {
        Some(format) => format.write(&value::changes(&previews))?,
        None => text::changes(found, messages),
    };
    Ok(Findings { text, is_clean })
}

/// Plans the objects that the loops would make for the custom resources in files, with the Workspaces, Tenants,
/// Templates and shared volumes of a cluster.
///
/// # Errors
/// When a file or the cluster cannot be read.
pub async fn plan_beside(
    files: &[PathBuf],
    config: &Config,
    cluster: &ClusterOptions,
) -> anyhow::Result<Output> {
    let live = Live::connect(cluster).await?;
    offline::plan(files, config, surroundings::read(&live.client, cluster.namespace.clone()).await?)
}

/// Previews the takeover of a cluster that the Go operators run: the changes for its users, and the obstacles.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn takeover(
    config: &Config,
    cluster: &ClusterOptions,
    format: Option<Format>,
) -> anyhow::Result<Findings> {
    let live = Live::connect(cluster).await?;
    let previews = live.preview(config).await?;
    let obstacles = Obstacles::find(&live.client, config, &previews.previews).await;
    let text = match format {
        Some(format) => format.write(&value::takeover(&obstacles, &previews))?,
        None => text::takeover(&obstacles, &previews.previews, &previews.messages),
    };
    Ok(Findings { text, is_clean: obstacles.is_empty() })
}

/// A cluster with read-only access.
struct Live {
    client: Client,
    writer: Writer,
    users: UserClient,
}

/// The previews of a cluster's objects.
struct Previews {
    previews: Vec<Previewed>,
    /// The loops that were not previewed, one sentence each.
    messages: Vec<String>,
}

impl Live {
    async fn connect(cluster: &ClusterOptions) -> anyhow::Result<Self> {
        let kubeconfig = start_up::kubeconfig(cluster).await?;
        let url = kubeconfig.cluster_url.to_string();
        let client = client::build(kubeconfig.clone(), Gate::closed())?;
        let users = UserClient::new(&kubeconfig)?;
        let writer = Writer::new(kubeconfig, Gate::closed())?;
        start_up::version(&client, &url, ANSWER).await?;
        Ok(Self { client, writer, users })
    }

    /// Fills the stores of the enabled loops, and previews the writes of each loop.
    async fn preview(&self, config: &Config) -> anyhow::Result<Previews> {
        let gate = Gate::closed();
        let mut setup = Setup::new(config, gate.clone());
        setup.set_integrations(Integrations {
            accounts: start_up::accounts(config, &gate)?,
            mailer: start_up::mailer(config, &gate)?,
            prometheus: start_up::prometheus(config)?,
        });
        setup.users = Some(self.users.clone());
        let mut factory = StoreFactory::default();
        let loops = leader_loops(&config.controllers, &mut setup, &mut factory)?;
        let mut watches = JoinSet::new();
        let mut health = Vec::new();
        for (plural, state, watch) in factory.watches(&self.client) {
            watches.spawn(watch);
            health.push((plural, state));
        }
        listed(&loops, &health).await?;
        let (mut previews, mut messages) = (Vec::new(), Vec::new());
        for (name, built) in &loops {
            let missing = readiness::missing(built.needs());
            if missing.is_empty() {
                previews.extend(built.preview(&self.writer, clock::now()).await);
            } else {
                let missing = missing.join(", ");
                messages
                    .push(format!("the {name} loop would wait for CRDs that are not installed: {missing}"));
            }
        }
        Ok(Previews { previews, messages })
    }
}

/// Waits until the stores of the loops are filled.
async fn listed(loops: &[(&str, Box<dyn BuiltLoop>)], health: &[(&str, WatchHealth)]) -> anyhow::Result<()> {
    let settled = join_all(loops.iter().map(|(_, built)| readiness::settled(built.needs())));
    let given_up = async {
        loop {
            tokio::time::sleep(LOOK).await;
            let broken = health.iter().find_map(|(plural, health)| {
                let (since, reason) = health.broken()?;
                (since >= LIST).then(|| anyhow::anyhow!("the {plural} cannot be listed: {reason}"))
            });
            if let Some(error) = broken {
                break error;
            }
        }
    };
    tokio::select! {
        _ = settled => Ok(()),
        error = given_up => Err(error),
    }
}
