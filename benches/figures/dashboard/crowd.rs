//! 1,000 students at the same time, each with an open page.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::{join_all, try_join_all};
use jiff::{Timestamp, Unit};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::browser::{Browser, Page, Stream};
use super::world::{STUDENTS, World, namespace};
use super::{greatest, memory, milliseconds, most};
use crate::harness::{AGENT, Daemon, Figures, Usage, count, now};
use crate::idle_time;
use cluster::audit::{AuditEntry, by_agent};

/// All of them arrive within this time.
const MINUTE: Duration = Duration::from_mins(1);
/// How long the pages are idle, unless `BENCH_IDLE` says otherwise.
const IDLE: Duration = Duration::from_mins(3);
/// A page without a change for this long is complete: four times the minimum interval between two updates.
const QUIET: Duration = Duration::from_secs(2);
/// The request that shows whether the API server answers.
const PROBE: &str = "/livez";
/// The Template of the machines that are started.
const TEMPLATE: &str = "vm";

/// A student with a page.
struct Open {
    browser: Browser,
    page: Page,
    stream: Option<Stream>,
}

/// All figures of 1,000 pages.
pub async fn crowd(world: &World, daemon: &Daemon, figures: &mut Figures) -> Result<()> {
    let before = memory(daemon)?;
    let pages = arrive(world, figures).await?;
    sleep(QUIET).await;
    daemon.await_idle()?;
    let with = memory(daemon)?;
    figures.add("1000 pages: memory", with, "MiB", Some(64.0));
    figures.add("1000 pages: memory more than without", with - before, "MiB", None);
    idle(world, daemon, figures)?;
    let pages = again(pages, false).await?;
    let alone = start(world, pages).await?;
    let pages = again(alone.pages, true).await?;
    daemon.await_idle()?;
    let started = start(world, pages).await?;
    figures.add("1000 starts: errors", alone.errors + started.errors, "", Some(0.0));
    figures.add("1000 starts: reads of one, without open pages", alone.reads, "", None);
    figures.add("1000 starts: reads of one", started.reads, "", Some(8.0));
    figures.add("1000 starts: accepted → seen: 95 %", started.seen, "ms", Some(1_000.0));
    figures.add("1000 starts: accepted → seen, without open pages: 95 %", alone.seen, "ms", None);
    let more = started.processor_seconds - alone.processor_seconds;
    figures.add("1000 starts: processor time of the API server more", more, "s", Some(10.0));
    figures.add("1000 starts: processor time of the API server, without", alone.processor_seconds, "s", None);
    figures.add("1000 pages: peak memory", daemon.peak_mebibytes()?, "MiB", Some(64.0));
    Ok(())
}

/// All students open their page within a minute, and leave it open. No token is cached.
async fn arrive(world: &World, figures: &mut Figures) -> Result<Vec<Open>> {
    eprintln!("dashboard: {STUDENTS} people come …");
    let browsers = (0..STUDENTS).map(|number| world.browser(number)).collect::<Result<Vec<_>>>()?;
    let mark = world.bench.cluster.audit().mark()?;
    let mut coming: Vec<JoinHandle<Result<(f64, Open)>>> = Vec::new();
    let begin = Instant::now();
    for (browser, number) in browsers.into_iter().zip(0..) {
        tokio::time::sleep_until((begin + MINUTE * number / 1_000).into()).await;
        coming.push(tokio::spawn(async move {
            let begin = Instant::now();
            let page = browser.get("/").await?;
            let time = milliseconds(begin.elapsed());
            let stream = Some(browser.listen(&page).await?);
            Ok((time, Open { browser, page, stream }))
        }));
    }
    let (mut times, mut pages, mut errors) = (Vec::new(), Vec::new(), 0);
    for come in join_all(coming).await {
        match come? {
            Ok((time, open)) => {
                times.push(time);
                pages.push(open);
            }
            Err(error) => {
                eprintln!("{error:#}");
                errors += 1;
            }
        }
    }
    let entries = world.bench.cluster.audit().since(mark)?;
    figures.add("1000 people come: errors", count(errors), "", Some(0.0));
    figures.add("1000 people come: reads of one", reads(&entries)?, "", Some(7.0));
    figures.add("1000 people come: `/`: 95 %", most(times), "ms", Some(500.0));
    ensure!(errors == 0, "{errors} people have no page");
    Ok(pages)
}

/// The most requests that one student has sent, without those that create an object.
fn reads(entries: &[AuditEntry]) -> Result<f64> {
    let mut by_user: BTreeMap<&str, usize> = BTreeMap::new();
    let students = entries.iter().filter(|entry| entry.user.starts_with("student-"));
    // A review is a read, although it is sent as an object to be created.
    for entry in students.filter(|entry| entry.verb != "create" || entry.resource != "instances") {
        *by_user.entry(&entry.user).or_default() += 1;
    }
    greatest(by_user.into_values())
}

