//! One page on an idle machine.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::time::{sleep, timeout};

use super::world::World;
use super::{milliseconds, most};
use crate::harness::{Figures, count};

/// How often a page is opened, and how many changes are timed.
const VISITS: usize = 200;
const CHANGES: usize = 60;
/// The sessions that take turns, so that none exceeds its limit.
const SESSIONS: usize = 4;
/// The time between a change that was seen and the next one: longer than the minimum interval between two
/// updates of a page.
const PAUSE: Duration = Duration::from_millis(650);
/// How long a page is changed without a pause.
const BUSY: Duration = Duration::from_secs(5);
/// The longest time that a change may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long `/` with ten machines takes, how long it takes until a change is seen, and how often a page that changes
/// all the time is fetched.
pub async fn one(world: &World, figures: &mut Figures) -> Result<()> {
    eprintln!("dashboard: one page …");
    let browsers = (0..SESSIONS).map(|number| world.session(0, number)).collect::<Result<Vec<_>>>()?;
    for browser in &browsers {
        browser.get("/").await?;
    }
    let mut times = Vec::new();
    for visit in 0..VISITS {
        let begin = Instant::now();
        browsers[visit % SESSIONS].get("/").await?;
        times.push(milliseconds(begin.elapsed()));
    }
    figures.add("dashboard: `/` with 10 machines: 95 %", most(times), "ms", Some(120.0));
    let browser = &browsers[0];
    let mut stream = browser.listen(&browser.get("/").await?).await?;
    // Events of the last writes may still arrive.
    while let Ok(changed) = timeout(PAUSE * 4, stream.changed()).await {
        changed?;
    }
    let mut times = Vec::new();
    for number in 0..CHANGES {
        let url = format!("https://machines.example.org/{number}");
        let begin = Instant::now();
        world.write_status(&url).await?;
        let seen = async {
            loop {
                stream.changed().await?;
                if browser.fetch().await?.0.contains(&format!("href=\"{url}\"")) {
                    return anyhow::Ok(());
                }
            }
        };
        timeout(PATIENCE, seen).await.with_context(|| format!("change {number} is not seen"))??;
        times.push(milliseconds(begin.elapsed()));
        sleep(PAUSE).await;
    }
    figures.add("dashboard: a status is sent → seen: 95 %", most(times), "ms", Some(300.0));
    let (begin, mut updates) = (Instant::now(), 0);
    let changing = async {
        for number in 0.. {
            if begin.elapsed() >= BUSY {
                break;
            }
            world.write_status(&format!("https://machines.example.org/busy/{number}")).await?;
        }
        anyhow::Ok(())
    };
    let updating = async {
        loop {
            stream.changed().await?;
            browser.fetch().await?;
            updates += 1;
        }
    };
    tokio::select! {
        changed = changing => changed?,
        ended = updating => return ended,
    }
    // The first update comes at once, then two each second.
    figures.add("dashboard: updates in 5 s of changes", count(updates), "", Some(11.0));
    Ok(())
}
