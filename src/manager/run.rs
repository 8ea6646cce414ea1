//! What `crownlabs run` does: it starts everything, leads, and ends in order.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use futures::future::join_all;
use futures::join;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tracing::{info, warn};

use super::cluster::{Cluster, gate, is_needed, takes_part};
use super::configuration_file::configuration_file;
use super::definitions;
use super::lease::{Election, Watchdog};
use super::logging::LogFilter;
use super::process;
use super::servers::{Exposed, serve, servers};
use super::start_up::{accounts, mailer, prometheus, stop_signal};
use super::telemetry;
use crate::config::Config;
use crate::config::loops::Toggle;
use crate::controllers::setup::{Endpoint, Setup};
use crate::loops::{Built, LOOPS};
use crate::runtime::control_loop::ControlLoop;
use crate::runtime::events::Recorder;
use crate::runtime::files;
use crate::runtime::gate::Gate;
use crate::runtime::readiness::Readiness;
use crate::runtime::replica::{Replica, Replicas};
use crate::runtime::store::StoreFactory;
use crate::runtime::task::{Task, first_ended};
use crate::runtime::watch_health;
use crate::webhook::setup::{self as webhook, Ending};

/// The exit code after the lease was lost.
pub const EXIT_LEASE_LOST: u8 = 3;
/// How long a replica whose first loop could work waits for the stores of the others before it takes the lease.
const OTHER_STORES: Duration = Duration::from_secs(10);
/// A stop takes this long at most; Kubernetes kills the process after 30 s (`terminationGracePeriodSeconds`).
const STOP_LIMIT: Duration = Duration::from_secs(27);
/// What is in work at a stop has this long to end. The rest is for the lease and for admission reviews.
const DRAIN_LIMIT: Duration = Duration::from_secs(18);

/// What `run` is started with.
pub struct Options {
    /// The configuration.
    pub config: Config,
    /// The file that it came from, watched for a new log filter.
    pub config_file: PathBuf,
    /// A kubeconfig other than that of the environment.
    pub kubeconfig: Option<PathBuf>,
    /// The log, whose filter is changed at run time.
    pub log: LogFilter,
}

/// Runs until SIGTERM or SIGINT, or until something without which there is no point in going on
/// ends.
///
/// # Errors
/// When the daemon cannot start, or had to stop by itself.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let mut stop = pin!(stop_signal()?);
    let started = tokio::select! {
        biased;
        () = &mut stop => {
            // The API server may never answer. Nothing has been begun that would have to end.
            info!("stopped before the start was complete");
            return Ok(());
        }
        started = start(options) => started?,
    };
    lead(started, stop).await
}

/// What runs once the start is complete, until the process stops.
struct Started {
    /// The election, where there is one.
    election: Option<Election>,
    gate: Gate,
    /// The loops of the leader.
    loops: Vec<ControlLoop>,
    /// The loops of every replica.
    replicas: Replicas,
    tasks: Vec<Task>,
    webhooks: Option<Ending>,
}

