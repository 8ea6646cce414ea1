//! `make bench`: the figures of the README, measured on a real control plane on this machine.
//!
//! Requests are counted from the API server's audit log, processor time and peak memory are read
//! from `/proc`. The floor is a loader that sends the needed writes, as the same `ServiceAccount`, and
//! does nothing else. Before each measurement everybody else's work (the controller manager's roll-outs
//! and endpoints) has come to rest. Nodes and machines are not played here: phases that change by
//! themselves would be counted as ours.

#[path = "../tests/cluster/mod.rs"]
mod cluster;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cluster::audit::{AuditEntry, Mark, by_agent};
use cluster::{Cluster, Options};
use crownlabs::config::Config;
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

/// How long nothing may happen; `BENCH_IDLE=3600` for the whole hour.
fn idle_time() -> Duration {
    let seconds = std::env::var("BENCH_IDLE").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(120))
}

const TEMPLATES: [&str; 3] = ["container", "vm", "vm-persistent"];
/// Requests under way at once, of the loader as of the daemon.
const CONCURRENCY: usize = 16;
const AGENT: &str = "crownlabs/";
/// The user agent of the loader.
const LOADER: &str = "crownlabs-tests";
/// After this time without a write by anybody the cluster is at rest.
const QUIET: Duration = Duration::from_secs(3);

/// A figure and what it must not exceed.
struct Figure {
    work: &'static str,
    value: f64,
    unit: &'static str,
    limit: Option<f64>,
}

fn main() -> Result<()> {
    // `cargo test --benches` asks for a list; there are no tests here.
    if std::env::args().any(|argument| argument == "--list" || argument == "--test") {
        return Ok(());
    }
    // `cargo bench --bench instances -- 600` measures that part alone.
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut figures = Vec::new();
    runtime.block_on(async {
        if wanted("600") {
            cold_600(&mut figures).await?;
        }
        if wanted("tenants") {
            cold_tenants(&mut figures).await?;
        }
        if wanted("2400") {
            cold_2400(&mut figures).await?;
        }
        anyhow::Ok(())
    })?;
    report(&figures)
}

struct Bench {
    cluster: Cluster,
    client: Client,
    /// The same `ServiceAccount` as the daemon, for the floor.
    daemon_client: Client,
    /// The daemon's.
    kubeconfig: PathBuf,
    dir: PathBuf,
}

