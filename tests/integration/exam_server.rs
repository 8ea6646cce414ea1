//! The server of an exam. It answers at each path as a test has set it, counts the requests, and accepts uploads.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

/// An answer.
#[derive(Clone)]
pub enum Answer {
    /// A status and a body.
    Body(u16, &'static str),
    /// A status and a body for the first request, others for later requests.
    Once(u16, &'static str, u16, &'static str),
    /// A redirect to another path.
    Redirect(&'static str),
    /// 200, and a body without end.
    Endless,
    /// No response.
    Hang,
}

/// A running server. Its threads end with the test process.
pub struct ExamServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    requests: HashMap<String, usize>,
    answered: u64,
    uploads: Vec<Upload>,
}

/// A form with a file that was accepted.
struct Upload {
    path: String,
    file: File,
}

/// A file in a form.
struct File {
    name: String,
    content: Vec<u8>,
}

/// A request.
struct Request {
    method: String,
    path: String,
    body: Vec<u8>,
}

impl ExamServer {
    /// Starts a server that answers 500 at every path.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // The client may close the connection at any time.
                thread::spawn(move || drop(answer(stream, &state)));
            }
        });
        Self { address, state }
    }

    /// The URL of a path, with a query that must never be shown.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}?key=hunter2", self.address)
    }

    /// Host and port of the URLs.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Sets the answer at a path from now on.
    pub fn set(&self, path: &str, answer: Answer) {
        self.state.lock().answers.insert(path.to_owned(), answer);
    }

    /// The number of requests at a path so far.
    pub fn requests(&self, path: &str) -> usize {
        self.state.lock().requests.get(path).copied().unwrap_or_default()
    }

    /// Counts the answered requests at all paths so far, except for [`Answer::Endless`] and [`Answer::Hang`]. A
    /// request is counted before its client has read the response.
    pub fn answered(&self) -> impl Fn() -> u64 + Send + Sync + use<> {
        let state = Arc::clone(&self.state);
        move || state.lock().answered
    }

    /// The names of the files that were posted to a path and accepted with a status of 200 to 299, in this order.
    pub fn uploads(&self, path: &str) -> Vec<String> {
        let state = self.state.lock();
        let uploads = state.uploads.iter().filter(|upload| upload.path == path);
        uploads.map(|upload| upload.file.name.clone()).collect()
    }

    /// The same files as receipts: name, size and SHA-256 of the bytes that arrived.
    pub fn receipts(&self, path: &str) -> Vec<Value> {
        let state = self.state.lock();
        let uploads = state.uploads.iter().filter(|upload| upload.path == path);
        uploads.map(|upload| upload.file.receipt()).collect()
    }
}

impl File {
    fn receipt(&self) -> Value {
        let sum = digest(&SHA256, &self.content);
        let hex: Vec<String> = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        json!({"name": self.name, "size": self.content.len(), "sha256": hex.concat()})
    }
}

/// Reads a request with its body.
fn read(stream: &TcpStream) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        let value = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        length = value.map_or(length, |(_, value)| value.trim().parse().unwrap_or_default());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
    Ok(Request { method, path, body })
}

/// Splits bytes at the first occurrence of a text.
fn split<'b>(bytes: &'b [u8], at: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let begin = bytes.windows(at.len()).position(|window| window == at)?;
    Some((&bytes[..begin], &bytes[begin + at.len()..]))
}

impl Request {
    /// The file in the form field `binfile`, if the request is an upload.
    fn file(&self) -> Option<File> {
        let body = Some(&*self.body).filter(|_| self.method == "POST")?;
        let (delimiter, _) = split(body, b"\r\n")?;
        let (_, field) = split(body, b"name=\"binfile\"; filename=\"")?;
        let (name, rest) = split(field, b"\"")?;
        let (_, rest) = split(rest, b"\r\n\r\n")?;
        let (content, _) = split(rest, &[b"\r\n", delimiter].concat())?;
        Some(File { name: String::from_utf8(name.to_vec()).ok()?, content: content.to_vec() })
    }
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let request = read(&stream)?;
    let path = &request.path;
    let answer = {
        let mut state = state.lock();
        *state.requests.entry(path.clone()).or_default() += 1;
        match state.answers.get(path).cloned() {
            Some(Answer::Once(status, body, next, then)) => {
                state.answers.insert(path.clone(), Answer::Body(next, then));
                Answer::Body(status, body)
            }
            other => other.unwrap_or(Answer::Body(500, "")),
        }
    };
    match answer {
        Answer::Body(status, body) | Answer::Once(status, body, ..) => {
            let head = format!("HTTP/1.1 {status} \r\ncontent-length: {}", body.len());
            // Locked during the response, so that the request is counted before its client has read the response.
            let mut state = state.lock();
            if let Some(file) = request.file().filter(|_| (200..300).contains(&status)) {
                state.uploads.push(Upload { path: path.clone(), file });
            }
            write!(stream, "{head}\r\nconnection: close\r\n\r\n{body}")?;
            state.answered += 1;
            Ok(())
        }
        Answer::Redirect(path) => {
            let mut state = state.lock();
            write!(
                stream,
                "HTTP/1.1 302 \r\nlocation: /{path}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )?;
            state.answered += 1;
            Ok(())
        }
        Answer::Endless => {
            stream.write_all(b"HTTP/1.1 200 \r\nconnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[b' '; 4_096])?;
            }
        }
        Answer::Hang => {
            // Until the client gives up.
            let mut buffer = [0; 4_096];
            while stream.read(&mut buffer)? > 0 {}
            Ok(())
        }
    }
}
