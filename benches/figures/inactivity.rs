//! Rounds of checks for inactivity: many running Instances that are all in use, and a real Prometheus.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use crate::fixtures::CONFIG;
use crate::harness::{Bench, Figures, TEMPLATES, count, now, requests, uses, writes};
use crate::idle_time;
use cluster::config::only;
use cluster::prometheus::{PrometheusServer, Samples};

/// Objects that are created lazily, because together they take a gigabyte. Each comes with the path of its collection.
const COUNT: usize = 5000;
/// The idle time that the Templates allow. All Instances are checked again at this interval.
const IDLE: &str = "60s";
/// How long the daemon is measured.
const TIME: Duration = Duration::from_mins(5);
/// The time between two samples, in seconds.
const STEP: usize = 30;

/// 5,000 Instances that browsers use all the time: each minute, all of them are checked again.
pub async fn rounds(figures: &mut Figures) -> Result<()> {
    let bench = Bench::start().await?;
    for template in TEMPLATES {
        let path =
            format!("/apis/crownlabs.polito.it/v1alpha2/namespaces/workspace-bench/templates/{template}");
        bench.send("PATCH", &path, &json!({"spec": {"cleanup": {"stopAfterInactivity": IDLE}}})).await?;
    }
    eprintln!("rounds of checks: {COUNT} running Instances …");
    bench.instances(0, COUNT).await?;
    bench.settle()?;
    let prometheus = PrometheusServer::start(&samples())?;
    let mark = bench.cluster.audit().mark()?;
    let daemon = bench.daemon_with(&config(&bench, &prometheus))?;
    bench.await_leader(mark)?;
    await_round(&prometheus)?;
    daemon.await_idle()?;
    figures.add("5000 used, start: processor time", daemon.processor_seconds()?, "s", Some(2.0));
    let time = idle_time(TIME);
    eprintln!("measured for {time:?} …");
    let (mark, processor) = (bench.cluster.audit().mark()?, daemon.processor_seconds()?);
    let (asked, rounds) = (prometheus.requests()?, prometheus.requests_of("/-/healthy")?);
    std::thread::sleep(time);
    // Each round begins with this request.
    let rounds = as_float(prometheus.requests_of("/-/healthy")? - rounds);
    anyhow::ensure!(rounds >= 2.0, "{rounds} rounds in {time:?}");
    let asked = as_float(prometheus.requests()? - asked);
    let processor = daemon.processor_seconds()? - processor;
    let entries = bench.cluster.audit().since(mark)?;
    figures.add("5000 used: rounds of checks", rounds, "", None);
    figures.add("5000 used: queries in a round", asked / rounds, "", Some(60.0));
    figures.add("5000 used: processor time of a round", processor / rounds, "s", Some(2.0));
    figures.add("5000 used: requests other than watches and the lease", requests(&entries), "", Some(0.0));
    figures.add("5000 used: writes", writes(&entries), "", Some(0.0));
    figures.add("5000 used: peak memory", daemon.peak_mebibytes()?, "MiB", None);
    Ok(())
}

fn as_float(number: u64) -> f64 {
    count(usize::try_from(number).unwrap_or(usize::MAX))
}

/// Waits until a round has ended: until Prometheus receives no more requests.
fn await_round(prometheus: &PrometheusServer) -> Result<()> {
    let (begin, mut last) = (Instant::now(), 0);
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let asked = prometheus.requests()?;
        if asked > 0 && asked == last {
            return Ok(());
        }
        last = asked;
        anyhow::ensure!(begin.elapsed() < Duration::from_mins(2), "no round in two minutes");
    }
}

/// The configuration with only this loop, with mails into a folder.
fn config(bench: &Bench, prometheus: &PrometheusServer) -> String {
    format!(
        "{CONFIG}{}integrations: {{mail: {{transport: file, folder: \"{}\", from: labs@example.org}}, \
         prometheus: {{url: \"{}\", queryStep: 30s, timeout: 30s}}}}\n",
        only(&[("inactivity", "checkInterval: 30s")]),
        bench.dir.join("mails").display(),
        prometheus.url()
    )
}

/// All sources from an hour ago until an hour from now, and a request to every Instance in each step.
fn samples() -> Samples {
    let first = now().as_second() - 3_600;
    let times = (first..first + 7_200).step_by(STEP);
    uses(&times, first, (0..COUNT).map(|n| ("tenant-bench".to_owned(), format!("bench-{n:05}"))))
}
