//! One terminal, from its first message to its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use hyper::body::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use metrics::gauge;
use tokio::io::{copy, sink};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};
use tracing::info;

use super::access::Access;
use super::bridge::{Limits, bridge};
use super::message::{NoRequest, Request, ServerMessage};
use super::serve::Key;
use crate::capture::ConnectionCounter;
use crate::clients::ssh::{Size, SshClient, SshError};

/// The WebSocket of a browser.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// How long the first message may take.
const FIRST_MESSAGE: Duration = Duration::from_secs(10);
/// How long the last messages may take, with the browser's answer to them.
const FAREWELL: Duration = Duration::from_secs(3);

/// Why a terminal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The browser has closed the connection or is gone.
    Left,
    /// The browser takes no output.
    Stalled,
    /// The shell has ended.
    ShellEnded,
    /// There was no input and no output for the idle time.
    Idle,
    /// The process stops.
    Stopping,
    /// As many terminals are open as may be.
    Full,
    /// The first message did not arrive in time.
    NoFirstMessage,
    /// The first message cannot be read.
    FirstFormat,
    /// The first message lacks something.
    FirstIncomplete,
    /// The user gets no terminal of this machine.
    Denied,
    /// The machine cannot be reached, or does not accept the key.
    NoConnection,
    /// The connection to the machine is lost, or there is no shell on it.
    Internal,
    /// A later message cannot be read.
    Format,
}

impl End {
    /// The text and the code by which the browser is told; `None` if it does not listen. Web clients show these texts,
    /// so they are as they have always been, with their misspelling.
    fn told(self) -> Option<(&'static str, CloseCode)> {
        Some(match self {
            Self::Left | Self::Stalled => return None,
            Self::ShellEnded => ("SSH session closed", CloseCode::Normal),
            Self::Idle => ("Connection timed out due to inactivity", CloseCode::Normal),
            Self::Stopping => ("The server is shutting down", CloseCode::Away),
            Self::Full => ("Max connection limit reached", CloseCode::Error),
            Self::NoFirstMessage => ("Failed to read initialization message", CloseCode::Error),
            Self::FirstFormat => ("Invalid fist message format", CloseCode::Error),
            Self::FirstIncomplete => {
                ("Missing required fields in the initialization message", CloseCode::Error)
            }
            Self::Denied => ("Invalid request", CloseCode::Error),
            Self::NoConnection => ("Failed to establish SSH connection", CloseCode::Error),
            Self::Internal => ("Internal server error", CloseCode::Error),
            Self::Format => ("Invalid message format", CloseCode::Error),
        })
    }

    /// What an error of reading means: the browser is gone, or what it sends is none of our messages.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Left,
            Error::Capacity(_) | Error::Utf8(_) | Error::Protocol(_) => Self::Format,
            _ => Self::Left,
        }
    }
}

/// What all terminals share.
pub struct Terminals {
    /// Who gets one.
    pub access: Access,
    /// How to log in.
    pub ssh: SshClient,
    /// The key.
    pub key: Key,
    /// Counts the connections to machines.
    pub connections: Arc<ConnectionCounter>,
    /// The limits of time.
    pub limits: Limits,
}

impl Terminals {
    /// Serves a terminal until its end.
    pub async fn serve(&self, socket: &mut Socket) -> End {
        let first = match timeout(FIRST_MESSAGE, first_message(socket)).await {
            Ok(Ok(first)) => first,
            Ok(Err(end)) => return end,
            Err(_) => return End::NoFirstMessage,
        };
        let request = match Request::parse(&first) {
            Ok(request) => request,
            Err(NoRequest::Format) => return End::FirstFormat,
            Err(NoRequest::Incomplete) => return End::FirstIncomplete,
        };
        let machine = match self.access.machine(&request).await {
            Ok(machine) => machine,
            Err(why) => {
                info!(%why, "a terminal was refused");
                return End::Denied;
            }
        };
        // The value of a poisoned lock is consistent.
        let key = self.key.borrow().clone();
        let Some(key) = key else { return End::Internal };
        let size = Size::new(request.columns, request.rows);
        let instance = machine.instance.to_string();
        let shell = match self.ssh.shell(machine.address, &key, size).await {
            Ok(shell) => shell,
            Err(error) => {
                info!(instance, address = %machine.address, %error, "there is no terminal");
                return if matches!(error, SshError::NoShell(_)) { End::Internal } else { End::NoConnection };
            }
        };
        self.connections.count(machine.address);
        info!(instance, address = %machine.address, "a terminal is open");
        let (begin, _open) = (Instant::now(), Open::new());
        let end = bridge(socket, shell, self.limits).await;
        info!(instance, ?end, seconds = begin.elapsed().as_secs(), "a terminal has ended");
        end
    }
}

/// Counts an open terminal in the metrics.
struct Open;

impl Open {
    fn new() -> Self {
        gauge!("bastion_web_ssh_sessions").increment(1);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        gauge!("bastion_web_ssh_sessions").decrement(1);
    }
}

/// The content of the first message.
async fn first_message(socket: &mut Socket) -> Result<Bytes, End> {
    loop {
        match socket.next().await {
            Some(Ok(message)) => {
                if let Some(content) = content(message)? {
                    return Ok(content);
                }
            }
            Some(Err(error)) => return Err(End::of(&error)),
            None => return Err(End::Left),
        }
    }
}

/// The content of a message of the browser, which may be text or binary; `None` for a ping or pong, which the library
/// answers. The error is that the browser closes the connection.
pub fn content(message: Message) -> Result<Option<Bytes>, End> {
    match message {
        Message::Text(text) => Ok(Some(text.into())),
        Message::Binary(content) => Ok(Some(content)),
        Message::Close(_) => Err(End::Left),
        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(None),
    }
}

/// Tells the browser why the terminal has ended, closes the WebSocket, and reads until the browser has done so too: a
/// connection that is closed with something unread is reset, and the last messages could be lost.
pub async fn farewell(mut socket: Socket, end: End) {
    if end == End::Stalled {
        return;
    }
    let talk = async {
        if let Some((text, code)) = end.told() {
            let told = async {
                socket.feed(Message::text(ServerMessage::Error { error: text }.json())).await?;
                socket.close(Some(CloseFrame { code, reason: "".into() })).await
            };
            // An error means that the browser closes the WebSocket too: reading goes on to the end of that.
            let _: Result<(), Error> = told.await;
        }
        // This also sends the answer to a close frame of the browser.
        let mut is_answered = end == End::Left;
        while let Some(Ok(message)) = socket.next().await {
            is_answered |= message.is_close();
        }
        // After a message that cannot be read, the library reads no more.
        if !is_answered {
            copy(socket.get_mut(), &mut sink()).await?;
        }
        Ok::<_, io::Error>(())
    };
    // The browser may be gone, or not answer: there is nothing more to tell.
    let _ = timeout(FAREWELL, talk).await;
}
