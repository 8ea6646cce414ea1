//! `make load`: one daemon with every loop on, while the number of Instances grows, and idle in between.
//!
//! `LOAD_STEPS` lists the numbers of Instances, `LOAD_TENANTS` is the number of Tenants. `LOAD_IDLE` is the idle time
//! after each step in seconds, `LOAD_LAST_IDLE` the idle time after the last one. `LOAD_SAMPLE` is the number of
//! seconds between two samples of memory and processor time. `LOAD_BINARY` is another build of the daemon,
//! `LOAD_RESULTS` another folder than target/bench. With `LOAD_KWOK=1`, kwok and the stand-in run pods and virtual
//! machines.

// The exam server of the tests.
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../tests/integration/exam_server.rs"]
mod exam_server;
mod node;
mod recorder;
mod requests;
mod servers;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::harness::{self, Bench, Daemon, Figures};
use crate::instances::lists_in;
use crate::number_from;
use cluster::Options;
use cluster::assets::kubernetes_version;
use recorder::Recorder;
use requests::Requests;
use servers::Servers;
use world::World;

/// The most Instances of a step that are created one at a time, and the pause after each.
const ALONE: usize = 30;
const PAUSE: Duration = Duration::from_millis(150);
/// The number of Instances, with their Jobs, that fit on one simulated node.
const INSTANCES_OF_NODE: usize = 1_500;
/// The numbers of Instances and Tenants with a memory limit, and the limit in MiB. The first one is in the plots.
const LIMITS: [(usize, usize, f64); 2] = [(1_000, 500, 80.0), (10_000, 500, 110.0)];
/// How long there are no writes at all after the last step of a run that creates its Instances in less than an hour.
const FIRST_STAMPS: Duration = Duration::from_mins(10);
/// The limit of the size of the binary, in MB.
const BINARY: f64 = 32.0;

/// The settings of a run.
struct Settings {
    steps: Vec<usize>,
    world: World,
    idle: Duration,
    last_idle: Duration,
    sample: Duration,
    binary: PathBuf,
    /// Whether the daemon is built with debug assertions.
    is_debug: bool,
}

impl Settings {
    fn from_environment() -> Result<Self> {
        let steps = std::env::var("LOAD_STEPS").unwrap_or_else(|_| "100 1000 5000".to_owned());
        let steps: Result<Vec<usize>, _> = steps.split_whitespace().map(str::parse).collect();
        let steps = steps.context("LOAD_STEPS: numbers of Instances, such as \"100 1000 5000\"")?;
        anyhow::ensure!(
            !steps.is_empty() && steps[0] > 0 && steps.is_sorted_by(|a, b| a < b),
            "LOAD_STEPS: each number has to be larger than the one before"
        );
        let seconds = |variable, default| Duration::from_secs(number_from(variable).unwrap_or(default));
        let idle = seconds("LOAD_IDLE", 600);
        let tenants = usize::try_from(number_from("LOAD_TENANTS").unwrap_or(500))?;
        anyhow::ensure!(tenants > 0, "LOAD_TENANTS: at least one");
        let other = std::env::var_os("LOAD_BINARY").map(PathBuf::from);
        Ok(Self {
            steps,
            world: World { tenants, is_simulated: number_from("LOAD_KWOK") == Some(1) },
            idle,
            last_idle: seconds("LOAD_LAST_IDLE", number_from("LOAD_IDLE").unwrap_or(3_600)),
            sample: seconds("LOAD_SAMPLE", 5),
            is_debug: cfg!(debug_assertions) && other.is_none(),
            binary: other.unwrap_or_else(|| env!("CARGO_BIN_EXE_crownlabs").into()),
        })
    }

    /// The largest number of Instances.
    fn last(&self) -> usize {
        self.steps.last().copied().unwrap_or_default()
    }

    fn cluster_options(&self) -> Options {
        let nodes = self.last().div_ceil(INSTANCES_OF_NODE) + 1;
        Options { simulate: self.world.is_simulated, storage: true, nodes, ..Options::default() }
    }

    /// The file of the results.
    fn file(&self) -> PathBuf {
        let name = if self.world.is_simulated { "load-kwok.json" } else { "load.json" };
        let folder = std::env::var_os("LOAD_RESULTS").map(PathBuf::from);
        folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench")).join(name)
    }
}

/// A run: its servers and objects, and the results so far.
struct Run {
    settings: Settings,
    bench: Bench,
    servers: Servers,
    daemon: Daemon,
    recorder: Recorder,
    start: Value,
    steps: Vec<Value>,
}

