//! Instances: created before the daemon starts, one at a time, after a restart, and while nothing changes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::json;

use crate::fixtures::CONFIG;
use crate::floor::Floor;
use crate::harness::{
    AGENT, Bench, Daemon, Figures, TEMPLATES, count, instance, instances_path, lead, now, requests, wall,
    writes,
};
use crate::idle_time;
use cluster::audit::{AuditEntry, by_agent};

/// How many reactions are timed.
const TRIES: usize = 100;

/// 600 Instances that exist when the daemon starts, compared with a loader that sends only the needed writes; then
/// the time from the creation of an Instance to the creation of its Ingress. With a `baseline`, times are compared
/// with those of another build of the daemon. That build gets its own control plane before and after: half an hour
/// later, the same machine can be half as fast.
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

/// The figures that are compared with the baseline.
struct Times {
    processor_seconds: f64,
    /// The milliseconds from the creation of an Instance to the creation of its Ingress: the median.
    median: f64,
    /// The same: 95 %.
    late: f64,
}

/// The times of another build of the daemon, with its own control plane.
async fn of_baseline(binary: Option<&Path>) -> Result<Option<Times>> {
    let Some(binary) = binary else { return Ok(None) };
    eprintln!("the baseline …");
    let bench = Bench::start().await?;
    let Cold { daemon, .. } = cold(&bench, COLD, || bench.binary(binary)).await?;
    let processor_seconds = daemon.processor_seconds()?;
    let (median, late) = reaction(&bench).await?;
    Ok(Some(Times { processor_seconds, median, late }))
}

/// The number of Instances of [`cold_600`].
const COLD: usize = 600;

/// How often the floor and the daemon are measured, in turn. The same work can take half as long again a minute later:
/// the ratio from three rounds differs by a tenth from the ratio from the next three.
const ROUNDS: usize = 9;

/// The figures of this build with 600 Instances.
async fn measured_600(figures: &mut Figures) -> Result<Times> {
    const COUNT: usize = COLD;
    let (mut floors, mut walls, mut leads) = (Vec::new(), Vec::new(), Vec::new());
    let (mut processor, mut memory): (Vec<f64>, f64) = (Vec::new(), 0.0);
    loop {
        // Each with its own control plane: an API server gets slower with every object that it stores.
        let floor = Floor::measure(&Bench::start().await?, COUNT).await?;
        floors.push(floor.wall);
        let bench = Bench::start().await?;
        let Cold { daemon, begin, entries } = cold(&bench, COUNT, || bench.daemon()).await?;
        let ours: Vec<AuditEntry> = by_agent(&entries, AGENT).cloned().collect();
        walls.push(wall(begin, &ours));
        leads.push(lead(begin, &ours));
        processor.push(daemon.processor_seconds()?);
        memory = memory.max(daemon.peak_mebibytes()?);
        if walls.len() < ROUNDS {
            continue;
        }
        eprintln!("floor: {floors:.2?} s; the daemon: {walls:.2?} s, processor time {processor:.2?} s");
        figures.add("600 cold: floor, writes per Instance", floor.writes / count(COUNT), "", None);
        figures.add("600 cold: requests per Instance", requests(&entries) / count(COUNT), "", Some(5.8));
        let processor_seconds = median(processor);
        figures.add("600 cold: processor time", processor_seconds, "s", Some(2.0));
        figures.add("600 cold: peak memory", memory, "MiB", Some(45.0));
        let floor_wall = median(floors);
        figures.add("600 cold: floor, wall time", floor_wall, "s", None);
        figures.add("600 cold: start to the first write", median(leads), "s", None);
        figures.add("600 cold: wall time", median(walls), "s", Some(1.05 * floor_wall));
        let (median, late) = reaction(&bench).await?;
        figures.add("accepted to Ingress: median", median, "ms", Some(20.0));
        figures.add("accepted to Ingress: 95 %", late, "ms", Some(40.0));
        return Ok(Times { processor_seconds, median, late });
    }
}

/// The median of some values; not a number if there are no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A daemon that started when the Instances existed, and has given each of them a status.
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
    bench.instances(0, number).await?;
    bench.settle()?;
    let (mark, begin) = (bench.cluster.audit().mark()?, now());
    let daemon = start()?;
    let entries = bench.await_statuses(mark, number)?;
    Ok(Cold { daemon, begin, entries })
}

/// 600 Instances that exist when the daemon starts, with the keys of the instance loop in the values of the chart. The key
/// of host names exists, as after the first start of the daemon.
pub async fn with_chart(figures: &mut Figures) -> Result<()> {
    const COUNT: usize = COLD;
    const KEYS: &str = "controllers: {instance: {urls: host, examEgress: {enabled: true}, access: {mode: daemon, \
                        exams: daemon, daemon: {authUrl: \"http://login.crownlabs-system.svc/auth\", \
                        signInUrl: \"https://labs.example.com/login/machine\"}}}}\n";
    let bench = Bench::start().await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "crownlabs-machine-hosts", "labels": {"crownlabs.polito.it/managed-by": "instance"}},
        "data": {"key": "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="},
    });
    bench.send("POST", "/api/v1/namespaces/crownlabs-system/secrets", &secret).await?;
    let start = || bench.daemon_with(&format!("{CONFIG}{KEYS}"));
    let Cold { entries, .. } = cold(&bench, COUNT, start).await?;
    let per_instance = requests(&entries) / count(COUNT);
    figures.add("600 cold, values of the chart: requests per Instance", per_instance, "", Some(5.8));
    Ok(())
}

