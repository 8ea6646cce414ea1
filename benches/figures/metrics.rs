//! The cost of measuring a hundred containers on a real containerd.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crownlabs::testing::cri::{Cri, DEADLINE};

use crate::harness::{Daemon, Figures, count};
use cluster::config::only;
use cluster::containerd::{Containerd, Pod};
use cluster::network::Namespace;
use cluster::processes::tail;

/// The number of pods. Each has one container.
const COUNT: usize = 100;
/// The number of measurements.
const ROUNDS: u64 = 200;
/// The port of the metrics.
const PORT: u16 = 18_086;
/// The longest wait for a condition.
const PATIENCE: Duration = Duration::from_mins(5);

/// 100 containers of Instances: the processor time of one measurement, and memory.
pub async fn containers(figures: &mut Figures) -> Result<()> {
    let namespace = Namespace::new();
    let node = Containerd::start(&namespace, 1)?;
    eprintln!("{COUNT} containers …");
    for at in 0..COUNT {
        let pod = Pod::new("tenant-bench", &format!("pod-{at}"));
        let pod = pod.with_label("crownlabs.polito.it/instance", &format!("lab-{at}"));
        let sandbox = node.run_pod(&pod).await?;
        node.run_container(&pod, &sandbox, "app", &["0"]).await?;
    }
    let stats = Cri::new(node.socket(), DEADLINE).list_container_stats().await?;
    ensure!(stats.len() == COUNT, "{} containers", stats.len());
    let (daemon, log) = daemon(&node)?;
    rounds(2, &log).await?;
    let (first, before) = (rounds(2, &log).await?, daemon.processor_seconds()?);
    let last = rounds(first + ROUNDS, &log).await?;
    let spent = (daemon.processor_seconds()? - before) * 1_000.0 / count(usize::try_from(last - first)?);
    figures.add("100 containers: processor time of a measurement", spent, "ms", Some(5.0));
    figures.add("100 containers: peak memory", daemon.peak_mebibytes()?, "MiB", Some(48.0));
    Ok(())
}

/// Starts the daemon with only that loop, which measures ten times a second. Returns the log as well.
fn daemon(node: &Containerd) -> Result<(Daemon, PathBuf)> {
    let keys = format!("listen: \"\", updatePeriod: 100ms, runtimeEndpoint: {}", node.socket().display());
    let config = format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
leaderElection: {{enabled: false}}
server: {{health: \"\", metrics: \"127.0.0.1:{PORT}\"}}
{}",
        only(&[("instanceMetrics", &keys)])
    );
    let (file, log) = (node.dir().join("crownlabs.yaml"), node.dir().join("crownlabs.log"));
    fs::write(&file, config)?;
    let child = Command::new(env!("CARGO_BIN_EXE_crownlabs"))
        .args(["run", "--config"])
        .arg(&file)
        .stderr(File::create(&log)?)
        .spawn()?;
    Ok((Daemon { child }, log))
}

/// Waits for this many measurements, and returns how many there were.
async fn rounds(wanted: u64, log: &Path) -> Result<u64> {
    let begin = Instant::now();
    loop {
        let page = page().unwrap_or_default();
        let line = "cri_client_requests_total{operation=\"ListContainerStats\",code=\"Ok\"} ";
        let found = page.lines().find_map(|found| found.strip_prefix(line)?.parse().ok()).unwrap_or(0);
        if found >= wanted {
            return Ok(found);
        }
        ensure!(begin.elapsed() < PATIENCE, "{found} measurements: {}", tail(log, 15));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The page of metrics.
fn page() -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", PORT))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
