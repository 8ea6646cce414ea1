//! The floor: a loader that sends only the writes that Instances need, with the daemon's account.

use std::fs;

use anyhow::Result;
use crownlabs::Config;
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::fixtures::CONFIG;
use crate::harness::{Bench, CONCURRENCY, NAMESPACE, count, instances_path, now, wall};
use cluster::audit::{AuditEntry, by_agent};

/// The user agent of the loader.
const LOADER: &str = "crownlabs-tests";

/// The time and the writes of the loader.
pub struct Floor {
    /// From its first to its last write, in seconds.
    pub wall: f64,
    /// The number of its writes.
    pub writes: f64,
}

impl Floor {
    /// Creates Instances, then measures a loader that sends only the writes that they need.
    pub async fn measure(bench: &Bench, number: usize) -> Result<Floor> {
        eprintln!("floor: a loader that sends the needed writes for {number} Instances …");
        bench.instances(0, number).await?;
        let planned = planned(bench)?;
        bench.settle()?;
        let (mark, begin) = (bench.cluster.audit().mark()?, now());
        // The audit log is read at the same time, as it is while the daemon works.
        let runtime = tokio::runtime::Handle::current();
        let entries = std::thread::scope(|scope| {
            let loader = scope.spawn(|| runtime.block_on(load(bench, &planned)));
            let entries = bench.await_statuses(mark, number)?;
            loader.join().map_err(|_| anyhow::anyhow!("the loader has panicked"))??;
            anyhow::Ok(entries)
        })?;
        let entries: Vec<AuditEntry> = by_agent(&entries, LOADER).cloned().collect();
        let writes = entries.iter().filter(|entry| entry.is_write()).count();
        Ok(Self { wall: wall(begin, &entries), writes: count(writes) })
    }
}

const COURSE: &str = "---
apiVersion: crownlabs.polito.it/v1alpha1
kind: Workspace
metadata: {name: bench}
spec: {prettyName: bench}
";

/// The objects that `crownlabs plan` prints for the Instances, by Instance: first the Instance with its labels, then
/// the other objects.
fn planned(bench: &Bench) -> Result<Vec<Vec<Value>>> {
    let file = bench.dir.join("planned.yaml");
    let get = |arguments: &[&str]| -> Result<String> {
        let output = bench.cluster.kubectl().args(["get", "-o", "json"]).args(arguments).output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let mut text = String::new();
    for arguments in [
        &["templates", "-A"][..],
        &["tenants"],
        &["secret", "mydrive-info", "-n", NAMESPACE],
        &["instances.crownlabs.polito.it", "-n", NAMESPACE],
    ] {
        text.push_str("---\n");
        text.push_str(&get(arguments)?);
        text.push('\n');
    }
    // The fixtures have only the namespace of the course. `plan` reports a Template whose Workspace is missing.
    text.push_str(COURSE);
    fs::write(&file, text)?;
    let mut config = Config::parse("the bench", CONFIG)?;
    // The Tenant and the course are part of the fixtures; the floor does not write them.
    config.controllers.tenant.enabled = false;
    config.controllers.workspace.enabled = false;
    let output = crownlabs::plan(&[file], &config, crownlabs::Surroundings::default())?;
    anyhow::ensure!(output.messages.is_empty(), "{:?}", output.messages);
    let mut groups: Vec<Vec<Value>> = Vec::new();
    for object in output.objects {
        match groups.last_mut() {
            Some(group) if object["kind"] != "Instance" => group.push(object),
            _ => groups.push(vec![object]),
        }
    }
    Ok(groups)
}

/// Sends the writes: for each Instance its labels, its objects and its status.
async fn load(bench: &Bench, planned: &[Vec<Value>]) -> Result<()> {
    let instances = instances_path();
    let instances = instances.as_str();
    let loads = planned.iter().map(async |group| -> Result<()> {
        for object in group {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let (method, path, body) = match object["kind"].as_str().unwrap_or_default() {
                "Instance" => {
                    let labels = json!({"metadata": {"labels": object["metadata"]["labels"]}, "spec": {"prettyName": object["spec"]["prettyName"]}});
                    ("PATCH", format!("{instances}/{name}"), labels)
                }
                kind => ("POST", collection(kind)?, object.clone()),
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

/// A status of the same size as the daemon writes for an Instance that starts.
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
            condition("Reconciled", "True", "Reconciled", "All objects of the Instance are up to date"),
        ],
    })
}

/// The path of the objects of a kind.
fn collection(kind: &str) -> Result<String> {
    let (group, plural) = match kind {
        "Service" => ("/api/v1", "services"),
        "Secret" => ("/api/v1", "secrets"),
        "Ingress" => ("/apis/networking.k8s.io/v1", "ingresses"),
        "Deployment" => ("/apis/apps/v1", "deployments"),
        "VirtualMachine" => ("/apis/kubevirt.io/v1", "virtualmachines"),
        "VirtualMachineInstance" => ("/apis/kubevirt.io/v1", "virtualmachineinstances"),
        other => anyhow::bail!("kind {other} is not part of the bench"),
    };
    Ok(format!("{group}/namespaces/{NAMESPACE}/{plural}"))
}