/// Connects to the API server, if anything needs it, and builds what runs.
async fn start(options: Options) -> anyhow::Result<Started> {
    let metrics = telemetry::install()?;
    process::record_start();
    let config = Arc::new(options.config);
    let readiness = Readiness::default();
    let exposed: Arc<OnceLock<Exposed>> = Arc::default();
    let mut tasks: Vec<Task> = servers(&config, &readiness, &metrics, Arc::clone(&exposed)).await?;
    let takes_part = takes_part(&config);
    let gate = gate(&config);
    let identity = process::identity();
    let cluster = if is_needed(&config) {
        Some(Cluster::connect(options.kubeconfig.clone(), &config, &gate, &identity).await?)
    } else {
        info!("nothing that is enabled needs the API server");
        None
    };
    let mut factory = StoreFactory::default();
    let (mut loops, replicas, setup) = build_loops(&config, &gate, cluster.as_ref(), &mut factory)?;
    if let Some(accounts) = setup.accounts.clone() {
        tasks.push(Task::new("Keycloak", accounts.watch_outage(readiness.clone())));
    }
    let mut files = vec![configuration_file(options.config_file, Arc::clone(&config), options.log)];
    files.extend(setup.files);
    for Endpoint { name, address, handler } in setup.endpoints {
        tasks.extend(serve(name, address, handler).await?);
    }
    let mut ending = None;
    if let Some(Cluster { ungated, connections, .. }) = &cluster {
        tasks.extend((!loops.is_empty()).then(|| definitions::task(ungated, &factory, &readiness)));
        if config.server.webhook.enabled {
            let (ungated, readiness) = (ungated.clone(), readiness.clone());
            let webhooks = webhook::set_up(&config, connections, &mut factory, ungated, readiness).await?;
            tasks.extend(webhooks.tasks);
            files.extend(webhooks.files);
            loops.extend(webhooks.rotator);
            ending = Some(webhooks.ending);
        }
        tasks.extend(watches(factory, &connections.client, &readiness));
    }
    if let Some(Cluster { ungated, .. }) = &cluster {
        let events = Recorder::new(ungated.clone(), "crownlabs", &identity);
        tasks.extend(loops.iter().map(|it| track(it, &readiness, &events, &config)));
    }
    let replicas = Replicas::start(replicas, &readiness);
    readiness.complete();
    let queues = loops.iter().map(|control_loop| Arc::clone(control_loop.queue())).collect();
    // Set once: the loops are fixed from here on.
    let _ = exposed.set(Exposed { queues, expositions: setup.expositions, gauges: setup.gauges });
    tasks.push(Task::new("files", files::watch(files)));
    let elected = cluster.filter(|_| takes_part);
    let election = elected.map(|Cluster { ungated, .. }| {
        Election::new(ungated, config.leader_election.clone(), identity, gate.clone())
    });
    Ok(Started { election, gate, loops, replicas, tasks, webhooks: ending })
}

/// The watches that fill the stores, and the task that reports those that are broken.
fn watches(factory: StoreFactory, client: &Client, readiness: &Readiness) -> Vec<Task> {
    let (mut tasks, mut watches) = (Vec::new(), Vec::new());
    for (kind, health, watch) in factory.watches(client) {
        tasks.push(Task::new(kind, watch));
        watches.push((kind, health));
    }
    tasks.push(Task::new("watch health", watch_health::report(watches, readiness.clone())));
    tasks
}

/// The loops that are enabled, and what they ask of the process.
pub(super) fn build_loops<'a>(
    config: &'a Config,
    gate: &Gate,
    cluster: Option<&Cluster>,
    factory: &mut StoreFactory,
) -> anyhow::Result<(Vec<ControlLoop>, Vec<Replica>, Setup<'a>)> {
    let mut setup = Setup::new(config, gate.clone());
    setup.ungated = cluster.map(|cluster| cluster.ungated.clone());
    setup.accounts = accounts(config, gate)?;
    setup.mailer = mailer(config, gate)?;
    setup.prometheus = prometheus(config)?;
    setup.users = cluster.map(|cluster| cluster.users.clone());
    let (mut loops, mut replicas) = (Vec::new(), Vec::new());
    for entry in LOOPS {
        let Toggle { enabled, concurrency } = (entry.toggle)(&config.controllers);
        if enabled {
            info!(controller = entry.name, runs_in = ?entry.runs_in, concurrency, "{}", entry.description.trim());
            match (entry.build)(&mut setup, factory)? {
                Built::Leader(built) => {
                    let built = cluster.map(|it| built.into_control_loop(&it.connections, concurrency));
                    loops.extend(built);
                }
                Built::Replica(replica) => replicas.push(replica),
            }
        }
    }
    Ok((loops, replicas, setup))
}

/// The task that says how a loop of the leader fares.
fn track(of: &ControlLoop, readiness: &Readiness, events: &Recorder, config: &Config) -> Task {
    Task::new("readiness", of.track(readiness.clone(), events.clone(), subject(config)))
}