/// Measures all steps. The results are written after each of them.
pub async fn load(figures: &mut Figures) -> Result<()> {
    let settings = Settings::from_environment()?;
    let bench = Bench::start_with(settings.cluster_options(), FIXTURES).await?;
    let roles = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/11-cluster-roles.yaml");
    bench.cluster.apply_files(&[&roles])?;
    bench.cluster.apply(&node::objects())?;
    let servers = Servers::start(&bench.dir, &settings.world, settings.last()).await?;
    let mut requests = Requests::from_now(&bench)?;
    let daemon = bench.binary_with(&settings.binary, &servers.config)?;
    let recorder = Recorder::start(daemon.usage(), settings.sample);
    let mut run = Run { settings, bench, servers, daemon, recorder, start: Value::Null, steps: Vec::new() };
    figures.add("the binary", megabytes(&run.settings.binary)?, "MB", Some(BINARY));
    run.set_up(&mut requests).await?;
    let mut present = 0;
    for step in run.settings.steps.clone() {
        run.step(present..step, figures).await?;
        present = step;
        run.write()?;
    }
    Ok(())
}

impl Run {
    /// Creates courses and Tenants, and waits until the daemon has finished their objects.
    async fn set_up(&mut self, requests: &mut Requests) -> Result<()> {
        let (bench, world) = (&self.bench, &self.settings.world);
        self.recorder.begin("start");
        bench.await_leader(bench.cluster.audit().mark()?)?;
        self.servers.register_webhooks(bench).await?;
        self.recorder.begin(format!("{} Tenants", world.tenants));
        let key = fs::read_to_string(bench.dir.join("web-ssh-key.pub"))?;
        world.create_courses(bench).await?;
        world.create_tenants(bench, key.trim()).await?;
        world.await_volumes(bench).await?;
        requests.settle()?;
        self.daemon.await_idle()?;
        requests.follow()?;
        self.start = json!({
            "tenants": world.tenants,
            "courses": world.courses(),
            "requests": requests.sent,
            "refused": requests.refused,
            "processor_seconds": rounded(self.daemon.processor_seconds()?),
            "memory_mib": self.memory("VmRSS")?,
            "peak_mib": self.memory("VmHWM")?,
        });
        Ok(())
    }

    /// Creates the Instances with these numbers, most of them at once and some one at a time, and measures an idle
    /// time.
    async fn step(&mut self, numbers: std::ops::Range<usize>, figures: &mut Figures) -> Result<()> {
        let count = numbers.end;
        let alone = ALONE.min(numbers.len() / 2);
        let at_once = numbers.start..numbers.end - alone;
        self.servers.check()?;
        self.recorder.begin(format!("{count} Instances"));
        let mut together = self.create_at_once(at_once.clone()).await?;
        let single = self.create_alone(at_once.end..numbers.end).await?;
        let is_last = count == self.settings.last();
        let time = if is_last { self.settings.last_idle } else { self.settings.idle };
        let idle = self.idle(count, time)?;
        let peak = self.memory("VmHWM")?;
        let name = |what: &str| format!("{count} Instances, {} Tenants: {what}", self.settings.world.tenants);
        let size = (count, self.settings.world.tenants);
        let limit = LIMITS.iter().find(|(instances, tenants, _)| (*instances, *tenants) == size);
        figures.add(name("peak memory"), peak, "MiB", limit.map(|(.., limit)| *limit));
        // In a longer time, containers in use get their first time stamps, an hour after their creation.
        let nothing = (time <= FIRST_STAMPS).then_some(0.0);
        // The Instances of each Tenant may wait for their machines, or for a node.
        let lists = lists_in(time) * harness::count(self.settings.world.tenants);
        for (what, key, limit) in [
            ("idle: requests other than watches and the lease", "requests", nothing),
            ("idle: writes", "writes", nothing),
            ("idle: lists of events", "event_lists", Some(lists)),
            ("idle: processor time", "processor_seconds", None),
        ] {
            let unit = if key == "processor_seconds" { "s" } else { "" };
            figures.add(name(what), idle[key].as_f64().context("a number")?, unit, limit);
        }
        together["instances"] = json!(count);
        together["alone"] = single;
        together["idle"] = idle;
        together["peak_mib"] = json!(peak);
        self.steps.push(together);
        Ok(())
    }

