//! Shells on other machines, by SSH.
//!
//! The host key of a machine is not checked, because there is none to compare it with: a machine makes its own at its
//! first start and again when it is made anew. What makes this safe is that the address is one that the daemon has
//! found itself, and that only public-key authentication is used: the signature is valid for this one connection, so a
//! machine that is not the right one learns nothing by which it could log in elsewhere. No agent and no port is
//! forwarded, and whatever a machine asks for by itself is refused.

mod key;
mod refusing;

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use russh::client::{self, Handle, Msg};
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Pty};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use self::key::PrivateKey;
use self::refusing::Refusing;

/// The connection, the handshake, the login and the start of the shell may take as long as this together.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A machine that is silent for so long is asked whether it is there …
const KEEPALIVE: Duration = Duration::from_secs(30);
/// … and given up after so many questions without an answer.
const MOST_KEEPALIVES: usize = 3;
/// How many bytes a machine may send before they are taken, and how many messages wait to be taken: the memory that a
/// shell needs at most.
const WINDOW: u32 = 64 << 10;
const WAITING_MESSAGES: usize = 4;
/// The type of terminal that is asked for.
const TERMINAL: &str = "xterm-256color";
/// The speed of the terminal in bits per second. It has no effect, but some programs want to know one.
const SPEED: u32 = 14_400;
/// The width and height of a character, in pixels.
const PIXELS: u32 = 8;
/// Terminals are not larger than this, in characters.
const LARGEST: i64 = 1_000;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    columns: u32,
    rows: u32,
}

impl Size {
    /// A size, brought into the range from 1 to 1000.
    pub fn new(columns: i64, rows: i64) -> Self {
        let bounded = |length: i64| u32::try_from(length.clamp(1, LARGEST)).unwrap_or(1);
        Self { columns: bounded(columns), rows: bounded(rows) }
    }
}

/// Why there is no shell.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// The machine cannot be reached.
    #[error("the machine cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// The connection has failed before the login.
    #[error("the connection has failed: {0}")]
    Connection(#[source] russh::Error),
    /// The machine does not accept the key.
    #[error("the machine does not accept the key for this user")]
    Refused,
    /// The time is over.
    #[error("the machine did not answer within {CONNECT_LIMIT:?}")]
    Timeout,
    /// The machine has accepted the login, but there is no shell.
    #[error("the machine starts no shell: {0}")]
    NoShell(String),
}

/// A client that logs in at machines.
#[derive(Clone)]
pub struct SshClient {
    config: Arc<client::Config>,
    user: Arc<str>,
}

impl SshClient {
    /// A client that logs in as `user`.
    pub fn new(user: &str) -> Self {
        let config = client::Config {
            window_size: WINDOW,
            channel_buffer_size: WAITING_MESSAGES,
            keepalive_interval: Some(KEEPALIVE),
            keepalive_max: MOST_KEEPALIVES,
            nodelay: true,
            ..client::Config::default()
        };
        Self { config: Arc::new(config), user: user.into() }
    }

    /// Logs in at `address` and starts a shell in a terminal of that size. Gives up after ten seconds.
    pub async fn shell(&self, address: SocketAddr, key: &PrivateKey, size: Size) -> Result<Shell, SshError> {
        timeout(CONNECT_LIMIT, self.begin(address, key, size)).await.map_err(|_| SshError::Timeout)?
    }

    async fn begin(&self, address: SocketAddr, key: &PrivateKey, size: Size) -> Result<Shell, SshError> {
        let stream = TcpStream::connect(address).await.map_err(SshError::Unreachable)?;
        let line = Line::of(&stream).map_err(SshError::Unreachable)?;
        let config = Arc::clone(&self.config);
        let mut session =
            client::connect_stream(config, stream, Refusing).await.map_err(SshError::Connection)?;
        let login = key.log_in(&mut session, &self.user).await;
        if !login.map_err(SshError::Connection)?.success() {
            return Err(SshError::Refused);
        }
        let no_shell = |error: russh::Error| SshError::NoShell(error.to_string());
        let mut channel = session.channel_open_session().await.map_err(no_shell)?;
        let modes = [(Pty::ECHO, 1), (Pty::TTY_OP_ISPEED, SPEED), (Pty::TTY_OP_OSPEED, SPEED)];
        let Size { columns, rows } = size;
        channel
            .request_pty(true, TERMINAL, columns, rows, columns * PIXELS, rows * PIXELS, &modes)
            .await
            .map_err(no_shell)?;
        accepted(&mut channel, "a terminal").await?;
        channel.request_shell(true).await.map_err(no_shell)?;
        accepted(&mut channel, "a shell").await?;
        let (output, input) = channel.split();
        Ok(Shell { output: Output { channel: output, _session: session, _line: line }, input: Input(input) })
    }
}

/// Waits for the answer to a request.
async fn accepted(channel: &mut Channel<Msg>, what: &str) -> Result<(), SshError> {
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Success => return Ok(()),
            ChannelMsg::Failure | ChannelMsg::Eof | ChannelMsg::Close => {
                return Err(SshError::NoShell(format!("it refuses {what}")));
            }
            _ => {}
        }
    }
    Err(SshError::NoShell(format!("it has closed the connection instead of giving {what}")))
}

/// A second handle of a connection, which is cut when this is dropped: the task of the library that drives the
/// connection would otherwise go on for as long as the machine keeps it busy.
struct Line(std::net::TcpStream);

impl Line {
    fn of(stream: &TcpStream) -> io::Result<Self> {
        stream.as_fd().try_clone_to_owned().map(|handle| Self(handle.into()))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // An error means that it is closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A shell on another machine. It ends when its output is dropped.
pub struct Shell {
    /// The output of the shell.
    pub output: Output,
    /// The input of the shell.
    pub input: Input,
}

/// The output of a shell.
pub struct Output {
    channel: ChannelReadHalf,
    _session: Handle<Refusing>,
    _line: Line,
}

/// The connection to the machine is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection to the machine is lost")]
pub struct Lost;

impl Output {
    /// The next output, in the pieces in which it arrives; `None` once the shell has ended.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Lost> {
        loop {
            match self.channel.wait().await {
                Some(ChannelMsg::Data { data }) => return Ok(Some(data)),
                Some(ChannelMsg::Eof | ChannelMsg::Close) => return Ok(None),
                // The terminal carries what programs write to standard error; nothing else is shown.
                Some(_) => {}
                None => return Err(Lost),
            }
        }
    }
}

/// The input of a shell.
pub struct Input(ChannelWriteHalf<Msg>);

impl Input {
    /// Types a text. Waits while the machine takes no input.
    pub async fn write(&self, text: impl Into<Bytes>) -> Result<(), Lost> {
        self.0.data_bytes(text).await.map_err(|_| Lost)
    }

    /// Changes the size of the terminal.
    pub async fn resize(&self, Size { columns, rows }: Size) -> Result<(), Lost> {
        self.0.window_change(columns, rows, columns * PIXELS, rows * PIXELS).await.map_err(|_| Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(Size::new(80, 24), Size { columns: 80, rows: 24 });
        assert_eq!(Size::new(0, 1_001), Size { columns: 1, rows: 1_000 });
        assert_eq!(Size::new(i64::MIN, i64::MAX), Size { columns: 1, rows: 1_000 });
    }
}
