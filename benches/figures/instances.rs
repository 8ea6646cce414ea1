//! Instances: from cold, one at a time, after a restart, and at rest.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::bed::{
    AGENT, Bench, CONCURRENCY, Figure, TEMPLATES, count, instance, is_work, now, requests, wall,
};
use crate::cluster::audit::{AuditEntry, by_agent};
use crate::idle_time;
use anyhow::Result;
use crownlabs::config::Config;
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The user agent of the loader.
const LOADER: &str = "crownlabs-tests";

pub async fn cold_600(figures: &mut Vec<Figure>) -> Result<()> {
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

pub async fn cold_2400(figures: &mut Vec<Figure>) -> Result<()> {
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
    bench.await_lead(mark)?;
    let entries = audit.since(mark)?;
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
