//! Shells on other machines through SSH.
//!
//! The host key of a machine is not verified, because there is no known key to compare it with: a machine generates
//! its key at its first start, and again after it was recreated. This is safe for two reasons. The daemon itself has
//! found the address. And only public-key authentication is used: the signature is valid for this one connection, so
//! a wrong machine learns nothing that it could use to log in elsewhere. Agents and ports are not forwarded, and all
//! requests of a machine are rejected.

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

/// The time limit for the connection, the handshake, the login and the start of the shell together.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A keepalive message is sent after this time without data from the machine.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The connection is closed after this number of keepalive messages without a response.
const MOST_KEEPALIVES: usize = 3;
/// The number of bytes that a machine may send before they are read, and the number of messages that wait to be read.
/// They limit the memory for a shell.
const WINDOW: u32 = 64 << 10;
const WAITING_MESSAGES: usize = 4;
/// The requested type of terminal.
const TERMINAL: &str = "xterm-256color";
/// The speed of the terminal in bits per second. It has no effect, but some programs need a value.
const SPEED: u32 = 14_400;
/// The width and height of a character in pixels.
const PIXELS: u32 = 8;
/// The limit for the size of terminals, in characters.
const LARGEST: i64 = 1_000;

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    columns: u32,
    rows: u32,
}

impl Size {
    /// A size, limited to the range from 1 to 1000.
    pub fn new(columns: i64, rows: i64) -> Self {
        let bounded = |length: i64| u32::try_from(length.clamp(1, LARGEST)).unwrap_or(1);
        Self { columns: bounded(columns), rows: bounded(rows) }
    }
}

/// The reason why there is no shell.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// The machine cannot be reached.
    #[error("the machine cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// The connection failed before the login.
    #[error("the connection has failed: {0}")]
    Connection(#[source] russh::Error),
    /// The machine rejects the key.
    #[error("the machine does not accept the key for this user")]
    Refused,
    /// The connection timed out.
    #[error("the machine did not answer within {CONNECT_LIMIT:?}")]
    Timeout,
    /// The machine has accepted the login but does not start a shell.
    #[error("the machine starts no shell: {0}")]
    NoShell(String),
}

/// A client that logs in to machines.
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

    /// Logs in to `address` and starts a shell in a terminal of this size. Times out after ten seconds.
    pub async fn shell(&self, address: SocketAddr, key: &PrivateKey, size: Size) -> Result<Shell, SshError> {
        timeout(CONNECT_LIMIT, self.begin(address, key, size)).await.map_err(|_| SshError::Timeout)?
    }

    async fn begin(&self, address: SocketAddr, key: &PrivateKey, size: Size) -> Result<Shell, SshError> {
        let stream = TcpStream::connect(address).await.map_err(SshError::Unreachable)?;
        let handle = stream.as_fd().try_clone_to_owned().map_err(SshError::Unreachable)?;
        let line = Line(handle.into());
        let config = Arc::clone(&self.config);
        let mut session =
            client::connect_stream(config, stream, Refusing).await.map_err(SshError::Connection)?;
        if !key.log_in(&mut session, &self.user).await.map_err(SshError::Connection)? {
            return Err(SshError::Refused);
        }
        let no_shell = |error: russh::Error| SshError::NoShell(error.to_string());
        let mut channel = session.channel_open_session().await.map_err(no_shell)?;
        let modes = [(Pty::ECHO, 1), (Pty::TTY_OP_ISPEED, SPEED), (Pty::TTY_OP_OSPEED, SPEED)];
        let Size { columns, rows } = size;
        let (width, height) = (columns * PIXELS, rows * PIXELS);
        let request = channel.request_pty(true, TERMINAL, columns, rows, width, height, &modes);
        request.await.map_err(no_shell)?;
        accepted(&mut channel, "a terminal").await?;
        channel.request_shell(true).await.map_err(no_shell)?;
        accepted(&mut channel, "a shell").await?;
        let (output, input) = channel.split();
        Ok(Shell { output: Output { channel: output, _session: session, _line: line }, input: Input(input) })
    }
}

/// Waits for the response to a request.
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

/// A second handle of a connection. Dropping it closes the connection. Otherwise the library's task for the
/// connection would run for as long as the machine keeps it busy.
struct Line(std::net::TcpStream);

impl Drop for Line {
    fn drop(&mut self) {
        // An error means that the connection is closed already.
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

/// The connection to the machine was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection to the machine is lost")]
pub struct Lost;

impl Output {
    /// Returns the next piece of output; `None` after the shell has ended.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Lost> {
        loop {
            match self.channel.wait().await {
                Some(ChannelMsg::Data { data }) => return Ok(Some(data)),
                Some(ChannelMsg::Eof | ChannelMsg::Close) => return Ok(None),
                // The terminal carries the standard error output of programs, too. Other messages are ignored.
                Some(_) => {}
                None => return Err(Lost),
            }
        }
    }
}

/// The input of a shell.
pub struct Input(ChannelWriteHalf<Msg>);

impl Input {
    /// Sends text as input. Waits while the machine accepts no input.
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