impl Bench {
    async fn start() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut crds: Vec<PathBuf> = fs::read_dir(root.join("manifests/crds"))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        crds.sort();
        let cluster =
            Cluster::start(Options { crds, play: false, load_balancer: false, ..Options::default() })?;
        let (namespace, rbac) =
            (root.join("manifests/00-namespace.yaml"), root.join("manifests/10-rbac.yaml"));
        cluster.apply_files(&[&namespace, &rbac])?;
        cluster.apply_yaml(FURNITURE)?;
        let client = cluster.client().await?;
        let daemon_client = cluster.service_account_client("crownlabs-system", "crownlabs").await?;
        let kubeconfig = cluster.service_account_kubeconfig("crownlabs-system", "crownlabs")?;
        let dir = cluster.dir().to_path_buf();
        Ok(Self { cluster, client, daemon_client, kubeconfig, dir })
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        Self::send_as(&self.client, method, path, body).await
    }

    async fn send_as(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(body.to_string().into_bytes())?;
        client.request(request).await.with_context(|| format!("{method} {path}"))
    }

    /// Waits until nobody has written anything for [`QUIET`].
    fn settle(&self) -> Result<()> {
        let audit = self.cluster.audit();
        let begin = Instant::now();
        let (mut position, mut quiet_since) = (audit.mark()?, Instant::now());
        while quiet_since.elapsed() < QUIET {
            anyhow::ensure!(
                begin.elapsed() < Duration::from_mins(10),
                "the cluster is at rest within 10 minutes"
            );
            std::thread::sleep(Duration::from_millis(100));
            let (entries, next) = audit.read(position)?;
            position = next;
            if entries.iter().any(|entry| entry.is_write() && entry.resource != "leases") {
                quiet_since = Instant::now();
            }
        }
        Ok(())
    }

    /// Creates Instances, a third of each Template.
    async fn instances(&self, namespace: &str, from: usize, count: usize) -> Result<()> {
        let path = format!("/apis/crownlabs.polito.it/v1alpha2/namespaces/{namespace}/instances");
        let creations = (from..from + count).map(|n| {
            let body = instance(&format!("bench-{n:05}"), TEMPLATES[n % TEMPLATES.len()]);
            let path = path.clone();
            async move { self.send("POST", &path, &body).await.map(drop) }
        });
        stream::iter(creations).buffer_unordered(CONCURRENCY).collect::<Vec<_>>().await.into_iter().collect()
    }

    fn daemon(&self) -> Result<Daemon> {
        let config = self.dir.join("crownlabs.yaml");
        fs::write(&config, CONFIG)?;
        let child = Command::new(env!("CARGO_BIN_EXE_crownlabs"))
            .args(["run", "--config"])
            .arg(&config)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .stderr(fs::File::create(self.dir.join("daemon.log"))?)
            .spawn()
            .context("the daemon")?;
        Ok(Daemon { child })
    }

    /// Waits until `count` Instances have a status in the audit log since `mark`.
    fn await_statuses(&self, mark: Mark, count: usize) -> Result<Vec<AuditEntry>> {
        self.await_written(mark, "instances", count)
    }

    /// Waits until `count` objects of that resource have a status in the audit log since `mark`.
    fn await_written(&self, mark: Mark, resource: &str, count: usize) -> Result<Vec<AuditEntry>> {
        let audit = self.cluster.audit();
        let (mut entries, mut position) = (Vec::new(), mark);
        let begin = Instant::now();
        loop {
            let (more, next) = audit.read(position)?;
            entries.extend(more);
            position = next;
            let done: BTreeSet<&str> = entries
                .iter()
                .filter(|entry| entry.resource == resource && entry.subresource == "status")
                .map(|entry| entry.name.as_str())
                .collect();
            if done.len() >= count {
                return Ok(entries);
            }
            anyhow::ensure!(begin.elapsed() < Duration::from_mins(10), "{count} statuses within 10 minutes");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

struct Daemon {
    child: Child,
}

impl Daemon {
    fn proc(&self, file: &str) -> Result<String> {
        Ok(fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))?)
    }

    /// Processor time so far, in seconds: user and system, in ticks of 10 ms (`man 5 proc`).
    fn processor_seconds(&self) -> Result<f64> {
        let stat = self.proc("stat")?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        Ok((ticks(11) + ticks(12)) / 100.0)
    }

    /// Peak memory (RSS) so far, in MiB.
    fn peak_mebibytes(&self) -> Result<f64> {
        let status = self.proc("status")?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("VmHWM")?;
        let kibibytes: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
        Ok(kibibytes / 1024.0)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_work(entry: &AuditEntry) -> bool {
    entry.verb != "watch" && entry.resource != "leases" && entry.code < 400
}

fn requests(entries: &[AuditEntry]) -> f64 {
    count(by_agent(entries, AGENT).filter(|entry| is_work(entry)).count())
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// From `begin` to the last write that counts, in seconds.
fn wall(begin: Timestamp, entries: &[AuditEntry]) -> f64 {
    let last = entries.iter().filter(|entry| entry.is_write() && entry.resource != "leases");
    let last = last.map(|entry| entry.stage_timestamp).max().unwrap_or(begin);
    (last - begin).total(jiff::Unit::Second).unwrap_or(f64::NAN)
}

async fn cold_600(figures: &mut Vec<Figure>) -> Result<()> {
    const COUNT: usize = 600;
    let bench = Bench::start().await?;
    let audit = bench.cluster.audit();

    // The API server gets slower with every object that it holds: the floor is measured before the
    // daemon and after it.
    let before = floor(&bench, "tenant-before", COUNT).await?;

    eprintln!("cold: the daemon, {COUNT} Instances …");
    bench.instances("tenant-bench", 0, COUNT).await?;
    bench.settle()?;
    let (mark, begin) = (audit.mark()?, now());
    let daemon = bench.daemon()?;
    let entries = bench.await_statuses(mark, COUNT)?;
    let (processor, memory) = (daemon.processor_seconds()?, daemon.peak_mebibytes()?);
    let ours = wall(begin, &by_agent(&entries, AGENT).cloned().collect::<Vec<_>>());
    figures.push(Figure {
        work: "600 cold: floor, writes per Instance",
        value: before.writes / count(COUNT),
        unit: "",
        limit: None,
    });
    figures.push(Figure {
        work: "600 cold: requests per Instance",
        value: requests(&entries) / count(COUNT),
        unit: "",
        limit: Some(5.8),
    });
    figures.push(Figure { work: "600 cold: processor time", value: processor, unit: "s", limit: Some(2.0) });
    figures.push(Figure { work: "600 cold: peak memory", value: memory, unit: "MiB", limit: Some(45.0) });
    eprintln!("reaction: one Instance at a time, idle daemon …");
    bench.settle()?;
    let mark = audit.mark()?;
    for n in 0..TRIES {
        // Templates with a web interface: `container` and `vm`.
        let body = instance(&format!("react-{n:03}"), TEMPLATES[n % 2]);
        bench
            .send("POST", "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-bench/instances", &body)
            .await?;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    let mut times = reactions(&audit.since(mark)?);
    anyhow::ensure!(times.len() == TRIES, "{} of {TRIES} reactions", times.len());
    times.sort_by(f64::total_cmp);
    figures.push(Figure {
        work: "accepted to Ingress: median",
        value: times[TRIES / 2],
        unit: "ms",
        limit: Some(20.0),
    });
    figures.push(Figure {
        work: "accepted to Ingress: 95 %",
        value: times[TRIES * 95 / 100],
        unit: "ms",
        limit: Some(40.0),
    });

    drop(daemon);
    let after = floor(&bench, "tenant-after", COUNT).await?;
    eprintln!("floor before and after: {:.2} s, {:.2} s", before.wall, after.wall);
    let floor_wall = f64::midpoint(before.wall, after.wall);
    figures.push(Figure { work: "600 cold: floor, wall time", value: floor_wall, unit: "s", limit: None });
    figures.push(Figure {
        work: "600 cold: wall time",
        value: ours,
        unit: "s",
        limit: Some(1.05 * floor_wall),
    });
    Ok(())
}

/// What the loader took.
struct Floor {
    /// In seconds.
    wall: f64,
    /// How many requests.
    writes: f64,
}

/// Sends the needed writes for `number` new Instances in that namespace.
async fn floor(bench: &Bench, namespace: &str, number: usize) -> Result<Floor> {
    eprintln!("floor: a loader that sends the needed writes for {number} Instances …");
    bench.instances(namespace, 0, number).await?;
    let planned = planned(bench, namespace)?;
    bench.settle()?;
    let (mark, begin) = (bench.cluster.audit().mark()?, now());
    load(bench, namespace, &planned).await?;
    let entries = bench.await_statuses(mark, number)?;
    let entries: Vec<AuditEntry> = by_agent(&entries, LOADER).cloned().collect();
    let writes = entries.iter().filter(|entry| entry.is_write()).count();
    Ok(Floor { wall: wall(begin, &entries), writes: count(writes) })
}

/// How many reactions are timed.
const TRIES: usize = 100;

/// Milliseconds from the answer to an Instance's creation to that of its Ingress.
fn reactions(entries: &[AuditEntry]) -> Vec<f64> {
    let mut made: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut times = Vec::new();
    for entry in entries.iter().filter(|entry| entry.verb == "create" && entry.code == 201) {
        if entry.resource == "instances" {
            made.insert(entry.name.clone(), entry.stage_timestamp);
        } else if entry.resource == "ingresses"
            && let Some(begin) = entry.name.strip_suffix("-gui").and_then(|name| made.get(name))
        {
            let time = (entry.stage_timestamp - *begin).total(jiff::Unit::Millisecond);
            times.extend(time.ok());
        }
    }
    times
}

/// 300 Tenants of a Workspace, from cold: without Keycloak, and with volumes that stay unbound.
async fn cold_tenants(figures: &mut Vec<Figure>) -> Result<()> {
    const COUNT: usize = 300;
    let bench = Bench::start().await?;
    let audit = bench.cluster.audit();
    let labels = json!({"crownlabs.polito.it/operator-selector": "bench"});
    let course = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace",
        "metadata": {"name": "course", "labels": labels},
        "spec": {"prettyName": "Course", "quota": {"cpu": 4, "memory": "8Gi", "instances": 2}},
    });
    bench.send("POST", "/apis/crownlabs.polito.it/v1alpha1/workspaces", &course).await?;
    for n in 0..COUNT {
        let tenant = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant",
            "metadata": {"name": format!("student.{n:03}"), "labels": labels},
            "spec": {
                "firstName": "Ada", "lastName": "Rossi", "email": format!("student.{n:03}@example.org"),
                "lastLogin": "2099-01-01T00:00:00Z", "workspaces": [{"name": "course", "role": "user"}],
            },
        });
        bench.send("POST", "/apis/crownlabs.polito.it/v1alpha2/tenants", &tenant).await?;
    }
    bench.settle()?;
    eprintln!("cold: the daemon, {COUNT} Tenants …");
    let mark = audit.mark()?;
    let daemon = bench.daemon()?;
    bench.await_written(mark, "tenants", COUNT)?;
    bench.settle()?;
    let entries = audit.since(mark)?;
    figures.push(Figure {
        work: "300 Tenants cold: requests per Tenant",
        value: requests(&entries) / count(COUNT),
        unit: "",
        limit: Some(11.0),
    });
    figures.push(Figure {
        work: "300 Tenants cold: processor time",
        value: daemon.processor_seconds()?,
        unit: "s",
        limit: Some(1.5),
    });
    figures.push(Figure {
        work: "300 Tenants cold: peak memory",
        value: daemon.peak_mebibytes()?,
        unit: "MiB",
        limit: Some(45.0),
    });
    Ok(())
}