/// Measures the time from the creation of one Instance to the creation of its Ingress, while the daemon is otherwise
/// idle: the median and 95 %, in milliseconds.
async fn reaction(bench: &Bench) -> Result<(f64, f64)> {
    eprintln!("reaction: one Instance at a time, idle daemon …");
    bench.settle()?;
    let audit = bench.cluster.audit();
    let mark = audit.mark()?;
    let path = instances_path();
    for n in 0..TRIES {
        // Templates with a web interface: `container` and `vm`.
        let body = instance(&format!("react-{n:03}"), TEMPLATES[n % 2]);
        bench.send("POST", &path, &body).await?;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    let mut times = reactions(&audit.since(mark)?);
    anyhow::ensure!(times.len() == TRIES, "{} of {TRIES} reactions", times.len());
    times.sort_by(f64::total_cmp);
    Ok((times[TRIES / 2], times[TRIES * 95 / 100]))
}

/// For each Instance with an Ingress, the milliseconds from the response to its creation to the response to
/// the creation of the Ingress.
fn reactions(entries: &[AuditEntry]) -> Vec<f64> {
    let mut accepted: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut times = Vec::new();
    for entry in entries.iter().filter(|entry| entry.verb == "create" && entry.code == 201) {
        if entry.resource == "instances" {
            accepted.insert(entry.name.clone(), entry.stage_timestamp);
        } else if entry.resource == "ingresses"
            && let Some(begin) = entry.name.strip_suffix("-main").and_then(|name| accepted.get(name))
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
    figures.add("2400 idle: lists of events", idle.event_lists, "", Some(lists_in(time)));
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
    // Including all objects that other controllers create for the Instances (ReplicaSets, pods, endpoints).
    bench.settle()?;
    let peak = daemon.peak_mebibytes()?;
    let mut figure =
        |work: &str, value, unit, limit| figures.add(format!("{number} {work}"), value, unit, limit);
    figure("cold: requests per Instance", per_instance, "", None);
    figure("cold: processor time", processor, "s", None);
    figure("cold: peak memory", peak, "MiB", Some(110.0));
    let restart = restart(&bench, daemon, baseline)?;
    figure("restart: writes", restart.writes, "", Some(0.0));
    figure("restart: processor time", restart.processor_seconds, "s", Some(2.0));
    if let Some(baseline) = restart.baseline_seconds {
        figure("restart: processor time of the baseline", baseline, "s", None);
        let ratio = restart.processor_seconds / baseline;
        figure("restart: processor time, relative to the baseline", ratio, "", Some(1.1));
    }
    figure("restart: peak memory", restart.daemon.peak_mebibytes()?, "MiB", Some(110.0));
    let time = idle_time(Duration::from_mins(15));
    let idle = idle(&bench, &restart.daemon, time)?;
    figure("idle: requests other than watches and the lease", idle.requests, "", Some(0.0));
    figure("idle: lists of events", idle.event_lists, "", Some(lists_in(time)));
    figure("idle: processor time", idle.processor_seconds, "s", Some(1.0));
    Ok(())
}

/// Daemons that were started one after the other when all objects existed, each until it was idle.
struct Restart {
    /// The last daemon.
    daemon: Daemon,
    /// The number of writes of all daemons.
    writes: f64,
    /// The processor time of one daemon from its start: the median.
    processor_seconds: f64,
    /// The same for the baseline build.
    baseline_seconds: Option<f64>,
}

/// How often the daemon is restarted: other programs use the same processors.
const RESTARTS: usize = 3;

/// Kills the daemon when the cluster is at rest, starts another one, and waits until it is the leader and idle;
/// [`RESTARTS`] times. With a baseline, that build is started as often, each time before the daemon.
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
    Ok(Restart {
        daemon,
        writes: written,
        processor_seconds: median(times),
        baseline_seconds: baseline.map(|_| median(baseline_times)),
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

/// The requests of the daemon while nothing changed.
pub struct Idle {
    /// The number of its requests, without watches, the lease, and lists of events.
    pub requests: f64,
    /// The number of its lists of events: one in two minutes, since the Instances of the bench wait for their machines.
    pub event_lists: f64,
    processor_seconds: f64,
}

/// The maximum number of lists of the events of one namespace in that time: one in two minutes.
pub fn lists_in(time: Duration) -> f64 {
    (time.as_secs_f64() / 120.0).ceil()
}

/// Measures the daemon for that time, while nothing changes.
pub fn idle(bench: &Bench, daemon: &Daemon, time: Duration) -> Result<Idle> {
    eprintln!("idle for {time:?} …");
    let audit = bench.cluster.audit();
    let (mark, before) = (audit.mark()?, daemon.processor_seconds()?);
    std::thread::sleep(time);
    let processor_seconds = daemon.processor_seconds()? - before;
    let is_event_list = |entry: &AuditEntry| entry.resource == "events" && entry.verb == "list";
    let (event_lists, others): (Vec<_>, Vec<_>) = audit.since(mark)?.into_iter().partition(is_event_list);
    Ok(Idle { requests: requests(&others), event_lists: requests(&event_lists), processor_seconds })
}
