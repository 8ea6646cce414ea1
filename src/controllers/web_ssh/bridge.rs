//! The part of a terminal in which the shell runs.

use std::future::pending;
use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::Message;

use super::message::{ClientMessage, ServerMessage};
use super::session::{CloseReason, Socket, content};
use super::text::Pieces;
use crate::clients::ssh::{Input, Lost, Output, Shell, Size};

/// The time between two messages that say that the terminal is alive.
const PONG: Duration = Duration::from_secs(30);

/// The limits of time of a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long there may be neither input nor output; zero for ever.
    pub idle: Duration,
    /// How long the browser may take no output.
    pub send: Duration,
}

/// Passes input and output on until one side ends. Nothing is buffered beyond what was read at once: if the browser
/// takes no output, none is read from the machine, and if the machine takes no input, none from the browser.
pub async fn bridge(socket: &mut Socket, shell: Shell, limits: Limits) -> CloseReason {
    let Shell { output, input } = shell;
    let (sink, stream) = socket.split();
    let activity = Notify::new();
    // At the same time, so that neither direction waits for the other.
    tokio::select! {
        end = transmit(Browser { sink, limit: limits.send }, output, &activity) => end,
        end = receive(stream, input, &activity) => end,
        () = expired(limits.idle, &activity) => CloseReason::Idle,
    }
}

/// The way to the browser.
struct Browser<'a> {
    sink: SplitSink<&'a mut Socket, Message>,
    limit: Duration,
}

impl Browser<'_> {
    /// Adds a message to those that are sent, and sends earlier ones if there are many.
    async fn feed(&mut self, message: &ServerMessage<'_>) -> Result<(), CloseReason> {
        ended(timeout(self.limit, self.sink.feed(Message::text(message.json()))).await)
    }

    /// Sends the messages.
    async fn flush(&mut self) -> Result<(), CloseReason> {
        ended(timeout(self.limit, self.sink.flush()).await)
    }

    /// Sends these texts as output.
    async fn output(&mut self, texts: impl IntoIterator<Item = String>) -> Result<(), CloseReason> {
        for text in texts {
            self.feed(&ServerMessage::Data { data: &text }).await?;
        }
        self.flush().await
    }
}

/// The meaning of the result of sending.
#[expect(clippy::needless_pass_by_value, reason = "it takes what the timeout returns")]
fn ended(result: Result<Result<(), Error>, tokio::time::error::Elapsed>) -> Result<(), CloseReason> {
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(CloseReason::Left),
        Err(_) => Err(CloseReason::Stalled),
    }
}

/// Sends the output of the shell to the browser, and a sign of life every 30 seconds.
async fn transmit(mut browser: Browser<'_>, mut output: Output, activity: &Notify) -> CloseReason {
    let mut pieces = Pieces::default();
    let mut tick = interval_at(Instant::now() + PONG, PONG);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let send = async {
        loop {
            tokio::select! {
                read = output.next() => match read {
                    Ok(Some(bytes)) => {
                        activity.notify_one();
                        pieces.push(&bytes);
                        browser.output(pieces.take()).await?;
                    }
                    Ok(None) => break,
                    Err(Lost) => return Err(CloseReason::Internal),
                },
                _ = tick.tick() => {
                    browser.feed(&ServerMessage::Pong).await?;
                    browser.flush().await?;
                }
            }
        }
        browser.output(pieces.rest()).await?;
        Ok(CloseReason::ShellEnded)
    };
    let (Ok(end) | Err(end)) = send.await;
    end
}

/// Passes what the browser sends on to the shell.
async fn receive(mut stream: SplitStream<&mut Socket>, input: Input, activity: &Notify) -> CloseReason {
    while let Some(message) = stream.next().await {
        let content = match message.map_err(|error| CloseReason::of(&error)).and_then(content) {
            Ok(Some(content)) => content,
            Ok(None) => continue,
            Err(end) => return end,
        };
        let passed = match ClientMessage::parse(&content) {
            Some(ClientMessage::Input(text)) => input.write(text).await,
            Some(ClientMessage::Resize { columns, rows }) => input.resize(Size::new(columns, rows)).await,
            Some(ClientMessage::Other) => continue,
            None => return CloseReason::Format,
        };
        if passed.is_err() {
            // The output tells how the shell has ended.
            return pending().await;
        }
        activity.notify_one();
    }
    CloseReason::Left
}

/// Completes once nothing has happened for `idle`.
async fn expired(idle: Duration, activity: &Notify) {
    if idle.is_zero() {
        return pending().await;
    }
    while timeout(idle, activity.notified()).await.is_ok() {}
}
