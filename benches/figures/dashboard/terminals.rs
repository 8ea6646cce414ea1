//! Many open terminals, with a server in place of web SSH. `benches/figures/web_ssh.rs` measures the other half.

use anyhow::{Context, Result, bail};
use futures::{SinkExt, StreamExt};
use http::Request;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

use super::world::World;
use crate::harness::{Figures, count};

/// How many terminals are open, and how many of them one session has.
const TERMINALS: usize = 500;
const OF_SESSION: usize = 10;
/// The output that one terminal gets at the end: its messages, and the length of each in bytes.
const MESSAGES: usize = 20_000;
const LENGTH: usize = 1_000;
/// How many messages a page confirms at once, see `assets/terminal.js`.
const CONFIRMED: usize = 64;
/// The input that causes this output.
const MUCH: &str = "much";

type Terminal = WebSocketStream<TcpStream>;

/// 500 terminals: memory, and the processor time of opening one and of its output.
pub async fn terminals(world: &World, figures: &mut Figures) -> Result<()> {
    eprintln!("dashboard: {TERMINALS} terminals …");
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("ws://{}/webssh", listener.local_addr()?);
    let web_ssh = tokio::spawn(web_ssh(listener));
    let daemon = world.daemon_with(&format!(", webSshUrl: \"{url}\"")).await?;
    let browsers =
        (0..TERMINALS / OF_SESSION).map(|number| world.browser(number)).collect::<Result<Vec<_>>>()?;
    for browser in &browsers {
        browser.get("/").await?;
    }
    let before = daemon.processor_seconds()?;
    let mut open = Vec::new();
    for browser in &browsers {
        for _ in 0..OF_SESSION {
            open.push(terminal(world.port(), &browser.cookie).await?);
        }
    }
    let spent = (daemon.processor_seconds()? - before) * 1_000.0 / count(TERMINALS);
    figures.add("500 terminals in the dashboard: processor time of opening one", spent, "ms", Some(20.0));
    figures.add("500 terminals in the dashboard: peak memory", daemon.peak_mebibytes()?, "MiB", Some(64.0));
    let first = open.first_mut().context("a terminal")?;
    let before = daemon.processor_seconds()?;
    first.send(Message::text(MUCH)).await?;
    for number in 1..=MESSAGES {
        output(first).await?;
        if number % CONFIRMED == 0 {
            first.send(Message::text(format!("{{\"ack\":{CONFIRMED}}}"))).await?;
        }
    }
    let mebibytes = count(MESSAGES * LENGTH) / f64::from(1 << 20);
    let spent = (daemon.processor_seconds()? - before) * 1_000.0 / mebibytes;
    figures.add("500 terminals in the dashboard: processor time of 1 MiB of output", spent, "ms", Some(50.0));
    let peak = daemon.peak_mebibytes()?;
    figures.add("500 terminals in the dashboard: peak memory after 20 MB of output", peak, "MiB", Some(64.0));
    web_ssh.abort();
    Ok(())
}

/// Opens a terminal with the cookie of a session, and waits for the answer to its input.
async fn terminal(port: u16, cookie: &str) -> Result<Terminal> {
    let request =
        Request::get("ws://labs.example.org/machines/tenant-bench/vm/main/terminal/socket?cols=80&rows=24")
            .header("host", "labs.example.org")
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", generate_key())
            .header("origin", "https://labs.example.org")
            .header("cookie", cookie)
            .body(())?;
    let (mut terminal, _) = client_async(request, TcpStream::connect(("127.0.0.1", port)).await?).await?;
    terminal.send(Message::text("{\"type\":\"input\",\"data\":\"there\"}")).await?;
    output(&mut terminal).await?;
    Ok(terminal)
}

/// Waits for a message with output.
async fn output(terminal: &mut Terminal) -> Result<()> {
    loop {
        match terminal.next().await.context("the terminal ended")?? {
            Message::Text(text) if text.starts_with("{\"type\":\"data\"") => return Ok(()),
            Message::Text(_) => {}
            other => bail!("the terminal ended: {other}"),
        }
    }
}

/// Answers each message of a terminal with output, as web SSH does.
async fn web_ssh(listener: TcpListener) {
    let answer = format!("{{\"type\":\"data\",\"data\":\"{}\"}}", "x".repeat(LENGTH));
    while let Ok((stream, _)) = listener.accept().await {
        let answer = answer.clone();
        tokio::spawn(async move {
            let mut terminal = accept_async(stream).await?;
            // The first message asks for the terminal.
            terminal.next().await;
            while let Some(Ok(Message::Text(text))) = terminal.next().await {
                let messages = if text.as_str() == MUCH { MESSAGES } else { 1 };
                for _ in 0..messages {
                    terminal.feed(Message::text(answer.as_str())).await?;
                }
                terminal.flush().await?;
            }
            anyhow::Ok(())
        });
    }
}