/// Waits for the lease, runs the loops, and ends them when asked to.
async fn lead(started: Started, asked: impl Future<Output = ()>) -> anyhow::Result<()> {
    let Started { election, gate, loops, mut replicas, tasks, webhooks } = started;
    let elected = election.as_ref();
    let mut asked = pin!(asked);
    let mut ended = pin!(first_ended(tasks));
    let stopping = Arc::new(AtomicBool::new(false));
    let mut work = Box::pin(work(elected, gate, &loops, Arc::clone(&stopping)));
    tokio::select! {
        biased;
        () = &mut asked => info!("asked to stop: no new work is begun"),
        result = &mut work => return result.context("leading ended"),
        name = &mut ended => anyhow::bail!("the task {name} ended, which it must not"),
        name = replicas.ended() => anyhow::bail!("the loop {name} ended, which it must not"),
    }
    // From here on a lost lease is no failure.
    stopping.store(true, Ordering::SeqCst);
    for controller in &loops {
        controller.stop();
    }
    let is_working = loops.iter().any(ControlLoop::is_working);
    let drained = async move {
        // The lease is renewed until the last reconcile has ended, so that none of its writes is refused.
        if is_working && tokio::time::timeout(DRAIN_LIMIT, &mut work).await.is_err() {
            warn!("some reconciles did not end in time; the next start finishes what they began");
        }
        drop(work);
        let released = async {
            if let Some(election) = elected {
                election.release().await;
            }
        };
        // Admission reviews are answered until here: our own writes need them, too.
        let reviewed = async {
            if let Some(webhooks) = webhooks {
                webhooks.finish().await;
            }
        };
        join!(released, reviewed);
    };
    let all = async { join!(drained, replicas.finish()) };
    if tokio::time::timeout(STOP_LIMIT, all).await.is_err() {
        warn!("not everything ended in time; it is finished at the next start");
    }
    info!("stopped");
    Ok(())
}

/// Waits for the lease, if there is an election, and runs the loops until they are stopped or the lease is lost.
async fn work(
    elected: Option<&Election>,
    gate: Gate,
    loops: &[ControlLoop],
    stopping: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    // The stores first: a leader that does not know the world yet would only keep others waiting. But a kind that
    // cannot be listed stops only the loops that need it.
    settled(loops).await;
    let mut working = pin!(run_all(loops));
    let Some(election) = elected else {
        working.await;
        return Ok(());
    };
    let lease = election.lead().await;
    let _watchdog = Watchdog::start(gate, stopping).context("the lease watchdog cannot start")?;
    let mut held = pin!(election.hold(lease));
    tokio::select! {
        lost = &mut held => Err(lost.into()),
        () = &mut working => Ok(()),
    }
}

/// Waits until the stores of all loops are filled; once those of one are, for the others no longer than
/// [`OTHER_STORES`].
async fn settled(loops: &[ControlLoop]) {
    let mut waits: FuturesUnordered<_> = loops.iter().map(ControlLoop::settled).collect();
    if waits.next().await.is_some() {
        // What is missing then is shown by the readiness of the loops.
        drop(tokio::time::timeout(OTHER_STORES, waits.collect::<()>()).await);
    }
}

/// Runs the loops until they are stopped. Without any, what there is else goes on by itself.
async fn run_all(loops: &[ControlLoop]) {
    if loops.is_empty() {
        return std::future::pending().await;
    }
    join_all(loops.iter().map(ControlLoop::run)).await;
}

/// What events about the daemon itself are about: its lease.
fn subject(config: &Config) -> ObjectReference {
    ObjectReference {
        api_version: Some("coordination.k8s.io/v1".to_owned()),
        kind: Some("Lease".to_owned()),
        name: Some(config.leader_election.name.clone()),
        namespace: Some(config.leader_election.namespace.clone()),
        ..ObjectReference::default()
    }
}
