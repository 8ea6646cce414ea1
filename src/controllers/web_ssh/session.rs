//! One terminal, from its first message to its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use hyper::body::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use metrics::gauge;
use tokio::io::{AsyncReadExt as _, Join, ReadHalf, Take, WriteHalf, copy, join, sink, split};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};
use tracing::info;

use super::access::{Access, Denied, Machine, instance_key};
use super::bridge::{Limits, bridge};
use super::message::{NoRequest, Request, ServerMessage};
use super::serve::Key;
use super::slots::Slot;
use crate::api::openings::Way;
use crate::capture::{ConnectionCounter, OpenConnections};
use crate::clients::ssh::{Size, SshClient, SshError};
use crate::controllers::shared::connections::Connections;
use crate::controllers::shared::web_terminal as said;
use crate::runtime::error::ApiError;

/// The WebSocket of a browser. Only a few bytes are read until the user is known.
pub type Socket = WebSocketStream<Connection>;
/// The connection of a WebSocket, with a limit on the bytes that are read.
type Connection = Join<Take<ReadHalf<TokioIo<Upgraded>>>, WriteHalf<TokioIo<Upgraded>>>;

/// The time limit of the first message.
const FIRST_MESSAGE: Duration = Duration::from_secs(5);
/// The number of bytes that are read before the user is known. A request with a token is shorter, and many browsers may
/// wait.
const FIRST_BYTES: u64 = 32 << 10;
/// The total time that the API server has to identify the user and to decide.
const DECISION: Duration = Duration::from_secs(20);
/// The number of bytes of a user name in the log. The identity provider chooses the name, and the log line begins with
/// it.
const SHOWN: usize = 253;
/// The longest message of a browser, in bytes.
const LONGEST_MESSAGE: usize = 1 << 20;
/// The size of a WebSocket's buffers in bytes: one for reading, and one that collects messages to send. Each open
/// terminal has both.
const BUFFER: usize = 4 << 10;

/// The WebSocket on an upgraded connection.
pub async fn socket(connection: Upgraded) -> Socket {
    let (reader, writer) = split(TokioIo::new(connection));
    on(join(reader.take(FIRST_BYTES), writer)).await
}

/// A WebSocket on a connection.
async fn on(connection: Connection) -> Socket {
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_write_buffer_size(16 * BUFFER)
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE));
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

/// The reason why a terminal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The browser has closed the connection or is gone.
    Left,
    /// The browser accepts no output.
    Stalled,
    /// The shell has ended.
    ShellEnded,
    /// There was no input and no output for the idle time.
    Idle,
    /// The process is shutting down.
    Stopping,
    /// The maximum number of terminals is open.
    Full,
    /// The first message did not arrive in time.
    NoFirstMessage,
    /// The first message cannot be read.
    FirstFormat,
    /// The first message is incomplete.
    FirstIncomplete,
    /// The user gets no terminal of this machine.
    Denied,
    /// The user may not use the machine any more.
    Lost,
    /// The API server does not identify the user or the user's rights.
    Undecided,
    /// The machine is unreachable or rejects the key.
    NoConnection,
    /// The connection to the machine is lost, or the machine has no shell.
    Internal,
    /// A later message cannot be read.
    Format,
}

impl CloseReason {
    /// The text and the code for the browser; `None` if the browser does not read it.
    fn notice(self) -> Option<(&'static str, CloseCode)> {
        Some(match self {
            Self::Left | Self::Stalled => return None,
            Self::ShellEnded => (said::SHELL_ENDED, CloseCode::Normal),
            Self::Idle => (said::IDLE, CloseCode::Normal),
            Self::Stopping => (said::STOPPING, CloseCode::Away),
            Self::Full => (said::FULL, CloseCode::Error),
            Self::NoFirstMessage => (said::NO_FIRST_MESSAGE, CloseCode::Error),
            Self::FirstFormat => (said::FIRST_FORMAT, CloseCode::Error),
            Self::FirstIncomplete => (said::FIRST_INCOMPLETE, CloseCode::Error),
            Self::Denied => (said::DENIED, CloseCode::Error),
            Self::Lost => (said::LOST, CloseCode::Policy),
            Self::Undecided => (said::UNDECIDED, CloseCode::Error),
            Self::NoConnection => (said::NO_CONNECTION, CloseCode::Error),
            Self::Internal => (said::INTERNAL, CloseCode::Error),
            Self::Format => (said::FORMAT, CloseCode::Error),
        })
    }

    /// Maps a read error: the browser is gone, or has sent an invalid message.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Left,
            Error::Capacity(_) | Error::Utf8(_) | Error::Protocol(_) => Self::Format,
            _ => Self::Left,
        }
    }
}

/// The state that all terminals share.
pub struct Terminals {
    /// Decides which users get a terminal.
    pub access: Access,
    /// The client that logs in to machines.
    pub ssh: SshClient,
    /// The private key.
    pub key: Key,
    /// Counts the connections to machines.
    pub connections: Arc<ConnectionCounter>,
    /// The open connections to machines.
    pub open: Arc<OpenConnections>,
    /// The record of the terminals of people who do not own the machine.
    pub record: Arc<Connections>,
    /// The time limits.
    pub limits: Limits,
}

