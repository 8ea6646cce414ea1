//! Implements `crownlabs run`: starts everything, leads, and shuts down in order.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use futures::{StreamExt, join};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tracing::{info, warn};

use super::cluster::{Cluster, gate, is_needed, takes_part};
use super::configuration_file::configuration_file;
use super::lease::{Election, Guard, Leases, Watchdog};
use super::logging::LogFilter;
use super::servers::{Exposed, serve, servers};
use super::start_up::{accounts, mailer, prometheus, stop_signal};
use super::{definitions, former, mirroring, outages, process, telemetry};
use crate::config::{Config, Reader, Storage, StorageMode};
use crate::controllers::setup::{Endpoint, Integrations, Setup};
use crate::loops::{Built, enabled};
use crate::runtime::control_loop::ControlLoop;
use crate::runtime::events::Recorder;
use crate::runtime::gate::Gate;
use crate::runtime::object_events::EventLists;
use crate::runtime::readiness::Readiness;
use crate::runtime::replica::{Replica, Replicas};
use crate::runtime::store::StoreFactory;
use crate::runtime::task::{Task, first_ended};
use crate::runtime::{files, watch_health};
use crate::webhook::setup::{self as webhook, Ending};

/// The exit code after the lease was lost.
pub const EXIT_LEASE_LOST: u8 = 3;
/// How long a replica with at least one loop ready to work waits for the stores of other loops before it takes the
/// lease.
const OTHER_STORES: Duration = Duration::from_secs(10);
/// The time limit of a stop; Kubernetes kills the process after 30 s (`terminationGracePeriodSeconds`).
const STOP_LIMIT: Duration = Duration::from_secs(27);
/// The time limit for reconciles in progress during a stop. The rest is for the lease and for admission reviews.
const DRAIN_LIMIT: Duration = Duration::from_secs(18);

/// The options of `run`.
pub struct Options {
    /// The configuration.
    pub config: Config,
    /// The file with the configuration, watched for a new log filter.
    pub config_file: PathBuf,
    /// A kubeconfig that replaces the one of the environment.
    pub kubeconfig: Option<PathBuf>,
    /// The log, whose filter can change while the process runs.
    pub log: LogFilter,
}

/// Runs until SIGTERM or SIGINT, or until an essential task ends.
///
/// # Errors
/// When the daemon cannot start, or stops because of a failure.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let mut stop = pin!(stop_signal()?);
    let started = tokio::select! {
        biased;
        () = &mut stop => {
            // The API server may never answer. Nothing has been started yet that would need a clean stop.
            info!("stopped before the start was complete");
            return Ok(());
        }
        started = start(options) => started?,
    };
    lead(started, stop).await
}

/// The parts that run from the end of the start-up until the process stops.
struct Started {
    /// The election, if there is one.
    election: Option<Election>,
    /// Waits for other installations; `None` without an API server.
    guard: Option<Guard>,
    gate: Gate,
    /// The loops of the leader.
    loops: Vec<ControlLoop>,
    /// The loops of every replica.
    replicas: Replicas,
    tasks: Vec<Task>,
    webhooks: Option<Ending>,
}