/// The cost of the pages while nothing changes.
fn idle(world: &World, daemon: &Daemon, figures: &mut Figures) -> Result<()> {
    let time = idle_time(IDLE);
    eprintln!("dashboard: idle for {time:?} …");
    let audit = world.bench.cluster.audit();
    let (mark, before) = (audit.mark()?, daemon.processor_seconds()?);
    std::thread::sleep(time);
    let spent = daemon.processor_seconds()? - before;
    let entries = audit.since(mark)?;
    let requests = by_agent(&entries, AGENT).filter(|entry| entry.verb != "watch");
    let (probes, requests): (Vec<_>, Vec<_>) = requests.partition(|entry| entry.request_uri == PROBE);
    figures.add("1000 pages idle: requests other than watches", count(requests.len()), "", Some(0.0));
    let in_a_minute = count(probes.len()) * 60.0 / time.as_secs_f64();
    figures.add("1000 pages idle: probes in a minute", in_a_minute, "", Some(31.0));
    let in_an_hour = spent / time.as_secs_f64() * 3_600.0;
    figures.add("1000 pages idle: processor time in an hour", in_an_hour, "s", Some(5.0));
    Ok(())
}

/// All students reload their page, so that their tokens and rights are cached; with or without its stream.
async fn again(pages: Vec<Open>, is_live: bool) -> Result<Vec<Open>> {
    let mut opened = Vec::new();
    for Open { browser, .. } in pages {
        let page = browser.get("/").await?;
        let stream = if is_live { Some(browser.listen(&page).await?) } else { None };
        opened.push(Open { browser, page, stream });
    }
    sleep(QUIET).await;
    // Streams that were opened within two seconds of the read of their page may have received older changes.
    try_join_all(opened.into_iter().map(drained)).await
}

/// A page that has received all changes.
async fn drained(mut open: Open) -> Result<Open> {
    while let Some(stream) = &mut open.stream {
        match timeout(QUIET, stream.changed()).await {
            Ok(changed) => {
                changed?;
                open.page = open.browser.fetch().await?;
            }
            Err(_) => break,
        }
    }
    Ok(open)
}

/// The cost when all students start a machine at once.
struct Started {
    pages: Vec<Open>,
    /// How many students have not seen their machine.
    errors: f64,
    /// The most reads by one student.
    reads: f64,
    /// The milliseconds from the acceptance of a machine until it is on its student's page: 95 %.
    seen: f64,
    /// The processor time of the API server.
    processor_seconds: f64,
}

async fn start(world: &World, pages: Vec<Open>) -> Result<Started> {
    eprintln!("dashboard: {STUDENTS} machines are started …");
    let bench = &world.bench;
    bench.settle()?;
    let (audit, server) = (bench.cluster.audit(), Usage::of_api_server(&bench.cluster)?);
    let (mark, before) = (audit.mark()?, server.processor_seconds()?);
    let starting: Vec<_> = pages.into_iter().map(|open| tokio::spawn(started(open))).collect();
    let (mut pages, mut seen) = (Vec::new(), Vec::new());
    let mut errors = 0;
    for (done, number) in join_all(starting).await.into_iter().zip(0..) {
        match done? {
            Ok((open, at)) => {
                pages.push(open);
                seen.push((number, at));
            }
            Err(error) => {
                eprintln!("{error:#}");
                errors += 1;
            }
        }
    }
    let entries = audit.since(mark)?;
    let mut accepted = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.verb == "create" && entry.resource == "instances") {
        accepted.insert(entry.namespace.clone(), entry.stage_timestamp);
    }
    let mut times = Vec::new();
    for (number, seen) in seen {
        let accepted = accepted.get(&namespace(number)).context("a machine is not accepted")?;
        times.push((seen - *accepted).total(Unit::Millisecond)?);
    }
    let processor_seconds = server.processor_seconds()? - before;
    Ok(Started {
        pages,
        errors: count(errors),
        reads: reads(&entries)?,
        seen: most(times),
        processor_seconds,
    })
}

/// A student starts a machine: the form leads to a page that shows the machine. The page stays open until nothing
/// changes any more.
async fn started(open: Open) -> Result<(Open, Timestamp)> {
    let Open { browser, page, stream } = open;
    let (name, is_live) = (page.new_name(TEMPLATE)?.to_owned(), stream.is_some());
    // The end of the machine's address.
    let sign = format!("/{name}\"");
    let page = browser.start(TEMPLATE, &name).await?;
    drop(stream);
    ensure!(page.0.contains(&sign), "a machine that was started is not on its page: {}", page.notice());
    let seen = now();
    let stream = if is_live { Some(browser.listen(&page).await?) } else { None };
    Ok((drained(Open { browser, page, stream }).await?, seen))
}