impl Terminals {
    /// Serves a terminal until its end.
    pub async fn serve(&self, socket: &mut Socket, slot: &Slot) -> CloseReason {
        let request = match timeout(FIRST_MESSAGE, first_request(socket)).await {
            Ok(Ok(request)) => request,
            Ok(Err(end)) => return end,
            Err(_) => return CloseReason::NoFirstMessage,
        };
        let (user, machine) = match self.decide(&request).await {
            Ok(decided) => decided,
            Err(end) => return end,
        };
        let (instance, user_name) = (machine.instance.to_string(), shown(&user));
        if slot.open(&user).is_err() {
            info!(user = user_name, instance, "refused a terminal: the maximum number of terminals is open");
            return CloseReason::Full;
        }
        socket.get_mut().reader_mut().set_limit(u64::MAX);
        // The value of a poisoned lock is consistent.
        let key = self.key.borrow().clone();
        let Some(key) = key else { return CloseReason::Internal };
        let size = Size::new(request.columns, request.rows);
        let shell = match self.ssh.shell(machine.address, &key, size).await {
            Ok(shell) => shell,
            Err(error) => {
                info!(user = user_name, instance, address = %machine.address, %error, "cannot open a terminal");
                let is_connected = matches!(error, SshError::NoShell(_));
                return if is_connected { CloseReason::Internal } else { CloseReason::NoConnection };
            }
        };
        self.connections.count(machine.address);
        let (address, entitlement) = (machine.address, machine.entitlement);
        info!(user = user_name, instance, %address, r#as = %entitlement, "opened a terminal");
        let (begin, _open, _connection) = (Instant::now(), Open::new(), self.open.begin(address));
        let _recorded = entitlement.relation().map(|relation| {
            let what = (relation, Way::Terminal);
            self.record.begin(&machine.instance, &machine.environment, user_name, what)
        });
        let is_view = AtomicBool::new(entitlement.is_view());
        let end = tokio::select! {
            end = bridge(socket, shell, self.limits, &is_view) => end,
            () = self.access.lost(&user, &request, &machine, &is_view) => CloseReason::Lost,
        };
        let seconds = begin.elapsed().as_secs();
        info!(user = user_name, instance, ?end, seconds, "closed a terminal");
        end
    }

    /// The user and the machine of a request. Each refusal is logged with its reason.
    async fn decide(&self, request: &Request) -> Result<(String, Machine), CloseReason> {
        // Invalid names may be long, and are not logged.
        let instance = instance_key(request).map(|key| key.to_string()).unwrap_or_default();
        let mut known = None;
        let decision = async {
            let user = known.insert(self.access.user(request).await?);
            self.access.machine(user, request).await
        };
        let late = || Denied::Unanswered(ApiError::transient(format!("no answer in {DECISION:?}")));
        let decided = timeout(DECISION, decision).await.unwrap_or_else(|_| Err(late()));
        let user = known.unwrap_or_else(|| "(unknown)".to_owned());
        match decided {
            Ok(machine) => Ok((user, machine)),
            Err(why) => {
                info!(user = shown(&user), instance, %why, "refused a terminal");
                let is_open = matches!(why, Denied::Unanswered(_));
                Err(if is_open { CloseReason::Undecided } else { CloseReason::Denied })
            }
        }
    }
}

/// The part of a user name that is logged.
fn shown(user: &str) -> &str {
    &user[..user.floor_char_boundary(SHOWN)]
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

/// The first message.
async fn first_request(socket: &mut Socket) -> Result<Request, CloseReason> {
    let content = loop {
        match socket.next().await {
            Some(Ok(message)) => {
                if let Some(content) = content(message)? {
                    break content;
                }
            }
            // The rest of an oversized message is not read.
            _ if socket.get_ref().reader().limit() == 0 => return Err(CloseReason::FirstFormat),
            Some(Err(error)) => return Err(CloseReason::of(&error)),
            None => return Err(CloseReason::Left),
        }
    };
    Request::parse(&content).map_err(|fault| match fault {
        NoRequest::Format => CloseReason::FirstFormat,
        NoRequest::Incomplete => CloseReason::FirstIncomplete,
    })
}

/// The content of a text or binary message of the browser; `None` for a ping or pong, which the library answers.
/// Returns an error if the browser closes the connection.
pub fn content(message: Message) -> Result<Option<Bytes>, CloseReason> {
    match message {
        Message::Text(text) => Ok(Some(text.into())),
        Message::Binary(content) => Ok(Some(content)),
        Message::Close(_) => Err(CloseReason::Left),
        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(None),
    }
}

/// Sends the browser the reason, closes the WebSocket, and reads until the browser has closed it too, for at most
/// `limit`. A connection that is closed with unread data is reset, and the last messages could be lost.
pub async fn close(mut socket: Socket, end: CloseReason, limit: Duration) {
    if end == CloseReason::Stalled {
        return;
    }
    if socket.get_ref().reader().limit() == 0 {
        // The library treats the connection as ended.
        socket = on(socket.into_inner()).await;
    }
    socket.get_mut().reader_mut().set_limit(u64::MAX);
    let talk = async {
        if let Some((text, code)) = end.notice() {
            let sent = async {
                socket.feed(Message::text(ServerMessage::Error { error: text }.json())).await?;
                socket.close(Some(CloseFrame { code, reason: "".into() })).await
            };
            // If sending fails, the browser is closing the WebSocket too, so reading continues to its end.
            let _: Result<(), Error> = sent.await;
        }
        // This also sends the response to a close frame of the browser.
        let mut is_answered = end == CloseReason::Left;
        while let Some(Ok(message)) = socket.next().await {
            is_answered |= message.is_close();
        }
        // The library stops reading after an unreadable message.
        if !is_answered {
            copy(socket.get_mut(), &mut sink()).await?;
        }
        Ok::<_, io::Error>(())
    };
    // The browser may be gone or may not answer. Nothing is left to send.
    let _ = timeout(limit, talk).await;
}