    /// Creates Instances, many at the same time, and waits until the cluster is at rest.
    async fn create_at_once(&self, numbers: std::ops::Range<usize>) -> Result<Value> {
        let count = numbers.len();
        let before = self.daemon.processor_seconds()?;
        let mut requests = Requests::from_now(&self.bench)?;
        let created = || self.recorder.accepted();
        self.settings.world.create_instances(&self.bench, numbers, &self.servers.exam_url(), created).await?;
        requests.await_statuses(count)?;
        requests.settle()?;
        self.daemon.await_idle()?;
        requests.follow()?;
        let (accepted, reconciled) = requests.seconds();
        Ok(json!({
            "created": count,
            "accepted_seconds": rounded(accepted),
            "reconciled_seconds": rounded(reconciled),
            "requests": requests.sent,
            "refused": requests.refused,
            "requests_per_instance": rounded(as_float(requests.total()) / crate::harness::count(count)),
            "processor_seconds": rounded(self.daemon.processor_seconds()? - before),
            "memory_mib": self.memory("VmRSS")?,
            "latency": latency(&requests.latencies),
        }))
    }

    /// Creates Instances one at a time, while the daemon has nothing else to do.
    async fn create_alone(&self, numbers: std::ops::Range<usize>) -> Result<Value> {
        let mut requests = Requests::from_now(&self.bench)?;
        let count = numbers.len();
        for n in numbers {
            self.settings.world.create_instance(&self.bench, n, &self.servers.exam_url()).await?;
            self.recorder.accepted();
            tokio::time::sleep(PAUSE).await;
        }
        requests.await_statuses(count)?;
        requests.settle()?;
        Ok(latency(&requests.latencies))
    }

    /// Measures the daemon for that time, while nothing changes.
    fn idle(&self, count: usize, time: Duration) -> Result<Value> {
        self.daemon.await_idle()?;
        self.recorder.begin(format!("{count} Instances, idle for {} s", time.as_secs()));
        let asked = self.servers.prometheus.requests()?;
        let before = self.daemon.processor_seconds()?;
        let mut requests = Requests::from_now(&self.bench)?;
        std::thread::sleep(time);
        requests.follow()?;
        self.servers.check()?;
        let event_lists = requests.sent.get("list events").copied().unwrap_or_default();
        Ok(json!({
            "seconds": time.as_secs(),
            "requests": requests.total_with_refused() - event_lists,
            "event_lists": event_lists,
            "writes": requests.writes,
            "named": requests.named,
            "by_kind": requests.sent,
            "watches": requests.watches,
            "lease": requests.renewals,
            "prometheus": self.servers.prometheus.requests()? - asked,
            "processor_seconds": rounded(self.daemon.processor_seconds()? - before),
            "memory_mib": self.memory("VmRSS")?,
            "anonymous_mib": self.memory("RssAnon")?,
        }))
    }

    fn memory(&self, name: &str) -> Result<f64> {
        Ok(rounded(self.daemon.usage().mebibytes(name)?))
    }

    /// Writes the results so far.
    fn write(&self) -> Result<()> {
        let (phases, samples) = self.recorder.as_json();
        let log = fs::read_to_string(self.bench.dir.join("daemon.log"))?;
        let lines = |level: &str| log.lines().filter(|line| line.contains(level)).count();
        let (instances, tenants, limit) = LIMITS[0];
        let results = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "is_debug": self.settings.is_debug,
            "binary_mb": rounded(megabytes(&self.settings.binary)?),
            "kubernetes": kubernetes_version(),
            "cores": std::thread::available_parallelism()?.get(),
            "is_simulated": self.settings.world.is_simulated,
            "warnings": lines(" WARN "),
            "errors": lines(" ERROR "),
            "limit_mib": {"instances": instances, "tenants": tenants, "mib": limit},
            "start": self.start,
            "steps": self.steps,
            "phases": phases,
            "samples": samples,
        });
        let file = self.settings.file();
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::write(&file, format!("{results}\n"))?;
        fs::copy(self.bench.dir.join("daemon.log"), file.with_extension("log"))?;
        eprintln!("written: {}", file.display());
        Ok(())
    }
}

/// The namespace of the personal volumes.
const FIXTURES: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: mydrive-pvcs}
";

/// The number, the median and 95 % of some times in milliseconds.
fn latency(times: &[f64]) -> Value {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().map(rounded);
    json!({"count": times.len(), "median_ms": at(50), "late_ms": at(95)})
}

fn as_float(number: u64) -> f64 {
    crate::harness::count(usize::try_from(number).unwrap_or(usize::MAX))
}

/// Rounds to three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The size of a file in MB.
fn megabytes(file: &Path) -> Result<f64> {
    Ok(as_float(fs::metadata(file)?.len()) / 1e6)
}
