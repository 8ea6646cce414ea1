//! A mail server that keeps the mails that it receives: plain SMTP (RFC 5321) on loopback, without TLS and login. It
//! can reject the mails to an address.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::{TcpListener, TcpStream};

use super::background::Background;

/// A mail that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The sender of the envelope.
    pub from: String,
    /// The recipients of the envelope.
    pub to: Vec<String>,
    /// Headers and body, as sent, with LF at the end of lines.
    pub text: String,
}

/// A running mail server; it ends when it is dropped.
pub struct SmtpSink {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _background: Background,
}

#[derive(Default)]
struct State {
    refused: Vec<String>,
    mails: Vec<Mail>,
}

impl SmtpSink {
    /// Starts a server that accepts every mail.
    pub fn start() -> Result<Self> {
        let background = Background::start("smtp-sink")?;
        let listener = background.run(TcpListener::bind("127.0.0.1:0"))?.context("listening on loopback")?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        background.handle().spawn(serve(listener, Arc::clone(&state)));
        Ok(Self { address, state, _background: background })
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// From now on, mails to that address are rejected with the temporary error 451.
    pub fn refuse(&self, recipient: &str) {
        self.state.lock().refused.push(recipient.to_owned());
    }

    /// Undoes [`refuse`](Self::refuse).
    pub fn accept(&self, recipient: &str) {
        self.state.lock().refused.retain(|refused| refused != recipient);
    }

    /// The mails to that address, the oldest first.
    pub fn mails_to(&self, recipient: &str) -> Vec<Mail> {
        let is_to = |mail: &&Mail| mail.to.iter().any(|to| to == recipient);
        self.state.lock().mails.iter().filter(is_to).cloned().collect()
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    // Fails when the process is out of file descriptors: then the test fails, too.
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            // A client that hangs up in the middle has sent no mail.
            let _ = converse(BufStream::new(stream), &state).await;
        });
    }
}

/// Serves one connection until it ends.
async fn converse(mut stream: BufStream<TcpStream>, state: &Mutex<State>) -> std::io::Result<()> {
    let mut envelope = Envelope::default();
    reply(&mut stream, "220 localhost SMTP sink").await?;
    while let Some(line) = line(&mut stream).await? {
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match verb.as_str() {
            "HELO" | "EHLO" => "250 localhost",
            "MAIL" => {
                envelope = Envelope { from: address(&line), to: Vec::new() };
                "250 OK"
            }
            "RCPT" if state.lock().refused.contains(&address(&line)) => "451 try again later",
            "RCPT" => {
                envelope.to.push(address(&line));
                "250 OK"
            }
            "DATA" if envelope.to.is_empty() => "503 no recipient",
            "DATA" => {
                reply(&mut stream, "354 go on").await?;
                let text = data(&mut stream).await?;
                let Envelope { from, to } = std::mem::take(&mut envelope);
                state.lock().mails.push(Mail { from, to, text });
                "250 accepted"
            }
            "RSET" => {
                envelope = Envelope::default();
                "250 OK"
            }
            "NOOP" => "250 OK",
            "QUIT" => return reply(&mut stream, "221 bye").await,
            _ => "502 unknown command",
        };
        reply(&mut stream, answer).await?;
    }
    Ok(())
}

#[derive(Default)]
struct Envelope {
    from: String,
    to: Vec<String>,
}

/// The text in angle brackets, in lower case.
fn address(line: &str) -> String {
    let inner = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inner.map_or("", |(address, _)| address).to_ascii_lowercase()
}

/// Reads a mail up to the line that is a single dot. A line that begins with a dot is sent with one more dot.
async fn data(stream: &mut BufStream<TcpStream>) -> std::io::Result<String> {
    let mut text = String::new();
    while let Some(line) = line(stream).await? {
        if line == "." {
            return Ok(text);
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
        text.push('\n');
    }
    Err(std::io::ErrorKind::UnexpectedEof.into())
}

async fn line(stream: &mut BufStream<TcpStream>) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if stream.read_until(b'\n', &mut bytes).await? == 0 {
        return Ok(None);
    }
    let line = String::from_utf8_lossy(&bytes);
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

async fn reply(stream: &mut BufStream<TcpStream>, line: &str) -> std::io::Result<()> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    stream.flush().await
}
