//! The shared parts of the bench: a control plane, the daemon as a child process, and the audit log.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::fixtures::{CONFIG, FIXTURES};
use anyhow::{Context, Result};
use cluster::audit::{AuditEntry, Mark, by_agent};
use cluster::prometheus::Samples;
use cluster::{Cluster, Options};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

/// The Templates of the fixtures. Instance number `n` is made from number `n % 3`.
pub const TEMPLATES: [&str; 3] = ["container", "vm", "vm-persistent"];
/// The namespace of the Instances.
pub const NAMESPACE: &str = "tenant-bench";
/// How many requests the bench sends at the same time; the daemon reconciles as many Instances at the same time.
pub const CONCURRENCY: usize = 16;
/// The beginning of the daemon's user agent.
pub const AGENT: &str = "crownlabs/";
/// The cluster is at rest when there was no write for this long.
const QUIET: Duration = Duration::from_secs(3);
/// A daemon that uses less processor time than this, in seconds, during [`QUIET`] is idle.
const IDLE_PROCESSOR_SECONDS: f64 = 0.03;
/// Progress is printed each time this many more objects are done.
const PROGRESS: usize = 1000;

/// A measured value.
pub struct Figure {
    /// The name of the measurement, for example `600 cold: peak memory`.
    pub work: String,
    pub value: f64,
    /// The unit, for example `s` or `MiB`; empty for a number without a unit.
    pub unit: &'static str,
    /// The upper limit of the value.
    pub limit: Option<f64>,
}

/// The measured values, in the order of measurement.
#[derive(Default)]
pub struct Figures(pub Vec<Figure>);

impl Figures {
    pub fn add(&mut self, work: impl Into<String>, value: f64, unit: &'static str, limit: Option<f64>) {
        self.0.push(Figure { work: work.into(), value, unit, limit });
    }
}

/// A control plane with the project's CRDs and the fixtures. It ends when it is dropped.
pub struct Bench {
    pub cluster: Cluster,
    pub client: Client,
    /// A client with the daemon's `ServiceAccount`, for the loader that measures the floor.
    pub daemon_client: Client,
    /// The kubeconfig of the daemon.
    pub kubeconfig: PathBuf,
    /// The folder of the control plane, with its logs.
    pub dir: PathBuf,
}

impl Bench {
    /// Starts a control plane without simulated nodes and virtual machines, with the [`FIXTURES`].
    pub async fn start() -> Result<Self> {
        let options = Options { simulate: false, load_balancer: false, ..Options::default() };
        Self::start_with(options, FIXTURES).await
    }

