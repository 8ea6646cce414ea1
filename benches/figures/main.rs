//! `make bench`: the figures of the README, measured on a real control plane on this machine.
//!
//! Requests are counted from the API server's audit log, processor time and peak memory are read
//! from `/proc`. The floor is a loader that sends the needed writes, as the same `ServiceAccount`, and
//! does nothing else. Before each measurement everybody else's work (the controller manager's roll-outs
//! and endpoints) has come to rest. Nodes and machines are not played here: phases that change by
//! themselves would be counted as ours.

#[path = "../../tests/cluster/mod.rs"]
mod cluster;

mod bed;
mod exposure;
mod instances;
mod tenants;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use bed::Figure;
use serde_json::{Value, json};

/// How long nothing may happen; `BENCH_IDLE=3600` for the whole hour.
pub fn idle_time() -> Duration {
    let seconds = std::env::var("BENCH_IDLE").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(120))
}

fn main() -> Result<()> {
    // `cargo test --benches` asks for a list; there are no tests here.
    if std::env::args().any(|argument| argument == "--list" || argument == "--test") {
        return Ok(());
    }
    // `cargo bench --bench figures -- 600` measures that part alone.
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut figures = Vec::new();
    runtime.block_on(async {
        if wanted("600") {
            instances::cold_600(&mut figures).await?;
        }
        if wanted("tenants") {
            tenants::cold(&mut figures).await?;
        }
        if wanted("keycloak") {
            tenants::with_keycloak(&mut figures).await?;
        }
        if wanted("exposure") {
            exposure::one_more(&mut figures).await?;
        }
        if wanted("2400") {
            instances::cold_2400(&mut figures).await?;
        }
        anyhow::Ok(())
    })?;
    report(&figures)
}

fn report(figures: &[Figure]) -> Result<()> {
    println!("\n{:<56} {:>10} {:>10}", "work", "measured", "at most");
    for Figure { work, value, unit, limit } in figures {
        let limit_text = limit.map_or_else(|| "-".to_owned(), |limit| format!("{limit:.2} {unit}"));
        let mark = if limit.is_some_and(|limit| *value > limit) { "  MISSED" } else { "" };
        println!("{work:<56} {:>10} {limit_text:>10}{mark}", format!("{value:.2} {unit}"));
    }
    let json: Vec<Value> = figures
        .iter()
        .map(|f| json!({"work": f.work, "value": f.value, "unit": f.unit, "limit": f.limit}))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("instances.json"), format!("{:#}\n", Value::from(json)))?;
    println!("\nas JSON: target/bench/figures.json");
    Ok(())
}