/// Connects to the API server if necessary, and builds the parts that run.
async fn start(options: Options) -> anyhow::Result<Started> {
    let metrics = telemetry::install()?;
    process::record_start();
    process::raise_open_files();
    let config = Arc::new(options.config);
    let readiness = Readiness::default();
    let exposed: Arc<OnceLock<Exposed>> = Arc::default();
    // They respond while the API server does not.
    let servers = servers(&config, &readiness, &metrics, Arc::clone(&exposed)).await?;
    let mut tasks: Vec<Task> = servers.into_iter().map(Task::start).collect();
    let gate = gate(&config);
    let identity = process::identity();
    let cluster = if is_needed(&config) {
        Some(Cluster::connect(options.kubeconfig.clone(), &config, &gate, &identity, &readiness).await?)
    } else {
        info!("no enabled component needs the API server");
        None
    };
    let mut factory = StoreFactory::default();
    let (mut loops, replicas, mut setup) =
        build_loops(&config, &gate, &readiness, cluster.as_ref(), &mut factory)?;
    tasks.extend(outages::tasks(&mut setup, &config));
    let mut files = vec![configuration_file(options.config_file, Arc::clone(&config), options.log)];
    files.extend(setup.files);
    for Endpoint { name, address, handler } in setup.endpoints {
        tasks.extend(serve(name, address, handler).await?);
    }
    let mut ending = None;
    if let Some(Cluster { ungated, connections, .. }) = &cluster {
        tasks.extend((!loops.is_empty()).then(|| definitions::task(ungated, &factory, &readiness)));
        let Storage { mode, mirror_class } = &config.storage;
        let is_mirrored = *mode == StorageMode::Mirror && !loops.is_empty();
        tasks.extend(is_mirrored.then(|| mirroring::task(ungated, &factory, &readiness, mirror_class)));
        if config.server.webhook.enabled {
            let (ungated, readiness) = (ungated.clone(), readiness.clone());
            let settings = webhook::Settings::read(&mut Reader::new(&config));
            let webhooks = webhook::set_up(settings, connections, &mut factory, ungated, readiness).await?;
            tasks.extend(webhooks.tasks);
            files.extend(webhooks.files);
            loops.extend(webhooks.rotator);
            ending = Some(webhooks.ending);
        }
        tasks.extend(watches(factory, &connections.client, &readiness));
        let events = Recorder::new(ungated.clone(), "crownlabs", &identity);
        for it in &loops {
            let track = it.track(readiness.clone(), events.clone(), subject(&config));
            tasks.push(Task::new("readiness", track));
        }
    }
    let replicas = Replicas::start(replicas, &readiness);
    readiness.complete();
    let queues = loops.iter().map(|control_loop| Arc::clone(control_loop.queue())).collect();
    // Set once: the loops do not change from here on.
    let _ = exposed.set(Exposed { queues, expositions: setup.expositions, gauges: setup.gauges });
    tasks.push(Task::new("files", files::watch(files)));
    let Setup { censuses, notices, rivals, .. } = setup;
    let leases = cluster.as_ref().map(|it| Leases::new(it.ungated.clone(), &config.leader_election));
    let former = former::report(censuses, notices, config.selector.clone(), readiness.clone(), leases);
    tasks.push(Task::new("former configuration", former));
    let guard = cluster
        .as_ref()
        .map(|Cluster { ungated, .. }| Guard::new(ungated.clone(), &config, rivals, readiness.clone()));
    let elected = cluster.filter(|_| takes_part(&config));
    let election = elected.map(|it| Election::new(it.ungated, &config, identity, gate.clone(), readiness));
    Ok(Started { election, guard, gate, loops, replicas, tasks, webhooks: ending })
}

/// The watches that fill the stores, and the task that reports broken watches.
fn watches(factory: StoreFactory, client: &Client, readiness: &Readiness) -> Vec<Task> {
    let (mut tasks, mut watches) = (Vec::new(), Vec::new());
    for (kind, health, watch) in factory.watches(client) {
        tasks.push(Task::new(kind, watch));
        watches.push((kind, health));
    }
    tasks.push(Task::new("watch health", watch_health::report(watches, readiness.clone())));
    tasks
}

/// Builds the enabled loops, and returns their requirements on the process.
pub(super) fn build_loops<'a>(
    config: &'a Config,
    gate: &Gate,
    readiness: &Readiness,
    cluster: Option<&Cluster>,
    factory: &mut StoreFactory,
) -> anyhow::Result<(Vec<ControlLoop>, Vec<Replica>, Setup<'a>)> {
    let mut setup = Setup::new(config, gate.clone());
    setup.outages = readiness.outages.clone();
    let outages = &setup.outages;
    setup.ungated = cluster.map(|cluster| cluster.ungated.clone());
    let integrations = Integrations {
        accounts: accounts(config, gate)?.map(|it| it.reporting_to(outages)),
        mailer: mailer(config, gate)?.map(|it| it.reporting_to(outages)),
        prometheus: prometheus(config)?.map(|it| it.reporting_to(outages)),
    };
    setup.set_integrations(integrations);
    setup.users = cluster.map(|cluster| cluster.users.clone());
    setup.events = EventLists::new(cluster.map(|cluster| cluster.connections.writer.clone()));
    let (mut loops, mut replicas) = (Vec::new(), Vec::new());
    for entry in enabled(&config.controllers) {
        let concurrency = (entry.toggle)(&config.controllers).concurrency;
        info!(controller = entry.name, runs_in = ?entry.runs_in, concurrency, "{}", entry.description.trim());
        match (entry.build)(&mut setup, factory)? {
            Built::Leader(built) => {
                loops.extend(cluster.map(|it| built.into_control_loop(&it.connections, concurrency)));
            }
            Built::Replica(replica) => replicas.push(replica),
        }
    }
    Ok((loops, replicas, setup))
}

