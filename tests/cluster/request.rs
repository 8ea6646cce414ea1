//! Plain requests over HTTP/1.1, as `curl` sends them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// How long a response may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The response of a server.
pub struct Answer {
    /// The status, such as 200.
    pub status: u16,
    head: String,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Reads a whole response.
    pub fn parse(answer: &str) -> Result<Self> {
        let (head, body) = answer.split_once("\r\n\r\n").with_context(|| answer.to_owned())?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("a status")?;
        Ok(Self { status, head: head.to_owned(), body: body.to_owned() })
    }

    /// A header; empty if it is missing.
    pub fn header(&self, wanted: &str) -> &str {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map_or("", |(_, value)| value)
    }
}

/// Sends a request to a server (host and port) with these headers. Returns its response, whatever the status is.
pub fn send(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Result<Answer> {
    let mut stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let headers: Vec<String> =
        headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
    let (headers, length) = (headers.concat(), body.len());
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Answer::parse(&answer).with_context(|| format!("{method} {path}"))
}
