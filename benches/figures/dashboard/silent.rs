//! Browsers that do not read the response to their request, or never send one.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;

use super::browser::Browser;
use super::memory;
use super::world::{STUDENTS, World};
use crate::harness::{Daemon, Figures};

/// How many browsers there are.
const BROWSERS: usize = 2_000;
/// The minimum number of connections that are open at once. Above 4 MiB of responses that nobody takes, the dashboard
/// drops the oldest ones.
const KEPT: usize = 32;
/// The receive buffer that the kernel keeps for a browser, in bytes: the smallest that Linux allows.
const RECEIVE_BUFFER: u32 = 2_304;
/// How many style sheets one browser requests at once: more than the kernels of both sides buffer.
const STYLES: usize = 32;
/// The same for pages, which take minutes to render, and more memory.
const PAGES: usize = 4;
/// How often something changes on the pages whose streams are not read, and how far apart.
const CHANGES: usize = 40;
const APART: Duration = Duration::from_millis(500);
/// The longest time until a connection must be closed, in seconds: 30 s, with a margin because the daemon
/// closes 2,000 of them.
const LIMIT: f64 = 31.0;
/// The longest wait for the end of the connections.
const PATIENCE: Duration = Duration::from_mins(3);

/// 2,000 browsers of each kind: browsers that do not read the response, browsers that do not read a stream, and
/// browsers that send half a request head.
pub async fn silent(world: &World, figures: &mut Figures) -> Result<()> {
    // A session may have only a few streams.
    let browsers = (0..BROWSERS).map(|number| world.session(number % STUDENTS, number));
    let browsers = browsers.collect::<Result<Vec<_>>>()?;
    for kind in [Kind::Answers, Kind::Pages, Kind::Streams, Kind::Halves] {
        let daemon = world.daemon().await?;
        let page = browsers[0].get("/").await?;
        let request = |browser: &Browser| {
            let cookie = &browser.cookie;
            let head = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: labs\r\ncookie: {cookie}\r\n");
            anyhow::Ok(match kind {
                Kind::Answers => format!("{}\r\n", head(page.style()?)).repeat(STYLES),
                Kind::Pages => format!("{}\r\n", head("/")).repeat(PAGES),
                Kind::Streams => format!("{}\r\n", head(page.events()?)),
                Kind::Halves => head("/"),
            })
        };
        let requests = browsers.iter().map(request).collect::<Result<Vec<_>>>()?;
        measured(world, &daemon, kind, &requests, figures).await?;
    }
    Ok(())
}

/// The behaviour of the browsers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answers,
    Pages,
    Streams,
    Halves,
}

async fn measured(
    world: &World,
    daemon: &Daemon,
    kind: Kind,
    requests: &[String],
    figures: &mut Figures,
) -> Result<()> {
    let name = match kind {
        Kind::Answers => "2000 take no answer",
        Kind::Pages => "2000 take no page",
        Kind::Streams => "2000 take nothing of a stream",
        Kind::Halves => "2000 send half a head",
    };
    eprintln!("dashboard: {name} …");
    let (files, before) = (open_files(daemon)?, memory(daemon)?);
    let mut browsers = Vec::new();
    for request in requests {
        browsers.push(silence(world.port(), request).await?);
    }
    let begin = Instant::now();
    let most = open_files(daemon)?;
    let least = files + if kind == Kind::Streams { BROWSERS / 2 } else { KEPT };
    ensure!(most >= least, "only {most} files are open");
    if kind == Kind::Streams {
        // The kernels buffer everything that a stream sends within minutes, so only its memory is measured.
        for number in 0..CHANGES {
            world.change_template(number).await?;
            sleep(APART).await;
        }
        figures.add(format!("{name}: memory"), daemon.peak_mebibytes()? - before, "MiB", Some(64.0));
        return Ok(());
    }
    while open_files(daemon)? > files && begin.elapsed() < PATIENCE {
        sleep(Duration::from_millis(20)).await;
    }
    let left = open_files(daemon)?.saturating_sub(files);
    eprintln!("  {most} files were open, {left} more than before are");
    // The last page is rendered long after the first one, and half a head does not count as a request yet.
    let limit = (kind == Kind::Answers).then_some(LIMIT);
    figures.add(format!("{name}: memory"), daemon.peak_mebibytes()? - before, "MiB", Some(64.0));
    figures.add(format!("{name}: ended after"), begin.elapsed().as_secs_f64(), "s", limit);
    drop(browsers);
    Ok(())
}

/// A connection that sends this request and reads nothing.
async fn silence(port: u16, request: &str) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    let mut stream = socket.connect(([127, 0, 0, 1], port).into()).await?;
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// The number of open files of the daemon. The browsers read nothing, so they do not notice the end of their
/// connections.
fn open_files(daemon: &Daemon) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{}/fd", daemon.child.id()))?.count())
}