    /// Starts a control plane with these options, the project's CRDs and roles, and these objects.
    pub async fn start_with(options: Options, fixtures: &str) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut crds: Vec<PathBuf> = fs::read_dir(root.join("manifests/crds"))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        crds.sort();
        let cluster = Cluster::start(Options { crds, spare: false, ..options })?;
        let (namespace, rbac) =
            (root.join("manifests/00-namespace.yaml"), root.join("manifests/10-rbac.yaml"));
        cluster.apply_files(&[&namespace, &rbac])?;
        cluster.apply(fixtures)?;
        let client = cluster.client().await?;
        let daemon_client = cluster.service_account_client("crownlabs-system", "crownlabs").await?;
        let kubeconfig = cluster.service_account_kubeconfig("crownlabs-system", "crownlabs")?;
        let dir = cluster.dir().to_path_buf();
        Ok(Self { cluster, client, daemon_client, kubeconfig, dir })
    }

    /// Sends a request as the administrator. A `PATCH` is a merge patch.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        Self::send_as(&self.client, method, path, body).await
    }

    /// Sends a request with that client.
    pub async fn send_as(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(body.to_string().into_bytes())?;
        client.request(request).await.with_context(|| format!("{method} {path}"))
    }

    /// Waits until there was no write, except to leases and events, for [`QUIET`]. Fails after half an hour.
    pub fn settle(&self) -> Result<()> {
        self.settle_for(QUIET)
    }

    /// Waits until there was no write, except to leases and events, for that time. Fails after half an hour.
    pub fn settle_for(&self, quiet: Duration) -> Result<()> {
        let (audit, begin) = (self.cluster.audit(), Instant::now());
        let (mut position, mut quiet_since) = (audit.mark()?, begin);
        while quiet_since.elapsed() < quiet {
            anyhow::ensure!(
                begin.elapsed() < Duration::from_mins(30),
                "the cluster is busy after 30 minutes"
            );
            std::thread::sleep(Duration::from_millis(100));
            let (entries, next) = audit.read(position)?;
            position = next;
            let is_change = |entry: &AuditEntry| !["leases", "events"].contains(&&*entry.resource);
            if entries.iter().any(|entry| entry.is_write() && is_change(entry)) {
                quiet_since = Instant::now();
            }
        }
        Ok(())
    }

    /// Creates `count` Instances with the numbers from `from` on, a third of them from each Template.
    pub async fn instances(&self, from: usize, count: usize) -> Result<()> {
        let path = instances_path();
        let creations = (from..from + count).map(|n| {
            let body = instance(&format!("bench-{n:05}"), TEMPLATES[n % TEMPLATES.len()]);
            let path = path.clone();
            async move { self.send("POST", &path, &body).await.map(drop) }
        });
        let mut created = stream::iter(creations).buffer_unordered(CONCURRENCY);
        let mut done = 0;
        while let Some(result) = created.next().await {
            result?;
            done += 1;
            report_progress("Instances created", done, count);
        }
        Ok(())
    }

    /// Starts the daemon with [`CONFIG`].
    pub fn daemon(&self) -> Result<Daemon> {
        self.daemon_with(CONFIG)
    }

    /// Starts the daemon with this configuration.
    pub fn daemon_with(&self, text: &str) -> Result<Daemon> {
        self.binary_with(Path::new(env!("CARGO_BIN_EXE_crownlabs")), text)
    }

    /// Starts another build of the daemon with [`CONFIG`].
    pub fn binary(&self, binary: &Path) -> Result<Daemon> {
        self.binary_with(binary, CONFIG)
    }

    /// Starts another build of the daemon with this configuration.
    pub fn binary_with(&self, binary: &Path, text: &str) -> Result<Daemon> {
        self.command_with(Command::new(binary), text)
    }

    /// Starts the daemon by a command that ends with its binary, with this configuration.
    pub fn command_with(&self, mut command: Command, text: &str) -> Result<Daemon> {
        let config = self.dir.join("crownlabs.yaml");
        fs::write(&config, text)?;
        let child = command
            .args(["run", "--config"])
            .arg(&config)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .stderr(fs::File::create(self.dir.join("daemon.log"))?)
            .spawn()
            .context("the daemon")?;
        Ok(Daemon { child })
    }

    /// Waits until the daemon, which was started at `mark`, is the leader and the cluster is at rest. If a daemon was
    /// killed before, its lease must expire first. Fails when there is no leader after a minute.
    pub fn await_leader(&self, mark: Mark) -> Result<()> {
        let (audit, begin, mut position) = (self.cluster.audit(), Instant::now(), mark);
        loop {
            let (entries, next) = audit.read(position)?;
            position = next;
            if by_agent(&entries, AGENT).any(|entry| entry.resource == "leases" && entry.verb == "update") {
                return self.settle();
            }
            anyhow::ensure!(begin.elapsed() < Duration::from_mins(1), "the daemon is not the leader");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until `count` Instances have got a status since `mark`. Returns the audit log since then.
    pub fn await_statuses(&self, mark: Mark, count: usize) -> Result<Vec<AuditEntry>> {
        self.await_written(mark, "instances", count)
    }

    /// Waits until `count` objects of that resource have got a status since `mark`. Returns the audit log since then.
    /// Fails when none has got one for five minutes.
    pub fn await_written(&self, mark: Mark, resource: &str, count: usize) -> Result<Vec<AuditEntry>> {
        let audit = self.cluster.audit();
        let (mut entries, mut position) = (Vec::new(), mark);
        let (mut done, mut last_news) = (BTreeSet::new(), Instant::now());
        loop {
            let (more, next) = audit.read(position)?;
            position = next;
            for entry in &more {
                let is_status = entry.resource == resource && entry.subresource == "status";
                if is_status && done.insert(entry.name.clone()) {
                    last_news = Instant::now();
                    report_progress("statuses written", done.len(), count);
                }
            }
            entries.extend(more);
            if done.len() >= count {
                return Ok(entries);
            }
            anyhow::ensure!(
                last_news.elapsed() < Duration::from_mins(5),
                "{} of {count} statuses, and none for 5 minutes",
                done.len()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Prints how far a large piece of work is.
fn report_progress(what: &str, done: usize, count: usize) {
    if done.is_multiple_of(PROGRESS) {
        eprintln!("  {done} of {count} {what}");
    }
}

/// The daemon as a child process. It is killed when it is dropped.
pub struct Daemon {
    pub child: Child,
}

impl Daemon {
    /// The process figures of the daemon.
    pub fn usage(&self) -> Usage {
        Usage { pid: self.child.id() }
    }

    /// Processor time so far, in seconds.
    pub fn processor_seconds(&self) -> Result<f64> {
        self.usage().processor_seconds()
    }

    /// Waits until the daemon uses next to no processor time. Fails after five minutes.
    pub fn await_idle(&self) -> Result<()> {
        let (begin, mut before) = (Instant::now(), self.processor_seconds()?);
        loop {
            std::thread::sleep(QUIET);
            let now = self.processor_seconds()?;
            if now - before < IDLE_PROCESSOR_SECONDS {
                return Ok(());
            }
            before = now;
            anyhow::ensure!(
                begin.elapsed() < Duration::from_mins(5),
                "the daemon is not idle after 5 minutes"
            );
        }
    }

    /// Peak memory (RSS) so far, in MiB.
    pub fn peak_mebibytes(&self) -> Result<f64> {
        self.usage().mebibytes("VmHWM")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what a process uses from `/proc` (see `proc(5)`).
#[derive(Clone, Copy)]
pub struct Usage {
    pub pid: u32,
}

impl Usage {
    /// The process figures of the API server.
    pub fn of_api_server(cluster: &Cluster) -> Result<Self> {
        // The API server starts after etcd.
        Ok(Self { pid: *cluster.process_ids().get(1).context("the API server")? })
    }

    fn read(self, file: &str) -> Result<String> {
        Ok(fs::read_to_string(format!("/proc/{}/{file}", self.pid))?)
    }

    /// User and system time so far, in seconds, which the kernel counts in ticks of 10 ms.
    pub fn processor_seconds(self) -> Result<f64> {
        let stat = self.read("stat")?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        Ok((ticks(11) + ticks(12)) / 100.0)
    }

    /// A size in its `status`, in MiB: `VmRSS` is the memory now, `VmHWM` the peak so far.
    pub fn mebibytes(self, name: &str) -> Result<f64> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kibibytes: f64 =
            line.and_then(|line| line.split_whitespace().next()).context(name.to_owned())?.parse()?;
        Ok(kibibytes / 1024.0)
    }
}

/// Whether the request succeeded and is neither a watch nor about the lease.
pub fn is_work(entry: &AuditEntry) -> bool {
    entry.verb != "watch" && entry.resource != "leases" && entry.code < 400
}

/// The number of the daemon's requests, without watches and the lease.
pub fn requests(entries: &[AuditEntry]) -> f64 {
    count(by_agent(entries, AGENT).filter(|entry| is_work(entry)).count())
}

/// The number of the daemon's writes, without the lease.
pub fn writes(entries: &[AuditEntry]) -> f64 {
    count(by_agent(entries, AGENT).filter(|entry| is_work(entry) && entry.is_write()).count())
}

pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The time from `begin` to the first write among the entries that is not about the lease, in seconds.
pub fn lead(begin: Timestamp, entries: &[AuditEntry]) -> f64 {
    let first = entries.iter().filter(|entry| entry.is_write() && entry.resource != "leases");
    let first = first.map(|entry| entry.stage_timestamp).min().unwrap_or(begin);
    (first - begin).total(jiff::Unit::Second).unwrap_or(f64::NAN)
}

/// The time from `begin` to the last write among the entries that is not about the lease, in seconds.
pub fn wall(begin: Timestamp, entries: &[AuditEntry]) -> f64 {
    let last = entries.iter().filter(|entry| entry.is_write() && entry.resource != "leases");
    let last = last.map(|entry| entry.stage_timestamp).max().unwrap_or(begin);
    (last - begin).total(jiff::Unit::Second).unwrap_or(f64::NAN)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures by the wall clock, like the audit log")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The path of the Instances.
pub fn instances_path() -> String {
    format!("/apis/crownlabs.polito.it/v1alpha2/namespaces/{NAMESPACE}/instances")
}

/// An Instance of a Template from the fixtures.
pub fn instance(name: &str, template: &str) -> Value {
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2",
        "kind": "Instance",
        "metadata": {"name": name},
        "spec": {
            "template.crownlabs.polito.it/TemplateRef": {"name": template, "namespace": "workspace-bench"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
        },
    })
}

/// Samples of Prometheus at these times, beginning with `first`: all sources of usage data answer, and the Instances
/// with these namespaces and names are used in each step.
pub fn uses(
    times: &(impl Iterator<Item = i64> + Clone),
    first: i64,
    instances: impl Iterator<Item = (String, String)>,
) -> Samples {
    let mut samples = Samples::default();
    for up in [
        r#"up{service="ingress-nginx-external-controller-metrics"}"#,
        r#"up{container="bastion-operator-tracker-sidecar"}"#,
        r#"up{container="webssh"}"#,
    ] {
        samples.series(up, times.clone().map(|time| (time, 1)));
    }
    for (namespace, name) in instances {
        let series = format!(
            r#"nginx_ingress_controller_requests{{exported_namespace="{namespace}",exported_service="{name}"}}"#
        );
        samples.series(&series, times.clone().map(|time| (time, time - first)));
    }
    samples
}