async fn cold_2400(figures: &mut Vec<Figure>) -> Result<()> {
    const COUNT: usize = 2400;
    let bench = Bench::start().await?;
    let audit = bench.cluster.audit();
    eprintln!("cold: the daemon, {COUNT} Instances …");
    bench.instances("tenant-bench", 0, COUNT).await?;
    let mark = audit.mark()?;
    let daemon = bench.daemon()?;
    let entries = bench.await_statuses(mark, COUNT)?;
    figures.push(Figure {
        work: "2400 cold: requests per Instance",
        value: requests(&entries) / count(COUNT),
        unit: "",
        limit: Some(5.8),
    });
    figures.push(Figure {
        work: "2400 cold: processor time",
        value: daemon.processor_seconds()?,
        unit: "s",
        limit: None,
    });
    figures.push(Figure {
        work: "2400 cold: peak memory",
        value: daemon.peak_mebibytes()?,
        unit: "MiB",
        limit: Some(80.0),
    });
    drop(daemon);

    eprintln!("restart with {COUNT} Instances in place, then idle for {:?} …", idle_time());
    let mark = audit.mark()?;
    let daemon = bench.daemon()?;
    // The old leader was killed: its lease has to expire first.
    std::thread::sleep(Duration::from_secs(30));
    let entries = audit.since(mark)?;
    let leads = by_agent(&entries, AGENT).any(|entry| entry.resource == "leases" && entry.verb == "update");
    anyhow::ensure!(leads, "the restarted daemon leads");
    let writes =
        by_agent(&entries, AGENT).filter(|entry| is_work(entry)).filter(|entry| entry.is_write()).count();
    figures.push(Figure { work: "2400 restart: writes", value: count(writes), unit: "", limit: Some(0.0) });
    figures.push(Figure {
        work: "2400 restart: processor time",
        value: daemon.processor_seconds()?,
        unit: "s",
        limit: None,
    });
    figures.push(Figure {
        work: "2400 restart: peak memory",
        value: daemon.peak_mebibytes()?,
        unit: "MiB",
        limit: Some(80.0),
    });
    bench.settle()?;
    let mark = audit.mark()?;
    let before = daemon.processor_seconds()?;
    std::thread::sleep(idle_time());
    let idle = requests(&audit.since(mark)?);
    figures.push(Figure {
        work: "2400 idle: requests other than watches and the lease",
        value: idle,
        unit: "",
        limit: Some(0.0),
    });
    let spent = (daemon.processor_seconds()? - before) / idle_time().as_secs_f64() * 3600.0;
    figures.push(Figure {
        work: "2400 idle: processor time in an hour",
        value: spent,
        unit: "s",
        limit: None,
    });
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a bench measures by the wall clock, like the audit log")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// What the floor sends, an Instance at a time: labels, objects, status.
fn planned(bench: &Bench, namespace: &str) -> Result<Vec<Vec<Value>>> {
    let file = bench.dir.join(format!("{namespace}.yaml"));
    let get = |arguments: &[&str]| -> Result<String> {
        let output = bench.cluster.kubectl().args(["get", "-o", "json"]).args(arguments).output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let mut text = String::new();
    for arguments in [
        &["templates", "-A"][..],
        &["tenants"],
        &["secret", "mydrive-info", "-n", namespace],
        &["instances.crownlabs.polito.it", "-n", namespace],
    ] {
        text.push_str("---\n");
        text.push_str(&get(arguments)?);
        text.push('\n');
    }
    fs::write(&file, text)?;
    let mut config = Config::default();
    // The Tenant is there already, and left alone.
    config.controllers.tenant.enabled = false;
    let output = crownlabs::offline::plan(&[file], &config)?;
    anyhow::ensure!(output.remarks.is_empty(), "{:?}", output.remarks);
    let mut groups: Vec<Vec<Value>> = Vec::new();
    for object in output.objects {
        match groups.last_mut() {
            Some(group) if object["kind"] != "Instance" => group.push(object),
            _ => groups.push(vec![object]),
        }
    }
    Ok(groups)
}

async fn load(bench: &Bench, namespace: &str, planned: &[Vec<Value>]) -> Result<()> {
    let instances = format!("/apis/crownlabs.polito.it/v1alpha2/namespaces/{namespace}/instances");
    let instances = instances.as_str();
    let loads = planned.iter().map(async |group| -> Result<()> {
        for object in group {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let (method, path, body) = match object["kind"].as_str().unwrap_or_default() {
                "Instance" => {
                    let labels = json!({"metadata": {"labels": object["metadata"]["labels"]}, "spec": {"prettyName": object["spec"]["prettyName"]}});
                    ("PATCH", format!("{instances}/{name}"), labels)
                }
                kind => ("POST", collection(kind, namespace)?, object.clone()),
            };
            Bench::send_as(&bench.daemon_client, method, &path, &body).await?;
        }
        let name = group.first().map_or("", |object| object["metadata"]["name"].as_str().unwrap_or_default());
        let status = json!({"status": floor_status()});
        let path = format!("{instances}/{name}/status");
        Bench::send_as(&bench.daemon_client, "PATCH", &path, &status).await?;
        Ok(())
    });
    stream::iter(loads).buffer_unordered(CONCURRENCY).collect::<Vec<_>>().await.into_iter().collect()
}

/// What an Instance that starts has to say: as much as the daemon writes.
fn floor_status() -> Value {
    let url = "https://labs.example.org/instance/00000000-0000-0000-0000-000000000000/app/";
    let condition = |type_: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2,
        })
    };
    json!({
        "phase": "Starting",
        "ip": "10.0.0.1",
        "url": url,
        "environments": [{"name": "main", "phase": "Starting", "ip": "10.0.0.1"}],
        "conditions": [
            condition("Ready", "False", "Starting", "The environment is starting"),
            condition("Reconciled", "True", "Reconciled", "All objects of the Instance are as they should be"),
        ],
    })
}

