//! Start-up and shut-down: which loops run, who leads, what is served.
//!
//! ```text
//! start ── stores fill (every replica) ── lease ── workers (the leader) ── SIGTERM ── drain ── release
//! ```
//!
//! The process ends when the lease is lost: a restart is the one way back that needs no proof that
//! nothing of the former leader is left.

pub mod control;
mod files;
pub mod lease;
pub mod logging;
pub mod process;
pub mod readiness;
pub mod telemetry;

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use futures::future::{BoxFuture, FutureExt, join_all};
use http::StatusCode;
use k8s_openapi::api::core::v1::ObjectReference;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::clients::keycloak::Keycloak;
use crate::config::Config;
use crate::controllers::accounts::Accounts;
use crate::controllers::{instance, public_exposure, shared_volume, snapshot, tenant, workspace};
use crate::runtime::apply::Engine;
use crate::runtime::client::{self, Writer};
use crate::runtime::controller::{Reconciler, Source};
use crate::runtime::desk::Desk;
use crate::runtime::events::Recorder;
use crate::runtime::factory::StoreFactory;
use crate::runtime::gate::Gate;
use crate::runtime::http_server::{self, Handler, Server, response, text};
use crate::runtime::queue::{Backoff, Queue};
use crate::runtime::registry::Registry;
use crate::webhook::setup::{self as webhook, Ending};
use control::ControlLoop;
pub use files::Watched;
use lease::{Election, Watchdog};
use logging::LogFilter;
use readiness::Readiness;

/// The exit code after the lease was lost.
pub const EXIT_LEASE_LOST: u8 = 3;
/// What is in work at a stop has this long to end; Kubernetes gives 30 s in all.
const DRAIN_LIMIT: Duration = Duration::from_secs(25);

/// What `run` is started with.
pub struct Options {
    /// The configuration.
    pub config: Config,
    /// The file that it came from, watched for a new log filter.
    pub config_file: PathBuf,
    /// A kubeconfig other than that of the environment.
    pub kubeconfig: Option<PathBuf>,
    /// The log filter, to be changed at run time.
    pub log_filter: LogFilter,
}

/// Runs until SIGTERM or SIGINT, or until something without which there is no point in going on
/// ends.
///
/// # Errors
/// When the daemon cannot start, or had to stop by itself.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let stop = stop_signal()?;
    let metrics = telemetry::install()?;
    let config = Arc::new(options.config);
    let readiness = Readiness::default();
    let queues: Arc<OnceLock<Vec<Arc<Queue>>>> = Arc::default();
    let mut tasks: Vec<Task> = servers(&config, &readiness, &metrics, Arc::clone(&queues)).await?;
    let kubeconfig = kubeconfig(options.kubeconfig.as_deref()).await?;
    let elected = config.leader_election.enabled;
    let gate = if elected { Gate::closed() } else { Gate::open() };
    let ungated = client::build(kubeconfig.clone(), Gate::open())?;
    let gated = client::build(kubeconfig.clone(), gate.clone())?;
    let writer = Writer::new(kubeconfig, gate.clone())?;
    connect(&ungated).await?;

    let setup = Setup { client: gated, writer, config: &config };
    let mut factory = StoreFactory::default();
    let mut running = Vec::new();
    if config.controllers.instance.enabled {
        running.push(instance::set_up(&setup, &mut factory));
    }
    if config.controllers.public_exposure.enabled {
        running.push(public_exposure::set_up(&setup, &mut factory)?);
    }
    if config.controllers.snapshot.enabled {
        running.push(snapshot::set_up(&setup, &mut factory));
    }
    if config.controllers.shared_volume.enabled {
        running.push(shared_volume::set_up(&setup, &mut factory));
    }
    let accounts = accounts(&config, &gate)?;
    if config.controllers.workspace.enabled {
        running.push(workspace::set_up(&setup, &mut factory, accounts.clone()));
    }
    if config.controllers.tenant.enabled {
        let keycloak = accounts.is_some();
        let mut tenants = tenant::set_up(&setup, &mut factory, accounts);
        if keycloak {
            let events = &config.server.keycloak_events;
            let (handler, secret) =
                tenant::account_events(tenants.control.queue(), &gate, &events.secret_file);
            tasks.extend(serve("keycloakEvents", events.listen.address(), handler).await?);
            tenants.files.extend(secret);
        }
        running.push(tenants);
    }
    let mut ending = None;
    let mut files = vec![Watched::config(options.config_file, Arc::clone(&config), options.log_filter)];
    if config.server.webhook.enabled {
        let webhooks = webhook::set_up(&setup, &mut factory, ungated.clone(), readiness.clone()).await?;
        tasks.extend(webhooks.tasks);
        files.extend(webhooks.files);
        running.extend(webhooks.rotator);
        ending = Some(webhooks.ending);
    }
    tasks.extend(factory.watches(&setup.client).map(|(kind, watch)| Task::new(kind, watch)));
    let events = Recorder::new(ungated.clone(), "crownlabs");
    let mut loops = Vec::new();
    for Running { control, files: watched } in running {
        tasks
            .push(Task::new("readiness", control.track(readiness.clone(), events.clone(), subject(&config))));
        files.extend(watched);
        loops.push(control);
    }
    readiness.complete();
    // Set once: the loops are fixed from here on.
    let _ = queues.set(loops.iter().map(|control| Arc::clone(control.queue())).collect());
    tasks.push(Task::new("files", files::watch(files)));
    let stop = Stop { asked: stop, webhooks: ending };
    lead(&config, ungated, gate, loops, tasks, stop).await
}

