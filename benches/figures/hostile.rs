//! A thousand objects of the largest size that the API server accepts, with our labels, as students may create them:
//! the daemon starts in a cgroup with half the memory of the shipped limit, becomes the leader and works.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::fixtures::CONFIG;
use crate::harness::{Bench, Figures, NAMESPACE, instance, instances_path};

/// How many objects of each kind: Secrets, Instances, Templates, `ConfigMap`s, Services, claims.
const COUNTS: [usize; 6] = [400, 200, 150, 100, 100, 50];
/// The memory of the cgroup, in MiB.
const LIMIT: usize = 128;
/// Requests at the same time; each has a megabyte.
const CONCURRENCY: usize = 8;

/// Measures the peak memory of a daemon that starts.
pub async fn start(figures: &mut Figures) -> Result<()> {
    let bench = Bench::start().await?;
    eprintln!("{} hostile objects …", COUNTS.iter().sum::<usize>());
    let creations = objects().map(|(path, object)| {
        let bench = &bench;
        async move { bench.send("POST", &path, &object()).await.map(drop) }
    });
    let created: Vec<Result<()>> = stream::iter(creations).buffer_unordered(CONCURRENCY).collect().await;
    created.into_iter().collect::<Result<()>>()?;
    let group = Cgroup::new();
    if let Err(why) = &group {
        eprintln!("the memory is not limited, only measured: {why:#}");
    }
    let mark = bench.cluster.audit().mark()?;
    let mut command = Command::new("sh");
    let processes = group.as_ref().map_or_else(|_| "/dev/null".into(), |group| group.0.join("cgroup.procs"));
    command.args(["-c", "echo $$ > \"$0\"; exec \"$@\""]).arg(processes).arg(env!("CARGO_BIN_EXE_crownlabs"));
    let mut daemon = bench.command_with(command, CONFIG)?;
    bench.await_leader(mark)?;
    let mark = bench.cluster.audit().mark()?;
    bench.send("POST", &instances_path(), &instance("honest", "container")).await?;
    bench.await_statuses(mark, 1)?;
    bench.settle()?;
    ensure!(daemon.child.try_wait()?.is_none(), "the daemon has ended");
    let peak = daemon.peak_mebibytes()?;
    figures.add("1000 hostile objects: peak memory", peak, "MiB", Some(f64::from(u32::try_from(LIMIT)?)));
    Ok(())
}

/// The number of concurrent requests; each has a megabyte.
fn objects() -> impl Iterator<Item = (String, Box<dyn FnOnce() -> Value + Send>)> {
    let (core, group) = ("/api/v1", "/apis/crownlabs.polito.it/v1alpha2");
    let kinds = [
        (core, "secrets"),
        (group, "instances"),
        (group, "templates"),
        (core, "configmaps"),
        (core, "services"),
        (core, "persistentvolumeclaims"),
    ];
    kinds.into_iter().zip(COUNTS).flat_map(|((root, plural), count)| {
        (0..count).map(move |n| {
            let path = format!("{root}/namespaces/{NAMESPACE}/{plural}");
            (path, Box::new(move || object(plural, n)) as Box<dyn FnOnce() -> Value + Send>)
        })
    })
}

fn object(plural: &str, n: usize) -> Value {
    let labels = json!({"crownlabs.polito.it/managed-by": "instance", "crownlabs.polito.it/instance": "x"});
    let mut metadata = json!({"name": format!("hostile-{n}"), "labels": labels});
    if !matches!(plural, "secrets" | "configmaps") {
        metadata["annotations"] = json!({"a": text(n, 120), "crownlabs.polito.it/b": text(n, 120)});
    }
    let api = "crownlabs.polito.it/v1alpha2";
    match plural {
        "secrets" => json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
            "stringData": {"userdata": text(n, 1020)}}),
        "configmaps" => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"k": text(n, 1020)}}),
        "services" => json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"ports": [{"port": 80}]}}),
        "persistentvolumeclaims" => json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        "templates" => json!({"apiVersion": api, "kind": "Template", "metadata": metadata,
            "spec": {"prettyName": "x", "description": text(n, 1100), "environmentList": []}}),
        _ => json!({"apiVersion": api, "kind": "Instance", "metadata": metadata,
            "spec": {"prettyName": text(n, 1100),
                "template.crownlabs.polito.it/TemplateRef": {"name": "container", "namespace": "workspace-bench"},
                "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"}}}),
    }
}

/// A unique text of this many KiB.
fn text(seed: usize, kib: usize) -> String {
    let mut text = String::with_capacity(kib << 10);
    for n in 0..kib * 64 {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:016x}", (seed * 1_000_003 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    text
}

/// A cgroup with [`LIMIT`], of version 1 or 2. It is removed when it is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Result<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let name = format!("crownlabs-{}-hostile", std::process::id());
        let version_1 = root.join("memory");
        let (parent, limit) = if version_1.is_dir() {
            (version_1, "memory.limit_in_bytes")
        } else {
            fs::write(root.join("cgroup.subtree_control"), "+memory").context("cgroup.subtree_control")?;
            (root.to_path_buf(), "memory.max")
        };
        let folder = parent.join(name);
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let group = Self(folder);
        fs::write(group.0.join(limit), (LIMIT << 20).to_string()).context(limit)?;
        Ok(group)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The daemon was killed before; the kernel may need some time.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}
