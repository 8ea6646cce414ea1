//! The messages between a page and web SSH, both of which speak the protocol of `docs/web-ssh.md`. Memory is bounded in
//! both directions, and neither waits for the other.
//!
//! A browser reads a WebSocket faster than its page can show the output, so the page confirms the messages that it has
//! shown (`{"ack": COUNT}`), and no more than [`WINDOW`] of them are unconfirmed. A page that pastes a long text must not
//! delay its own confirmations, so it is told how many of its messages web SSH has taken (`{"type": "taken", "count":
//! COUNT}`), and keeps at most [`QUEUED`] of them on the way.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

use crate::controllers::dashboard::http::socket::End;
use crate::controllers::shared::web_terminal as said;

/// The longest message in bytes. The page sends long texts in pieces.
pub const LONGEST: usize = 32 << 10;
/// The maximum number of messages that the page has not confirmed. Web SSH puts at most 1 KiB of output into one.
const WINDOW: usize = 256;
/// The maximum number of messages that are sent at once.
const TOGETHER: usize = 32;
/// The maximum number of messages that wait for web SSH.
const QUEUED: usize = 8;
/// The time after which web SSH counts as gone: it sends a message every 30 seconds.
const SILENCE: Duration = Duration::from_secs(90);
/// The time after which a page that takes no messages counts as gone: a browser reads them before its page shows them.
const STALLED: Duration = Duration::from_secs(30);

/// The sending and the receiving half of a WebSocket.
type Sink<'s, S> = SplitSink<&'s mut WebSocketStream<S>, Message>;
type Stream<'s, S> = SplitStream<&'s mut WebSocketStream<S>>;

/// A number of messages.
#[derive(Default)]
struct Count {
    number: AtomicUsize,
    changed: Notify,
}

impl Count {
    fn add(&self, number: usize) {
        self.number.fetch_add(number, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Removes this number, or all if there are fewer.
    fn remove(&self, number: usize) {
        // All of this runs in one task.
        let now = self.number.load(Ordering::Relaxed);
        self.number.store(now.saturating_sub(number), Ordering::Relaxed);
        self.changed.notify_one();
    }

    fn take(&self) -> usize {
        self.number.swap(0, Ordering::Relaxed)
    }

    /// Completes when the number is below a limit.
    async fn below(&self, limit: usize) {
        while self.number.load(Ordering::Relaxed) >= limit {
            self.changed.notified().await;
        }
    }
}

/// Passes the messages of both directions until one side ends.
pub async fn relay<B, M>(browser: &mut WebSocketStream<B>, machine: &mut WebSocketStream<M>) -> End
where
    B: AsyncRead + AsyncWrite + Unpin,
    M: AsyncRead + AsyncWrite + Unpin,
{
    let (to_browser, from_browser) = browser.split();
    let (to_machine, from_machine) = machine.split();
    let (queue, queued) = mpsc::channel(QUEUED);
    let (unconfirmed, taken) = (Count::default(), Count::default());
    tokio::select! {
        end = show(from_machine, to_browser, &unconfirmed, &taken) => end,
        end = read(from_browser, queue, &unconfirmed) => end,
        end = pass(queued, to_machine, &taken) => end,
    }
}

/// Sends the messages of web SSH to the page.
async fn show<M, B>(from: Stream<'_, M>, mut to: Sink<'_, B>, unconfirmed: &Count, taken: &Count) -> End
where
    M: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let mut from = from.ready_chunks(TOGETHER);
    let (mut last, mut heard) = (None, Instant::now());
    loop {
        let next = async {
            unconfirmed.below(WINDOW).await;
            timeout_at(heard + SILENCE, from.next()).await
        };
        let messages = tokio::select! {
            next = next => next,
            () = taken.changed.notified() => {
                let message = format!(r#"{{"type":"taken","count":{}}}"#, taken.take());
                if !is_taken(to.send(Message::text(message))).await {
                    return End::Left;
                }
                continue;
            }
        };
        let Ok(Some(messages)) = messages else { return last.unwrap_or(End::Lost) };
        heard = Instant::now();
        let mut end = None;
        for message in messages {
            match message {
                Ok(Message::Text(text)) => {
                    last = end_in(&text).or(last);
                    unconfirmed.add(1);
                    if !is_taken(to.feed(Message::Text(text))).await {
                        return End::Left;
                    }
                }
                Ok(Message::Close(frame)) => end = Some(last.unwrap_or_else(|| end_of(frame.as_ref()))),
                Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                Err(_) => end = end.or(Some(last.unwrap_or(End::Lost))),
            }
        }
        // Also before the end, the page gets all output.
        if !is_taken(to.flush()).await {
            return End::Left;
        }
        if let Some(end) = end {
            return end;
        }
    }
}

/// Whether the page takes what is sent, in time.
async fn is_taken(sent: impl Future<Output = Result<(), Error>>) -> bool {
    matches!(timeout(STALLED, sent).await, Ok(Ok(())))
}

/// Reads the messages of the page: its confirmations, and those for web SSH.
async fn read<B>(mut from: Stream<'_, B>, queue: mpsc::Sender<Utf8Bytes>, unconfirmed: &Count) -> End
where
    B: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = from.next().await {
        match message {
            Message::Text(text) => match confirmed(&text) {
                Some(number) => unconfirmed.remove(number),
                None if queue.send(text).await.is_err() => break,
                None => {}
            },
            Message::Close(_) => break,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    End::Left
}

/// Sends the messages of the page to web SSH.
async fn pass<M>(mut queued: mpsc::Receiver<Utf8Bytes>, mut to: Sink<'_, M>, taken: &Count) -> End
where
    M: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(text) = queued.recv().await {
        if to.send(Message::Text(text)).await.is_err() {
            break;
        }
        taken.add(1);
    }
    // The other direction knows how the connection has ended.
    pending().await
}

/// Returns the number of messages that the page has shown, if a message says that.
fn confirmed(text: &str) -> Option<usize> {
    text.strip_prefix(r#"{"ack":"#)?.strip_suffix('}')?.parse().ok()
}

/// The last message of web SSH.
#[derive(Deserialize)]
struct Last {
    error: String,
}

/// Returns the end that a message of web SSH says, if it is the last one. Output is in messages of another type.
fn end_in(text: &str) -> Option<End> {
    if !text.starts_with(r#"{"type":"error""#) {
        return None;
    }
    let Last { error } = serde_json::from_str(text).ok()?;
    Some(match &*error {
        said::SHELL_ENDED => End::Done,
        said::IDLE => End::Idle,
        said::STOPPING => End::Stopping,
        said::FULL => End::Full,
        said::DENIED | said::LOST => End::Denied,
        said::UNDECIDED => End::Away,
        _ => End::Lost,
    })
}

/// Returns the end that the code of web SSH's close frame says.
fn end_of(frame: Option<&CloseFrame>) -> End {
    match frame.map(|frame| frame.code) {
        Some(CloseCode::Normal) => End::Done,
        Some(CloseCode::Away) => End::Stopping,
        Some(CloseCode::Policy) => End::Denied,
        _ => End::Lost,
    }
}

#[cfg(test)]
mod tests;
