//! The writes of the daemon in a live cluster: `crownlabs plan --kubeconfig` and `crownlabs takeover check`. Loops and
//! stores are those of `run`; the gate is closed for ever, so nothing but reads can be sent.

mod layout;
mod obstacles;
mod surroundings;
pub mod text;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use futures::future::join_all;
use kube::Client;
use tokio::task::JoinSet;

use self::obstacles::Obstacles;
use crate::config::Config;
use crate::controllers::setup::Setup;
use crate::loops::{Built, BuiltLoop, LOOPS};
use crate::manager::start_up::{self, ClusterOptions};
use crate::offline::format::Format;
use crate::offline::{Output, plan_with};
use crate::runtime::client::{self, UserClient, Writer};
use crate::runtime::clock;
use crate::runtime::gate::Gate;
use crate::runtime::preview::Previewed;
use crate::runtime::readiness;
use crate::runtime::store::StoreFactory;
use crate::runtime::watch_health::WatchHealth;

/// How long the API server may take to say its version.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a list may fail until it is given up.
const LIST: Duration = Duration::from_secs(5);
/// The time between two looks at the lists.
const LOOK: Duration = Duration::from_millis(500);

/// The text that is printed, and whether there are no findings.
#[derive(Debug)]
pub struct Findings {
    /// For people.
    pub text: String,
    /// `plan`: nothing would be written. `takeover check`: nothing stands in the way.
    pub is_clean: bool,
}

/// The writes of the loops in a cluster now: those of a reconcile of each object, and, where Keycloak or Prometheus
/// answer from here and the answer changes the plan, the reconcile after it. What follows from writes is not looked at.
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

/// What the loops would make for the custom resources in files, beside the Workspaces, Tenants, Templates and shared volumes
/// of a cluster.
///
/// # Errors
/// When a file or the cluster cannot be read.
pub async fn plan_beside(
    files: &[PathBuf],
    config: &Config,
    cluster: &ClusterOptions,
) -> anyhow::Result<Output> {
    let live = Live::connect(cluster).await?;
    plan_with(files, config, surroundings::read(&live.client, cluster.namespace.clone()).await?)
}

/// The same, for a cluster that the Go operators run: what would change for its users, and what stands in the way.
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

/// A cluster that is only read.
struct Live {
    client: Client,
    writer: Writer,
    users: UserClient,
}

/// The previews of its objects.
struct Previews {
    previews: Vec<Previewed>,
    /// The loops that were not looked at, a sentence each.
    messages: Vec<String>,
}

impl Live {
    async fn connect(cluster: &ClusterOptions) -> anyhow::Result<Self> {
        let kubeconfig = start_up::kubeconfig(cluster).await?;
        let url = kubeconfig.cluster_url.clone();
        let client = client::build(kubeconfig.clone(), Gate::closed())?;
        let users = UserClient::new(&kubeconfig)?;
        let writer = Writer::new(kubeconfig, Gate::closed())?;
        let version = tokio::time::timeout(ANSWER, client.apiserver_version()).await;
        let version = version.with_context(|| format!("the API server {url} did not answer within 10 s"))?;
        version.with_context(|| format!("the API server {url} cannot be used"))?;
        Ok(Self { client, writer, users })
    }

    /// Fills the stores of the loops that are enabled, and asks each loop what it would write.
    async fn preview(&self, config: &Config) -> anyhow::Result<Previews> {
        let gate = Gate::closed();
        let mut setup = Setup::new(config, gate.clone());
        setup.accounts = start_up::accounts(config, &gate)?;
        setup.mailer = start_up::mailer(config, &gate)?;
        setup.prometheus = start_up::prometheus(config)?;
        setup.users = Some(self.users.clone());
        let mut factory = StoreFactory::default();
        let mut loops = Vec::new();
        for entry in LOOPS.iter().filter(|entry| (entry.toggle)(&config.controllers).enabled) {
            // Replica loops write nothing in the cluster that anybody else has.
            if let Built::Leader(built) = (entry.build)(&mut setup, &mut factory)? {
                loops.push((entry.name, built));
            }
        }
        if let Some(file) = setup.files.iter().find(|file| !file.is_readable()) {
            anyhow::bail!("{}: {} cannot be read", file.key, file.path.display());
        }
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
async fn listed(
    loops: &[(&str, Box<dyn BuiltLoop>)],
    health: &[(&'static str, WatchHealth)],
) -> anyhow::Result<()> {
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
