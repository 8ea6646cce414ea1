//! The data transfer of an open terminal.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// The interval of keep-alive messages.
const PONG: Duration = Duration::from_secs(30);

/// The time limits of a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest time without input and output; zero means no limit.
    pub idle: Duration,
    /// The longest time that the browser may block output.
    pub send: Duration,
}

/// Transfers input and output until one side ends. Only one read is buffered in each direction: while the browser
/// accepts no output, nothing is read from the machine, and while the machine accepts no input, nothing is read from
/// the browser. While `is_view` is set, text of the browser is discarded.
pub async fn bridge(socket: &mut Socket, shell: Shell, limits: Limits, is_view: &AtomicBool) -> CloseReason {
    let Shell { output, input } = shell;
    let (sink, stream) = socket.split();
    let activity = Notify::new();
    // Both directions run concurrently, so that neither waits for the other.
    tokio::select! {
        end = transmit(Browser { sink, limit: limits.send }, output, &activity) => end,
        end = receive(stream, input, &activity, is_view) => end,
        () = expired(limits.idle, &activity) => CloseReason::Idle,
    }
}

/// The sending side of the browser's connection.
struct Browser<'a> {
    sink: SplitSink<&'a mut Socket, Message>,
    limit: Duration,
}

impl Browser<'_> {
    /// Queues a message, and sends earlier ones if there are many.
    async fn feed(&mut self, message: &ServerMessage<'_>) -> Result<(), CloseReason> {
        ended(timeout(self.limit, self.sink.feed(Message::text(message.json()))).await)
    }

    /// Sends the queued messages.
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

/// Maps the result of sending to the end of the terminal.
#[expect(clippy::needless_pass_by_value, reason = "it takes what the timeout returns")]
fn ended(result: Result<Result<(), Error>, tokio::time::error::Elapsed>) -> Result<(), CloseReason> {
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(CloseReason::Left),
        Err(_) => Err(CloseReason::Stalled),
    }
}

/// Sends the output of the shell to the browser, and a keep-alive message every 30 seconds.
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

/// Transfers the browser's input to the shell.
async fn receive(
    mut stream: SplitStream<&mut Socket>,
    input: Input,
    activity: &Notify,
    is_view: &AtomicBool,
) -> CloseReason {
    while let Some(message) = stream.next().await {
        let content = match message.map_err(|error| CloseReason::of(&error)).and_then(content) {
            Ok(Some(content)) => content,
            Ok(None) => continue,
            Err(end) => return end,
        };
        let passed = match ClientMessage::parse(&content) {
            Some(ClientMessage::Input(_)) if is_view.load(Ordering::Relaxed) => continue,
            Some(ClientMessage::Input(text)) => input.write(text).await,
            Some(ClientMessage::Resize { columns, rows }) => input.resize(Size::new(columns, rows)).await,
            Some(ClientMessage::Other) => continue,
            None => return CloseReason::Format,
        };
        if passed.is_err() {
            // The output reports how the shell has ended.
            return pending().await;
        }
        activity.notify_one();
    }
    CloseReason::Left
}

/// Completes after `idle` without activity.
async fn expired(idle: Duration, activity: &Notify) {
    if idle.is_zero() {
        return pending().await;
    }
    while timeout(idle, activity.notified()).await.is_ok() {}
}
