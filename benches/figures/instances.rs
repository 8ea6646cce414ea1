//! Instances: created before the daemon starts, one at a time, after a restart, and while nothing changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use crownlabs::Config;
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::audit::{AuditEntry, by_agent};
use crate::harness::{
    AGENT, Bench, CONCURRENCY, Daemon, Figures, TEMPLATES, count, instance, lead, now, requests, wall, writes,
};
use crate::idle_time;

/// The user agent of the loader.
const LOADER: &str = "crownlabs-tests";
/// How many reactions are timed.
const TRIES: usize = 100;

/// 600 Instances that exist when the daemon starts, compared with a loader that sends only the needed writes; then
/// the time from the creation of an Instance to that of its Ingress. With a `baseline`, times are compared with those
/// of that build of the daemon, which gets a control plane of its own before and after: half an hour later, the same
/// machine can be twice as slow.
pub async fn cold_600(figures: &mut Figures, baseline: Option<&Path>) -> Result<()> {
    let before = of_baseline(baseline).await?;
    let ours = measured_600(figures).await?;
    let after = of_baseline(baseline).await?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
    for (work, ours, before, after) in [
        (
            "600 cold: processor time",
            ours.processor_seconds,
            before.processor_seconds,
            after.processor_seconds,
        ),
        ("accepted to Ingress: median", ours.median, before.median, after.median),
        ("accepted to Ingress: 95 %", ours.late, before.late, after.late),
    ] {
        eprintln!("{work}: the baseline before and after: {before:.2}, {after:.2}; this build: {ours:.2}");
        let ratio = ours / f64::midpoint(before, after);
        figures.add(format!("{work}, relative to the baseline"), ratio, "", Some(1.1));
    }
    Ok(())
}

/// What is compared with the baseline.
struct Times {
    processor_seconds: f64,
    /// From the creation of an Instance to that of its Ingress, in milliseconds: the median.
    median: f64,
    /// The same, 95 % of them.
    late: f64,
}

/// The times of another build of the daemon, on a control plane of its own.
async fn of_baseline(binary: Option<&Path>) -> Result<Option<Times>> {
    let Some(binary) = binary else { return Ok(None) };
    eprintln!("the baseline …");
    let bench = Bench::start().await?;
    let Cold { daemon, .. } = cold(&bench, COLD, || bench.binary(binary)).await?;
    let processor_seconds = daemon.processor_seconds()?;
    let (median, late) = reaction(&bench).await?;
    Ok(Some(Times { processor_seconds, median, late }))
}

/// How many Instances [`cold_600`] has.
const COLD: usize = 600;

/// The figures of this build with 600 Instances.
async fn measured_600(figures: &mut Figures) -> Result<Times> {
    const COUNT: usize = COLD;
    let bench = Bench::start().await?;
    // The API server gets slower with every object that it holds: the floor is measured before the daemon and after
    // it, and the mean of both counts.
    let before = floor(&bench, "tenant-before", COUNT).await?;
    let Cold { daemon, begin, entries } = cold(&bench, COUNT, || bench.daemon()).await?;
    let (processor, memory) = (daemon.processor_seconds()?, daemon.peak_mebibytes()?);
    let ours = wall(begin, &by_agent(&entries, AGENT).cloned().collect::<Vec<_>>());
    let lead = lead(begin, &by_agent(&entries, AGENT).cloned().collect::<Vec<_>>());
    let per_instance = requests(&entries) / count(COUNT);
    figures.add("600 cold: floor, writes per Instance", before.writes / count(COUNT), "", None);
    figures.add("600 cold: requests per Instance", per_instance, "", Some(5.8));
    figures.add("600 cold: processor time", processor, "s", Some(2.0));
    figures.add("600 cold: peak memory", memory, "MiB", Some(45.0));
    let (median, late) = reaction(&bench).await?;
    figures.add("accepted to Ingress: median", median, "ms", Some(20.0));
    figures.add("accepted to Ingress: 95 %", late, "ms", Some(40.0));
    drop(daemon);
    let after = floor(&bench, "tenant-after", COUNT).await?;
    eprintln!("floor before and after: {:.2} s, {:.2} s", before.wall, after.wall);
    let floor_wall = f64::midpoint(before.wall, after.wall);
    figures.add("600 cold: floor, wall time", floor_wall, "s", None);
    figures.add("600 cold: start to the first write", lead, "s", None);
    figures.add("600 cold: wall time", ours, "s", Some(1.05 * floor_wall));
    Ok(Times { processor_seconds: processor, median, late })
}

