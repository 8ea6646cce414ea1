//! The API server is stopped for a minute (SIGSTOP) while students open pages: it accepts connections and does not
//! respond.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::browser::{Browser, Stream};
use super::world::World;
use crate::harness::Figures;

/// The students who open `/`, and those with an open page.
const VISITORS: usize = 300;
const OPEN: usize = 100;
/// How long the API server is stopped.
const STOPPED: Duration = Duration::from_mins(1);
/// The time between two visits of a student.
const APART: Duration = Duration::from_secs(1);
/// The longest time that is measured.
const PATIENCE: Duration = Duration::from_mins(2);

/// How long `/` takes while the API server is stopped, how soon open pages notice it, and how soon `/` is right again.
pub async fn stopped(world: &World, figures: &mut Figures) -> Result<()> {
    eprintln!("dashboard: the API server is stopped …");
    let _daemon = world.daemon().await?;
    let browsers = (0..VISITORS).map(|number| world.browser(number)).collect::<Result<Vec<_>>>()?;
    let mut pages = Vec::new();
    for (browser, number) in browsers.iter().zip(0..) {
        let page = browser.get("/").await?;
        if number < OPEN {
            pages.push(browser.listen(&page).await?);
        }
    }
    let (returned, returns) = watch::channel(None);
    let (begin, process) = (Instant::now(), Stopped::new(world)?);
    let visits = try_join_all(browsers.iter().map(|browser| visits(browser, returns.clone())));
    let noticed = noticed(&mut pages, "silent", begin);
    let outage = async {
        let silent = timeout(STOPPED, noticed).await.context("an open page does not notice it")??;
        sleep(STOPPED.saturating_sub(begin.elapsed())).await;
        drop(process);
        returned.send_replace(Some(Instant::now()));
        anyhow::Ok(silent)
    };
    let (visits, silent) = tokio::try_join!(visits, outage)?;
    let longest = visits.iter().map(|visit| visit.longest).max().unwrap_or_default();
    let right = visits.iter().map(|visit| visit.right).max().unwrap_or_default();
    figures.add("API server stopped: noticed by open pages", silent.as_secs_f64(), "s", Some(10.0));
    figures.add("API server stopped: `/`: longest", longest.as_secs_f64(), "s", Some(12.0));
    figures.add("API server stopped: right after its return", right.as_secs_f64(), "s", Some(10.0));
    Ok(())
}

/// The visits of a student.
struct Visits {
    /// The longest time of a response.
    longest: Duration,
    /// The time from the return of the API server until a page is right.
    right: Duration,
}

/// Opens `/` until it is right after the return of the API server.
async fn visits(browser: &Browser, returns: watch::Receiver<Option<Instant>>) -> Result<Visits> {
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    loop {
        let begin = Instant::now();
        let page = browser.get("/").await?;
        longest = longest.max(begin.elapsed());
        if let Some(returned) = *returns.borrow()
            && !page.is_old()
        {
            return Ok(Visits { longest, right: returned.elapsed() });
        }
        ensure!(start.elapsed() < PATIENCE, "a page is not right again");
        sleep(APART).await;
    }
}

/// Returns the time from `begin` until all pages have received an event.
async fn noticed(pages: &mut [Stream], event: &str, begin: Instant) -> Result<Duration> {
    try_join_all(pages.iter_mut().map(|page| page.event(event))).await?;
    Ok(begin.elapsed())
}

/// The stopped API server, which continues when this is dropped.
struct Stopped(String);

impl Stopped {
    fn new(world: &World) -> Result<Self> {
        // The API server starts after etcd.
        let process = world.bench.cluster.process_ids().get(1).context("the API server")?.to_string();
        signal("STOP", &process)?;
        Ok(Self(process))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Err(error) = signal("CONT", &self.0) {
            eprintln!("{error:#}");
        }
    }
}

fn signal(name: &str, process: &str) -> Result<()> {
    let status = Command::new("kill").args(["-s", name, process]).status()?;
    ensure!(status.success(), "kill -s {name} {process}: {status}");
    Ok(())
}