fn collection(kind: &str, namespace: &str) -> Result<String> {
    let (group, plural) = match kind {
        "Service" => ("/api/v1", "services"),
        "Secret" => ("/api/v1", "secrets"),
        "Ingress" => ("/apis/networking.k8s.io/v1", "ingresses"),
        "Deployment" => ("/apis/apps/v1", "deployments"),
        "VirtualMachine" => ("/apis/kubevirt.io/v1", "virtualmachines"),
        "VirtualMachineInstance" => ("/apis/kubevirt.io/v1", "virtualmachineinstances"),
        other => anyhow::bail!("kind {other} is not part of the bench"),
    };
    Ok(format!("{group}/namespaces/{namespace}/{plural}"))
}

fn instance(name: &str, template: &str) -> Value {
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

fn report(figures: &[Figure]) -> Result<()> {
    println!("\n{:<56} {:>10} {:>10}", "work", "measured", "at most");
    for Figure { work, value, unit, limit } in figures {
        let limit_text = limit.map_or_else(|| "-".to_owned(), |limit| format!("{limit:.2} {unit}"));
        let mark = if limit.is_some_and(|limit| *value > limit) { "  MISSED" } else { "" };
        println!("{work:<56} {:>10} {limit_text:>10}{mark}", format!("{value:.2} {unit}"));
    }
    let json: Vec<Value> = figures
        .iter()
        .map(|f| json!({"work": f.work, "value": f.value, "unit": f.unit, "limit": f.limit}))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("instances.json"), format!("{:#}\n", Value::from(json)))?;
    println!("\nas JSON: target/bench/instances.json");
    Ok(())
}

