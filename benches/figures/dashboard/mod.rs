//! The dashboard: how fast its pages are, the cost of 1,000 open pages, a class of 1,000 students, browsers that do not read
//! what they are sent, a session that floods it, and an API server that is stopped.
//!
//! A browser here is a client that sends the same requests as the script of a live page, at the same times: it opens
//! the stream of its page, and fetches the page again upon each event. No loop but the dashboard runs, so a started
//! machine stays as it is written.

mod browser;
mod class;
mod consoles;
mod crowd;
mod flood;
mod one;
mod silent;
mod stopped;
mod terminals;
mod world;

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::harness::{Daemon, Figures, count};
use world::World;

/// The number of Instances in the stores at the end.
const INSTANCES: usize = 10_000;

/// All figures of the dashboard.
pub async fn pages(figures: &mut Figures) -> Result<()> {
    let world = World::make().await?;
    let daemon = world.daemon().await?;
    let without = daemon.peak_mebibytes()?;
    figures.add("dashboard: peak memory without pages", without, "MiB", None);
    one::one(&world, figures).await?;
    // Another process has no cached tokens.
    drop(daemon);
    let daemon = world.daemon().await?;
    crowd::crowd(&world, &daemon, figures).await?;
    drop(daemon);
    terminals::terminals(&world, figures).await?;
    consoles::consoles(&world, figures).await?;
    class::class(&world, figures).await?;
    silent::silent(&world, figures).await?;
    flood::flood(&world, figures).await?;
    stopped::stopped(&world, figures).await?;
    stores(&world, without, figures).await
}

/// The memory of the stores with 10,000 Instances: the difference from the memory without them.
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

/// The largest of some numbers.
fn greatest(numbers: impl Iterator<Item = usize>) -> Result<f64> {
    let numbers: Vec<usize> = numbers.collect();
    ensure!(!numbers.is_empty(), "nothing was counted");
    Ok(count(numbers.into_iter().max().unwrap_or_default()))
}
