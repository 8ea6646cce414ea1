//! The server of an exam: it answers at each path as a test tells it, and counts the requests.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// An answer.
#[derive(Clone)]
pub enum Answer {
    /// A status and a body.
    Body(u16, &'static str),
    /// A redirect to another path.
    Redirect(&'static str),
    /// 200, and a body without end.
    Endless,
    /// None.
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

    /// The URL of a path, with a query that must not be shown to anybody.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}?key=hunter2", self.address)
    }

    /// Host and port of the URLs.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Sets the answer at a path from now on.
    pub fn set(&self, path: &str, answer: Answer) {
        lock(&self.state).answers.insert(path.to_owned(), answer);
    }

    /// The number of requests at a path so far.
    pub fn requests(&self, path: &str) -> usize {
        lock(&self.state).requests.get(path).copied().unwrap_or_default()
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut buffer = [0; 4_096];
    let length = stream.read(&mut buffer)?;
    let head = String::from_utf8_lossy(&buffer[..length]).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
    let answer = {
        let mut state = lock(state);
        *state.requests.entry(path.clone()).or_default() += 1;
        state.answers.get(&path).cloned().unwrap_or(Answer::Body(500, ""))
    };
    match answer {
        Answer::Body(status, body) => write!(
            stream,
            "HTTP/1.1 {status} \r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ),
        Answer::Redirect(path) => {
            write!(
                stream,
                "HTTP/1.1 302 \r\nlocation: /{path}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        }
        Answer::Endless => {
            stream.write_all(b"HTTP/1.1 200 \r\nconnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[b' '; 4_096])?;
            }
        }
        Answer::Hang => {
            // Until the client gives up.
            while stream.read(&mut buffer)? > 0 {}
            Ok(())
        }
    }
}
