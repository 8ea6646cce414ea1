//! A server that answers at each path as a test has set it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

/// An answer.
#[derive(Clone)]
pub enum Answer {
    /// The rest of the head after the version, and the body.
    Text(String, String),
    /// No response.
    Hang,
    /// 200, and a body without end.
    Endless,
    /// 200, and a body with one byte per second.
    Slow,
    /// 200, and a body that is shorter than announced.
    Short,
}

/// 200 with this body.
pub fn found(body: impl Into<String>) -> Answer {
    Answer::Text("200 OK".to_owned(), body.into())
}

/// This head, with this body.
pub fn with(head: impl Into<String>, body: impl Into<String>) -> Answer {
    Answer::Text(head.into(), body.into())
}

/// A running server. Its threads end with the test process.
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    requests: HashMap<String, usize>,
}

impl Server {
    /// Starts a server that answers 404 at every path.
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

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the answer at a path with its query from now on.
    pub fn set(&self, path: impl Into<String>, answer: Answer) {
        self.state.lock().answers.insert(path.into(), answer);
    }

    /// The number of requests at a path so far.
    pub fn requests(&self, path: &str) -> usize {
        self.state.lock().requests.get(path).copied().unwrap_or_default()
    }

    /// The number of all requests so far.
    pub fn all_requests(&self) -> usize {
        self.state.lock().requests.values().sum()
    }
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer = {
        let mut state = state.lock();
        *state.requests.entry(path.clone()).or_default() += 1;
        state.answers.get(&path).cloned()
    };
    match answer.unwrap_or_else(|| with("404 Not Found", "")) {
        Answer::Text(head, body) => {
            let length = body.len();
            write!(stream, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        }
        Answer::Hang => loop {
            thread::sleep(Duration::from_hours(1));
        },
        Answer::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"repositories\": [\"a\"")?;
            let more = br#", "a""#.repeat(10_000);
            loop {
                stream.write_all(&more)?;
            }
        }
        Answer::Slow => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"repositories\": [")?;
            loop {
                stream.write_all(b" ")?;
                thread::sleep(Duration::from_secs(1));
            }
        }
        Answer::Short => write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{{\"repositories\": ["),
    }
}
