//! The file of public keys of the bastion: many Tenants, and one change after the other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt};
use serde_json::json;

use crate::harness::{Bench, CONCURRENCY, Figures, count};
use cluster::config::only;

const TENANTS: usize = 10_000;
const CHANGES: usize = 21;

/// 10,000 Tenants with two keys each; the file is rewritten when one key changes.
pub async fn rewrite(figures: &mut Figures) -> Result<()> {
    let bench = Bench::start().await?;
    let file = bench.dir.join("keys");
    let keys = [key(&bench.dir, "ed25519")?, key(&bench.dir, "rsa")?];
    create(&bench, &keys).await?;
    let secrets = "hostKeys: {secretName: ''}, webSshKey: {secretName: ''}";
    let config = format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
server: {{metrics: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}}
leaderElection: {{enabled: false}}
{}",
        only(&[("bastion", &format!("authorizedKeysFile: {}, {secrets}", file.display()))])
    );
    let daemon = bench.daemon_with(&config)?;
    let lines = || fs::read_to_string(&file).map_or(0, |text| text.lines().count());
    let begin = Instant::now();
    // The Tenant of the fixtures has a key, too.
    while lines() != TENANTS * keys.len() + 1 {
        anyhow::ensure!(begin.elapsed() < Duration::from_mins(2), "the file has {} lines", lines());
        std::thread::sleep(Duration::from_millis(100));
    }
    daemon.await_idle()?;
    figures.add("keys of 10000 Tenants: all of them written", first_write(&bench)?, "ms", Some(100.0));
    let before = daemon.processor_seconds()?;
    let mut times = Vec::new();
    for change in 0..CHANGES {
        let inode = || fs::metadata(&file).map(|file| file.ino()).unwrap_or_default();
        let (former, some) = (inode(), &keys[..change % 2]);
        let patch = json!({"spec": {"publicKeys": some}});
        bench.send("PATCH", "/apis/crownlabs.polito.it/v1alpha2/tenants/student.00000", &patch).await?;
        let begin = Instant::now();
        while inode() == former {
            anyhow::ensure!(begin.elapsed() < Duration::from_secs(10), "the file is not rewritten");
            std::thread::sleep(Duration::from_millis(1));
        }
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let each = (daemon.processor_seconds()? - before) / count(CHANGES) * 1e3;
    times.sort_by(f64::total_cmp);
    // The daemon waits 50 ms for more changes.
    let median = times.get(CHANGES / 2).copied().unwrap_or(f64::NAN);
    figures.add("keys of 10000 Tenants: change until the file is there", median, "ms", Some(100.0));
    figures.add("keys of 10000 Tenants: processor time of a change", each, "ms", Some(100.0));
    figures.add("keys of 10000 Tenants: peak memory", daemon.peak_mebibytes()?, "MiB", Some(60.0));
    Ok(())
}

/// How long the first write of the file took, from the Tenants in memory to the disk, in milliseconds, as the log of the
/// daemon says.
fn first_write(bench: &Bench) -> Result<f64> {
    let log = fs::read_to_string(bench.dir.join("daemon.log"))?;
    let line = log.lines().find(|line| line.contains("wrote the keys of the bastion"));
    let time = line.and_then(|line| line.split("milliseconds=").nth(1)).context("the line with the time")?;
    time.split_whitespace().next().context("the time")?.parse().context("a number")
}

/// A new public key of that type.
fn key(folder: &Path, kind: &str) -> Result<String> {
    let file = folder.join(kind);
    let status = Command::new("ssh-keygen").args(["-q", "-t", kind, "-N", "", "-f"]).arg(&file).status();
    anyhow::ensure!(status.context("ssh-keygen")?.success(), "ssh-keygen failed");
    Ok(fs::read_to_string(file.with_extension("pub"))?.trim().to_owned())
}

async fn create(bench: &Bench, keys: &[String]) -> Result<()> {
    eprintln!("{TENANTS} Tenants …");
    let creations =
        (0..TENANTS).map(|n| {
            let name = format!("student.{n:05}");
            let tenant = json!({
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant", "metadata": {"name": name},
                "spec": {
                    "firstName": "Ada", "lastName": "Rossi", "email": format!("{name}@example.org"),
                    "publicKeys": keys,
                },
            });
            async move {
                bench.send("POST", "/apis/crownlabs.polito.it/v1alpha2/tenants", &tenant).await.map(drop)
            }
        });
    let mut created = stream::iter(creations).buffer_unordered(CONCURRENCY);
    while let Some(result) = created.next().await {
        result?;
    }
    Ok(())
}