/// Waits for the lease, runs the loops, and stops them on request.
async fn lead(started: Started, asked: impl Future<Output = ()>) -> anyhow::Result<()> {
    let Started { election, guard, gate, loops, mut replicas, tasks, webhooks } = started;
    let elected = election.as_ref();
    let mut asked = pin!(asked);
    let mut ended = pin!(first_ended(tasks));
    let stopping = Arc::new(AtomicBool::new(false));
    let mut work = Box::pin(work((elected, guard.as_ref()), gate, &loops, Arc::clone(&stopping)));
    tokio::select! {
        biased;
        () = &mut asked => info!("stop requested: no new work is started"),
        result = &mut work => return result.context("leading ended"),
        name = &mut ended => anyhow::bail!("the task {name} ended unexpectedly"),
        name = replicas.ended() => anyhow::bail!("the loop {name} ended unexpectedly"),
    }
    // From here on, losing the lease is not a failure.
    stopping.store(true, Ordering::SeqCst);
    for controller in &loops {
        controller.stop();
    }
    let is_working = loops.iter().any(ControlLoop::is_working);
    let drained = async move {
        // The lease is renewed until the last reconcile has ended, so that none of its writes is rejected.
        if is_working && tokio::time::timeout(DRAIN_LIMIT, &mut work).await.is_err() {
            warn!("some reconciles did not end in time; they are repeated after the next start");
        }
        drop(work);
        let released = async {
            if let Some(election) = elected {
                election.release().await;
            }
        };
        // Admission reviews are answered until here, because the daemon's own writes also need them.
        let reviewed = async {
            if let Some(webhooks) = webhooks {
                webhooks.finish().await;
            }
        };
        join!(released, reviewed);
    };
    let all = async { join!(drained, replicas.finish()) };
    if tokio::time::timeout(STOP_LIMIT, all).await.is_err() {
        warn!("some tasks did not end in time; they are completed after the next start");
    }
    info!("stopped");
    Ok(())
}

/// Waits for the lease, if there is an election. Then runs the loops until they are stopped or the lease is lost.
async fn work(
    (elected, guard): (Option<&Election>, Option<&Guard>),
    gate: Gate,
    loops: &[ControlLoop],
    stopping: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    // Wait for the stores first: a leader with empty stores would only delay other replicas. However, a kind that
    // cannot be listed stops only the loops that need it.
    settled(loops).await;
    if let Some(guard) = guard {
        guard.clear().await;
    }
    let mut working = pin!(run_all(loops));
    let Some(election) = elected else {
        working.await;
        return Ok(());
    };
    let lease = election.lead().await;
    let own = lease.clone();
    let conflict = async {
        match guard {
            Some(guard) => guard.conflict(&own).await,
            None => std::future::pending().await,
        }
    };
    let _watchdog = Watchdog::start(gate, stopping).context("the lease watchdog cannot start")?;
    let mut held = pin!(election.hold(lease));
    tokio::select! {
        lost = &mut held => Err(lost.into()),
        conflict = conflict => Err(conflict.into()),
        () = &mut working => Ok(()),
    }
}

/// Waits until the stores of all loops are filled. After the stores of one loop are filled, it waits at most
/// [`OTHER_STORES`] for the others.
async fn settled(loops: &[ControlLoop]) {
    let mut waits: FuturesUnordered<_> = loops.iter().map(ControlLoop::settled).collect();
    if waits.next().await.is_some() {
        // The readiness of the loops then shows the missing stores.
        drop(tokio::time::timeout(OTHER_STORES, waits.collect::<()>()).await);
    }
}

/// Runs the loops until they are stopped. Without loops, it never returns, and the other parts continue to run.
async fn run_all(loops: &[ControlLoop]) {
    if loops.is_empty() {
        return std::future::pending().await;
    }
    join_all(loops.iter().map(ControlLoop::run)).await;
}

/// The object that events about the daemon itself refer to: its lease.
fn subject(config: &Config) -> ObjectReference {
    ObjectReference {
        api_version: Some("coordination.k8s.io/v1".to_owned()),
        kind: Some("Lease".to_owned()),
        name: Some(config.leader_election.name.clone()),
        namespace: Some(config.leader_election.namespace.clone()),
        ..ObjectReference::default()
    }
}