/// How the process is asked to stop, and what has an end of its own then.
struct Stop<F> {
    asked: F,
    webhooks: Option<Ending>,
}

/// Waits for the lease, runs the loops, and ends them when asked to.
async fn lead(
    config: &Config,
    client: kube::Client,
    gate: Gate,
    loops: Vec<ControlLoop>,
    tasks: Vec<Task>,
    stop: Stop<impl Future<Output = ()>>,
) -> anyhow::Result<()> {
    let identity = process::identity();
    let election = Election::new(client, config.leader_election.clone(), identity, gate.clone());
    let mut asked = pin!(stop.asked);
    let mut ended = pin!(first_ended(tasks));
    let work = async {
        // The stores first: a leader that does not know the world yet would only keep others waiting.
        join_all(loops.iter().map(ControlLoop::settled)).await;
        let mut working = pin!(run_all(&loops));
        if !config.leader_election.enabled {
            working.await;
            return anyhow::Ok(());
        }
        let lease = election.lead().await;
        let _watchdog = Watchdog::start(gate.clone()).context("the lease watchdog cannot start")?;
        let mut held = pin!(election.hold(lease));
        tokio::select! {
            lost = &mut held => Err(lost.into()),
            () = &mut working => Ok(()),
        }
    };
    let mut work = pin!(work);
    tokio::select! {
        result = &mut work => return result.context("leading ended"),
        name = &mut ended => anyhow::bail!("the task {name} ended, which it must not"),
        () = &mut asked => info!("asked to stop: no new work is begun"),
    }
    for controller in &loops {
        controller.stop();
    }
    // The lease is renewed until the last pass has ended, so that none of its writes is refused.
    if loops.iter().any(ControlLoop::is_working)
        && tokio::time::timeout(DRAIN_LIMIT, &mut work).await.is_err()
    {
        warn!("some passes did not end in time; what they left is finished at the next start");
    }
    if config.leader_election.enabled {
        election.release().await;
    }
    if let Some(webhooks) = stop.webhooks {
        webhooks.finish().await;
    }
    info!("stopped");
    Ok(())
}

/// Runs the loops until they are stopped. Without any, what there is else goes on by itself.
async fn run_all(loops: &[ControlLoop]) {
    if loops.is_empty() {
        return std::future::pending().await;
    }
    join_all(loops.iter().map(ControlLoop::run)).await;
}

/// What a loop is put together from.
pub struct Setup<'a> {
    /// The client whose writes pass only while the lease is held.
    pub client: kube::Client,
    /// What the apply engine writes through, gated in the same way.
    pub writer: Writer,
    /// The configuration.
    pub config: &'a Config,
}

impl Setup<'_> {
    /// What the room of a loop writes with, beside the stores of what it writes. `component` is the source
    /// that its events name.
    pub fn desk<R: Reconciler>(&self, stores: Registry, component: &'static str) -> Desk {
        let engine = Engine::new(self.writer.clone(), stores, R::NAME);
        let resync = &self.config.resync;
        Desk::new(
            engine,
            Recorder::new(self.client.clone(), component),
            (resync.min.into(), resync.max.into()),
        )
    }

    /// The loop of a room, which `source` wakes.
    pub fn control<R: Reconciler, S: Source>(
        &self,
        room: R,
        source: &Arc<S>,
        concurrency: usize,
    ) -> ControlLoop {
        let queue = Arc::new(Queue::new(R::NAME, Backoff::default()));
        source.subscribe(&queue);
        let (all, woken) = (Arc::clone(source), Arc::clone(&queue));
        ControlLoop::new(room, queue, concurrency, move || all.enqueue_all(&woken))
    }
}