/// A daemon that was started when Instances were in place, and has given each of them a status.
struct Cold {
    daemon: Daemon,
    /// When it was started.
    begin: Timestamp,
    /// The audit log since then.
    entries: Vec<AuditEntry>,
}

/// Creates Instances, lets the cluster come to rest, then starts the daemon and waits for the statuses.
async fn cold(bench: &Bench, number: usize, start: impl Fn() -> Result<Daemon>) -> Result<Cold> {
    eprintln!("cold: the daemon, {number} Instances …");
    bench.instances("tenant-bench", 0, number).await?;
    bench.settle()?;
    let (mark, begin) = (bench.cluster.audit().mark()?, now());
    let daemon = start()?;
    let entries = bench.await_statuses(mark, number)?;
    Ok(Cold { daemon, begin, entries })
}

/// Measures the time from the creation of one Instance to that of its Ingress, while the daemon is idle otherwise: the
/// median and 95 %, in milliseconds.
async fn reaction(bench: &Bench) -> Result<(f64, f64)> {
    eprintln!("reaction: one Instance at a time, idle daemon …");
    bench.settle()?;
    let audit = bench.cluster.audit();
    let mark = audit.mark()?;
    let path = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-bench/instances";
    for n in 0..TRIES {
        // Templates with a web interface: `container` and `vm`.
        let body = instance(&format!("react-{n:03}"), TEMPLATES[n % 2]);
        bench.send("POST", path, &body).await?;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    let mut times = reactions(&audit.since(mark)?);
    anyhow::ensure!(times.len() == TRIES, "{} of {TRIES} reactions", times.len());
    times.sort_by(f64::total_cmp);
    Ok((times[TRIES / 2], times[TRIES * 95 / 100]))
}

/// For each Instance with an Ingress, the milliseconds from the answer to its creation to that of its Ingress.
fn reactions(entries: &[AuditEntry]) -> Vec<f64> {
    let mut accepted: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut times = Vec::new();
    for entry in entries.iter().filter(|entry| entry.verb == "create" && entry.code == 201) {
        if entry.resource == "instances" {
            accepted.insert(entry.name.clone(), entry.stage_timestamp);
        } else if entry.resource == "ingresses"
            && let Some(begin) = entry.name.strip_suffix("-gui").and_then(|name| accepted.get(name))
        {
            let time = (entry.stage_timestamp - *begin).total(jiff::Unit::Millisecond);
            times.extend(time.ok());
        }
    }
    times
}

/// 2,400 Instances that exist when the daemon starts, a restart with all of them, then two idle minutes.
pub async fn cold_2400(figures: &mut Figures) -> Result<()> {
    const COUNT: usize = 2400;
    let bench = Bench::start().await?;
    let Cold { daemon, entries, .. } = cold(&bench, COUNT, || bench.daemon()).await?;
    figures.add("2400 cold: requests per Instance", requests(&entries) / count(COUNT), "", Some(5.8));
    figures.add("2400 cold: processor time", daemon.processor_seconds()?, "s", None);
    figures.add("2400 cold: peak memory", daemon.peak_mebibytes()?, "MiB", Some(45.0));
    let restart = restart(&bench, daemon, None)?;
    figures.add("2400 restart: writes", restart.writes, "", Some(0.0));
    figures.add("2400 restart: processor time", restart.processor_seconds, "s", None);
    figures.add("2400 restart: peak memory", restart.daemon.peak_mebibytes()?, "MiB", Some(45.0));
    let time = idle_time(Duration::from_mins(2));
    let idle = idle(&bench, &restart.daemon, time)?;
    figures.add("2400 idle: requests other than watches and the lease", idle.requests, "", Some(0.0));
    let in_an_hour = idle.processor_seconds / time.as_secs_f64() * 3600.0;
    figures.add("2400 idle: processor time in an hour", in_an_hour, "s", None);
    Ok(())
}

/// `number` Instances (10,000 unless overridden) that exist when the daemon starts, a restart with all of them, then
/// an idle quarter of an hour. With a `baseline`, the restart is also compared with that build of the daemon.
pub async fn scale(figures: &mut Figures, number: usize, baseline: Option<&Path>) -> Result<()> {
    let bench = Bench::start().await?;
    let Cold { daemon, entries, .. } = cold(&bench, number, || bench.daemon()).await?;
    let (per_instance, processor) = (requests(&entries) / count(number), daemon.processor_seconds()?);
    drop(entries);
    // With all that others make of the Instances (ReplicaSets, pods, endpoints).
    bench.settle()?;
    let peak = daemon.peak_mebibytes()?;
    let mut figure =
        |work: &str, value, unit, limit| figures.add(format!("{number} {work}"), value, unit, limit);
    figure("cold: requests per Instance", per_instance, "", None);
    figure("cold: processor time", processor, "s", None);
    figure("cold: peak memory", peak, "MiB", Some(130.0));
    let restart = restart(&bench, daemon, baseline)?;
    figure("restart: writes", restart.writes, "", Some(0.0));
    figure("restart: processor time", restart.processor_seconds, "s", Some(2.0));
    if let Some(baseline) = restart.baseline_seconds {
        figure("restart: processor time of the baseline", baseline, "s", None);
        let ratio = restart.processor_seconds / baseline;
        figure("restart: processor time, relative to the baseline", ratio, "", Some(1.1));
    }
    figure("restart: peak memory", restart.daemon.peak_mebibytes()?, "MiB", Some(130.0));
    let idle = idle(&bench, &restart.daemon, idle_time(Duration::from_mins(15)))?;
    figure("idle: requests other than watches and the lease", idle.requests, "", Some(0.0));
    figure("idle: processor time", idle.processor_seconds, "s", Some(1.0));
    Ok(())
}

/// Daemons that were started one after the other when everything was in place, each until it was idle.
struct Restart {
    /// The last one.
    daemon: Daemon,
    /// The number of all their writes.
    writes: f64,
    /// The processor time of one from its start on: the median.
    processor_seconds: f64,
    /// The same of the build with which it is compared.
    baseline_seconds: Option<f64>,
}

/// How often the daemon is restarted: other programs use the same processors.
const RESTARTS: usize = 3;

/// Kills the daemon when the cluster is at rest, starts another one, and waits until that is the leader and idle;
/// [`RESTARTS`] times. With a baseline, that is started as often, each time before the daemon.
fn restart(bench: &Bench, daemon: Daemon, baseline: Option<&Path>) -> Result<Restart> {
    bench.settle()?;
    let (mut daemon, mut written) = (daemon, 0.0);
    let (mut times, mut baseline_times) = (Vec::new(), Vec::new());
    let audit = bench.cluster.audit();
    for n in 1..=RESTARTS {
        if let Some(baseline) = baseline {
            eprintln!("restart {n} of the baseline …");
            drop(daemon);
            daemon = started(bench, || bench.binary(baseline))?;
            baseline_times.push(daemon.processor_seconds()?);
        }
        eprintln!("restart {n} with all Instances in place …");
        drop(daemon);
        let mark = audit.mark()?;
        daemon = started(bench, || bench.daemon())?;
        times.push(daemon.processor_seconds()?);
        written += writes(&audit.since(mark)?);
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    };
    Ok(Restart {
        daemon,
        writes: written,
        processor_seconds: median(times).unwrap_or(f64::NAN),
        baseline_seconds: median(baseline_times),
    })
}

/// Starts a daemon, and waits until it is the leader and idle.
fn started(bench: &Bench, start: impl Fn() -> Result<Daemon>) -> Result<Daemon> {
    let mark = bench.cluster.audit().mark()?;
    let daemon = start()?;
    bench.await_leader(mark)?;
    daemon.await_idle()?;
    Ok(daemon)
}

/// What the daemon did while nothing changed.
struct Idle {
    /// The number of its requests, without watches and the lease.
    requests: f64,
    processor_seconds: f64,
}

/// Measures the daemon for that time, in which nothing changes.
fn idle(bench: &Bench, daemon: &Daemon, time: Duration) -> Result<Idle> {
    eprintln!("idle for {time:?} …");
    let audit = bench.cluster.audit();
    let (mark, before) = (audit.mark()?, daemon.processor_seconds()?);
    std::thread::sleep(time);
    let processor_seconds = daemon.processor_seconds()? - before;
    Ok(Idle { requests: requests(&audit.since(mark)?), processor_seconds })
}

/// What the loader needed.
struct Floor {
    /// From its first to its last write, in seconds.
    wall: f64,
    /// The number of its writes.
    writes: f64,
}

/// Creates `number` Instances in that namespace, then measures a loader that sends the writes that they need.
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

/// The objects that `crownlabs plan` makes for the Instances of a namespace, by Instance: first the Instance with its
/// labels, then the other objects.
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
    // The Tenant is part of the fixtures; the floor does not write it.
    config.controllers.tenant.enabled = false;
    let output = crownlabs::plan(&[file], &config)?;
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
            condition("Reconciled", "True", "Reconciled", "All objects of the Instance are as they should be"),
        ],
    })
}

/// The path of the objects of a kind in a namespace.
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
