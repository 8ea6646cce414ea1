//! The dashboard: how fast its pages are, what 1,000 open pages cost, and browsers that take nothing.
//!
//! A browser here is a client that sends what the script of a live page sends, when it sends it: it opens the stream of its page,
//! and fetches the page again upon each event. No loop but the dashboard runs, so a machine that is started stays as it is written.

mod browser;
mod crowd;
mod one;
mod silent;
mod world;

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::harness::{Daemon, Figures, count};
use world::World;

/// How many Instances the stores have at the end.
const INSTANCES: usize = 10_000;

/// All figures of the dashboard.
pub async fn pages(figures: &mut Figures) -> Result<()> {
    let world = World::make().await?;
    let daemon = world.daemon().await?;
    let without = daemon.peak_mebibytes()?;
    figures.add("dashboard: peak memory without pages", without, "MiB", None);
    one::one(&world, figures).await?;
    // Another process has no tokens in memory.
    drop(daemon);
    let daemon = world.daemon().await?;
    crowd::crowd(&world, &daemon, figures).await?;
    drop(daemon);
    silent::silent(&world, figures).await?;
    stores(&world, without, figures).await
}

/// What the stores of 10,000 Instances take: the difference to the memory without them.
async fn stores(world: &World, without: f64, figures: &mut Figures) -> Result<()> {
    eprintln!("{INSTANCES} Instances …");
    world.bench.instances(0, INSTANCES).await?;
    let daemon = world.daemon().await?;
    daemon.await_idle()?;
    let more = daemon.peak_mebibytes()? - without;
    figures.add("10000 Instances: peak memory more than without", more, "MiB", Some(40.0));
    Ok(())
}

/// The value that 95 % of these do not exceed.
fn most(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 95 / 100).copied().unwrap_or(f64::NAN)
}

/// A time in milliseconds.
fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// The memory of the daemon now, in MiB.
fn memory(daemon: &Daemon) -> Result<f64> {
    daemon.usage().mebibytes("VmRSS")
}

/// The greatest of some numbers.
fn greatest(numbers: impl Iterator<Item = usize>) -> Result<f64> {
    let numbers: Vec<usize> = numbers.collect();
    ensure!(!numbers.is_empty(), "nothing was counted");
    Ok(count(numbers.into_iter().max().unwrap_or_default()))
}