/// A loop that has been put together.
pub struct Running {
    /// The loop.
    pub control: ControlLoop,
    /// The files that it reads.
    pub files: Vec<Watched>,
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

/// A task that must not end.
pub struct Task {
    name: &'static str,
    future: BoxFuture<'static, ()>,
}

impl Task {
    /// A task of that name.
    pub fn new(name: &'static str, future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { name, future: future.boxed() }
    }
}

/// Runs all tasks, and names the first one that ends.
async fn first_ended(tasks: Vec<Task>) -> &'static str {
    let mut running = JoinSet::new();
    let names: HashMap<_, _> =
        tasks.into_iter().map(|task| (running.spawn(task.future).id(), task.name)).collect();
    match running.join_next_with_id().await {
        Some(Ok((id, ()))) => names.get(&id).copied().unwrap_or_default(),
        Some(Err(panicked)) => names.get(&panicked.id()).copied().unwrap_or_default(),
        None => std::future::pending().await,
    }
}

async fn servers(
    config: &Config,
    readiness: &Readiness,
    metrics: &PrometheusHandle,
    queues: Arc<OnceLock<Vec<Arc<Queue>>>>,
) -> anyhow::Result<Vec<Task>> {
    let (readiness, metrics, upkeep) = (readiness.clone(), metrics.clone(), metrics.clone());
    let health = http_server::read_only(move |path| match path {
        "/healthz" | "/livez" => Some(text(StatusCode::OK, "ok\n")),
        "/readyz" | "/ready" => {
            let (ready, report) = readiness.report();
            let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            Some(text(status, report))
        }
        _ => None,
    });
    let exposition = http_server::read_only(move |path| {
        (path == "/metrics").then(|| {
            process::record();
            queues.get().into_iter().flatten().for_each(|queue| queue.measure());
            response(StatusCode::OK, telemetry::CONTENT_TYPE, metrics.render())
        })
    });
    let mut tasks = Vec::new();
    let wanted: [(&'static str, Option<SocketAddr>, Handler); 2] = [
        ("health", config.server.health.address(), health),
        ("metrics", config.server.metrics.address(), exposition),
    ];
    for (name, address, pages) in wanted {
        tasks.extend(serve(name, address, pages).await?);
    }
    tasks.push(Task::new("metrics upkeep", telemetry::upkeep(upkeep)));
    Ok(tasks)
}

/// A server, unless it is off.
async fn serve(
    name: &'static str,
    address: Option<SocketAddr>,
    handler: Handler,
) -> anyhow::Result<Option<Task>> {
    let Some(address) = address else { return Ok(None) };
    let listener = http_server::bind(&format!("server.{name}"), address).await?;
    info!(%address, "serving {name}");
    Ok(Some(Task::new(name, Server::new(handler).serve(listener, std::future::pending()))))
}

/// Ends at the first SIGTERM or SIGINT.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate()).context("SIGTERM cannot be caught")?;
    let mut int = signal(SignalKind::interrupt()).context("SIGINT cannot be caught")?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// `--kubeconfig`, else `KUBECONFIG`, else that of the pod.
async fn kubeconfig(file: Option<&std::path::Path>) -> anyhow::Result<kube::Config> {
    let Some(file) = file else {
        return kube::Config::infer()
            .await
            .context("no cluster to talk to: give --kubeconfig FILE, set KUBECONFIG, or run in a pod");
    };
    let read = kube::config::Kubeconfig::read_from(file)
        .with_context(|| format!("--kubeconfig {} cannot be read", file.display()))?;
    kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
        .await
        .with_context(|| format!("--kubeconfig {} cannot be used", file.display()))
}

/// The way to accounts and roles, where Keycloak is configured. Nothing is sent yet.
fn accounts(config: &Config, gate: &Gate) -> anyhow::Result<Option<Accounts>> {
    let keycloak = &config.integrations.keycloak;
    if !keycloak.enabled {
        return Ok(None);
    }
    let keycloak = Keycloak::new(keycloak.into(), gate.clone()).context("Keycloak cannot be used")?;
    Ok(Some(Accounts::new(keycloak)))
}

/// Waits for the API server to answer.
async fn connect(client: &kube::Client) -> anyhow::Result<()> {
    let mut wait = Duration::from_millis(500);
    loop {
        match client.apiserver_version().await {
            Ok(version) => {
                info!(version = version.git_version, "connected to the API server");
                return Ok(());
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
                anyhow::bail!("the API server refuses this account: {}", status.message)
            }
            Err(error) => {
                let error = crate::runtime::error::with_sources(&error);
                warn!(error, "the API server does not answer; trying again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(Duration::from_secs(10));
            }
        }
    }
}