const CONFIG: &str = "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {crownlabs.polito.it/operator-selector: bench}
server: {metrics: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}
";

const FURNITURE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: workspace-bench, labels: {crownlabs.polito.it/operator-selector: bench}}
---
apiVersion: v1
kind: Namespace
metadata: {name: tenant-bench, labels: {crownlabs.polito.it/operator-selector: bench}}
---
apiVersion: v1
kind: Namespace
metadata: {name: tenant-before}
---
apiVersion: v1
kind: Namespace
metadata: {name: tenant-after}
---
apiVersion: v1
kind: Secret
metadata: {name: mydrive-info, namespace: tenant-bench}
stringData: {server-name: nfs.example.org, path: /exports/ada}
---
apiVersion: v1
kind: Secret
metadata: {name: mydrive-info, namespace: tenant-before}
stringData: {server-name: nfs.example.org, path: /exports/ada}
---
apiVersion: v1
kind: Secret
metadata: {name: mydrive-info, namespace: tenant-after}
stringData: {server-name: nfs.example.org, path: /exports/ada}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: ada}
spec: {firstName: Ada, lastName: Rossi, email: ada@example.org, publicKeys: [\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3 ada@lab\"]}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: container, namespace: workspace-bench}
spec:
  prettyName: container
  description: bench
  workspace.crownlabs.polito.it/WorkspaceRef: {name: bench}
  environmentList:
  - {name: main, environmentType: Container, image: \"r.example.org/app:1\", resources: {cpu: 1, reservedCPUPercentage: 10, memory: 1G}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: vm, namespace: workspace-bench}
spec:
  prettyName: vm
  description: bench
  workspace.crownlabs.polito.it/WorkspaceRef: {name: bench}
  environmentList:
  - {name: main, environmentType: VirtualMachine, image: \"r.example.org/vm:1\", resources: {cpu: 1, reservedCPUPercentage: 10, memory: 1G}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: vm-persistent, namespace: workspace-bench}
spec:
  prettyName: vm-persistent
  description: bench
  workspace.crownlabs.polito.it/WorkspaceRef: {name: bench}
  environmentList:
  - {name: main, environmentType: VirtualMachine, image: \"r.example.org/vm:1\", persistent: true, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 1G, disk: 10G}}
";
