//! What every bench measures with: a control plane, the daemon as a process, and the audit log.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::cluster::audit::{AuditEntry, Mark, by_agent};
use crate::cluster::{Cluster, Options};
use anyhow::{Context, Result};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

pub const TEMPLATES: [&str; 3] = ["container", "vm", "vm-persistent"];
/// Requests under way at once, of the loader as of the daemon.
pub const CONCURRENCY: usize = 16;
pub const AGENT: &str = "crownlabs/";
/// After this time without a write by anybody the cluster is at rest.
pub const QUIET: Duration = Duration::from_secs(3);

/// A figure and what it must not exceed.
pub struct Figure {
    pub work: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub limit: Option<f64>,
}

pub struct Bench {
    pub cluster: Cluster,
    pub client: Client,
    /// The same `ServiceAccount` as the daemon, for the floor.
    pub daemon_client: Client,
    /// The daemon's.
    pub kubeconfig: PathBuf,
    pub dir: PathBuf,
}

impl Bench {
    pub async fn start() -> Result<Self> {
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

    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        Self::send_as(&self.client, method, path, body).await
    }

    pub async fn send_as(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(body.to_string().into_bytes())?;
        client.request(request).await.with_context(|| format!("{method} {path}"))
    }

    /// Waits until nobody has written anything for [`QUIET`].
    pub fn settle(&self) -> Result<()> {
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
    pub async fn instances(&self, namespace: &str, from: usize, count: usize) -> Result<()> {
        let path = format!("/apis/crownlabs.polito.it/v1alpha2/namespaces/{namespace}/instances");
        let creations = (from..from + count).map(|n| {
            let body = instance(&format!("bench-{n:05}"), TEMPLATES[n % TEMPLATES.len()]);
            let path = path.clone();
            async move { self.send("POST", &path, &body).await.map(drop) }
        });
        stream::iter(creations).buffer_unordered(CONCURRENCY).collect::<Vec<_>>().await.into_iter().collect()
    }

    pub fn daemon(&self) -> Result<Daemon> {
        self.daemon_with(CONFIG)
    }

    /// Starts the daemon with this configuration.
    pub fn daemon_with(&self, text: &str) -> Result<Daemon> {
        let config = self.dir.join("crownlabs.yaml");
        fs::write(&config, text)?;
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

    /// Waits until a daemon that was started at `mark` leads, and a while longer for its first passes. The
    /// one before it was killed: its lease has to expire first.
    pub fn await_lead(&self, mark: Mark) -> Result<()> {
        let audit = self.cluster.audit();
        let (begin, mut position) = (Instant::now(), mark);
        loop {
            let (entries, next) = audit.read(position)?;
            position = next;
            if by_agent(&entries, AGENT).any(|entry| entry.resource == "leases" && entry.verb == "update") {
                return self.settle();
            }
            anyhow::ensure!(begin.elapsed() < Duration::from_mins(1), "the restarted daemon leads");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until `count` Instances have a status in the audit log since `mark`.
    pub fn await_statuses(&self, mark: Mark, count: usize) -> Result<Vec<AuditEntry>> {
        self.await_written(mark, "instances", count)
    }

    /// Waits until `count` objects of that resource have a status in the audit log since `mark`.
    pub fn await_written(&self, mark: Mark, resource: &str, count: usize) -> Result<Vec<AuditEntry>> {
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

pub struct Daemon {
    pub child: Child,
}

impl Daemon {
    pub fn proc(&self, file: &str) -> Result<String> {
        Ok(fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))?)
    }

    /// Processor time so far, in seconds: user and system, in ticks of 10 ms (`man 5 proc`).
    pub fn processor_seconds(&self) -> Result<f64> {
        let stat = self.proc("stat")?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        Ok((ticks(11) + ticks(12)) / 100.0)
    }

    /// Peak memory (RSS) so far, in MiB.
    pub fn peak_mebibytes(&self) -> Result<f64> {
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

pub fn is_work(entry: &AuditEntry) -> bool {
    entry.verb != "watch" && entry.resource != "leases" && entry.code < 400
}

pub fn requests(entries: &[AuditEntry]) -> f64 {
    count(by_agent(entries, AGENT).filter(|entry| is_work(entry)).count())
}

pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// From `begin` to the last write that counts, in seconds.
pub fn wall(begin: Timestamp, entries: &[AuditEntry]) -> f64 {
    let last = entries.iter().filter(|entry| entry.is_write() && entry.resource != "leases");
    let last = last.map(|entry| entry.stage_timestamp).max().unwrap_or(begin);
    (last - begin).total(jiff::Unit::Second).unwrap_or(f64::NAN)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures by the wall clock, like the audit log")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

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

pub const CONFIG: &str = "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {crownlabs.polito.it/operator-selector: bench}
server: {metrics: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}
";

pub const FURNITURE: &str = "
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
