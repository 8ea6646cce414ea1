//! `make bench`: the figures of `docs/performance.md`, measured on a real control plane on this machine. `make load`
//! measures only the part `load`, and writes its figures into that page.
//!
//! Requests are counted in the API server's audit log; processor time and peak memory are read from `/proc`. The floor
//! is a loader that sends only the writes that are needed, with the daemon's `ServiceAccount`. Before each measurement
//! the bench waits until the controller manager has finished its own work (roll-outs, endpoints). Nodes and virtual
//! machines are not simulated here, because phases would change during the measurement.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it ends by a panic")]

mod capture;
mod dashboard;
mod exposure;
mod fixtures;
mod floor;
mod harness;
mod hostile;
mod inactivity;
mod instances;
mod keys;
mod load;
mod machine_login;
mod metrics;
mod pods;
mod tenants;
mod web_ssh;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use harness::{Figure, Figures};
use serde_json::{Value, json};

/// How long the idle daemon is measured: `BENCH_IDLE` in seconds, else `default`.
pub fn idle_time(default: Duration) -> Duration {
    number_from("BENCH_IDLE").map_or(default, Duration::from_secs)
}

/// The number of Instances of the part `scale`: `BENCH_SCALE`, else 10,000.
fn scale() -> usize {
    number_from("BENCH_SCALE").and_then(|number| number.try_into().ok()).unwrap_or(10_000)
}

/// A number in an environment variable.
pub fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

fn main() -> Result<()> {
    // `cargo test --benches` asks for the list of tests; the list is empty.
    if std::env::args().any(|argument| argument == "--list" || argument == "--test") {
        return Ok(());
    }
    // `cargo bench --bench figures -- 600` measures only that part.
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut figures = Figures::default();
    runtime.block_on(measure(&parts, &mut figures))?;
    // The figures of `make bench` stay as they are when only `load` is measured: that part writes its own file.
    report(&figures.0, parts != ["load"])
}

/// Measures these parts, or all.
async fn measure(parts: &[String], figures: &mut Figures) -> Result<()> {
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let baseline = std::env::var_os("BENCH_BASELINE").map(PathBuf::from);
    if wanted("600") {
        instances::cold_600(figures, baseline.as_deref()).await?;
        instances::with_chart(figures).await?;
    }
    if wanted("tenants") {
        tenants::cold(figures).await?;
        tenants::with_chart(figures).await?;
    }
    if wanted("keycloak") {
        tenants::with_keycloak(figures).await?;
    }
    if wanted("exposure") {
        exposure::one_more(figures).await?;
    }
    if wanted("inactivity") {
        inactivity::rounds(figures).await?;
    }
    if wanted("capture") {
        capture::load(figures)?;
    }
    if wanted("pods") {
        pods::many(figures).await?;
    }
    if wanted("webssh") {
        web_ssh::terminals(figures).await?;
    }
    if wanted("login") {
        machine_login::requests(figures).await?;
    }
    if wanted("keys") {
        keys::rewrite(figures).await?;
    }
    if wanted("metrics") {
        metrics::containers(figures).await?;
    }
    if wanted("hostile") {
        hostile::start(figures).await?;
    }
    if wanted("dashboard") {
        dashboard::pages(figures).await?;
    }
    if wanted("2400") {
        instances::cold_2400(figures).await?;
    }
    if wanted("scale") {
        instances::scale(figures, scale(), baseline.as_deref()).await?;
    }
    // It takes hours, so it must be requested by name.
    if parts.iter().any(|part| part == "load") {
        load::load(figures).await?;
    }
    Ok(())
}

/// Prints the figures as a table and, if requested, writes them as JSON.
fn report(figures: &[Figure], is_written: bool) -> Result<()> {
    println!("\n{:<56} {:>10} {:>10}", "work", "measured", "at most");
    for Figure { work, value, unit, limit } in figures {
        let limit_text = limit.map_or_else(|| "-".to_owned(), |limit| format!("{limit:.2} {unit}"));
        let mark = if limit.is_some_and(|limit| *value > limit) { "  MISSED" } else { "" };
        println!("{work:<56} {:>10} {limit_text:>10}{mark}", format!("{value:.2} {unit}"));
    }
    if !is_written {
        return Ok(());
    }
    let json: Vec<Value> = figures
        .iter()
        .map(|f| json!({"work": f.work, "value": f.value, "unit": f.unit, "limit": f.limit}))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("figures.json"), format!("{:#}\n", Value::from(json)))?;
    println!("\nas JSON: target/bench/figures.json");
    Ok(())
}
