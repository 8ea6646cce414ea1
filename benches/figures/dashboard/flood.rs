//! A session that floods the dashboard with requests and streams, and the pages of others meanwhile.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::browser::{Browser, Page};
use super::world::World;
use super::{milliseconds, most};
use crate::harness::Figures;

/// The connections of the session, each of which opens `/` again as soon as it is answered.
const CONNECTIONS: usize = 300;
/// The streams that the session opens, each again as soon as it ends.
const STREAMS: usize = 2_000;
/// The other students.
const OTHERS: std::ops::Range<usize> = 1..21;
/// How often each of them opens `/`, and how far apart.
const VISITS: usize = 30;
const APART: Duration = Duration::from_secs(1);

/// How long `/` takes for others, without and with the flood.
pub async fn flood(world: &World, figures: &mut Figures) -> Result<()> {
    eprintln!("dashboard: one session floods it …");
    let daemon = world.daemon().await?;
    let others = OTHERS.map(|number| world.browser(number)).collect::<Result<Vec<_>>>()?;
    for browser in &others {
        browser.get("/").await?;
    }
    let undisturbed = visits(&others).await?;
    let browser = world.browser(0)?;
    let page = browser.get("/").await?;
    let requests = (0..CONNECTIONS).map(|_| tokio::spawn(requests(browser.clone())));
    let streams = (0..STREAMS).map(|_| tokio::spawn(streams(browser.clone(), page.clone())));
    let flood: Vec<JoinHandle<()>> = requests.chain(streams).collect();
    sleep(APART).await;
    let disturbed = visits(&others).await?;
    flood.iter().for_each(JoinHandle::abort);
    figures.add("one session floods: `/` of others: 95 %", disturbed, "ms", None);
    figures.add("one session floods: `/` of others, before: 95 %", undisturbed, "ms", None);
    figures.add("one session floods: times as long", disturbed / undisturbed, "", Some(2.0));
    figures.add("one session floods: peak memory", daemon.peak_mebibytes()?, "MiB", Some(64.0));
    Ok(())
}

/// All students open `/` several times. Returns the milliseconds of 95 %. Fails if one of them gets an error.
async fn visits(browsers: &[Browser]) -> Result<f64> {
    let each = browsers.iter().zip(0_u32..).map(|(browser, number)| async move {
        // They do not come at the same time.
        sleep(APART * number / 20).await;
        let mut times = Vec::new();
        for _ in 0..VISITS {
            let begin = Instant::now();
            browser.get("/").await?;
            times.push(milliseconds(begin.elapsed()));
            sleep(APART).await;
        }
        anyhow::Ok(times)
    });
    Ok(most(try_join_all(each).await?.concat()))
}

/// Opens `/` until the task is aborted. The dashboard refuses most of the requests.
async fn requests(browser: Browser) {
    loop {
        let _ = browser.get("/").await;
    }
}

/// Opens a stream, and again when it ends or is refused.
async fn streams(browser: Browser, page: Page) {
    loop {
        if let Ok(mut stream) = browser.listen(&page).await {
            while stream.changed().await.is_ok() {}
        }
    }
}
