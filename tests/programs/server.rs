//! A server of archives with the responses of a test.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The response to a request for a path. Other paths get 404.
#[derive(Clone)]
pub enum Answer {
    /// The whole file.
    Whole(Vec<u8>),
    /// Its first half; then the connection is closed.
    Cut(Vec<u8>),
    /// Its first half; then nothing more.
    Stalled(Vec<u8>),
    /// No response; the connection stays open.
    Silent,
}

/// Answers until the test ends.
pub struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Listens on a port of loopback.
    pub fn start(files: BTreeMap<String, Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (files, log) = (Arc::new(files), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, log) = (Arc::clone(&files), Arc::clone(&log));
                // A client that has disconnected is not an error of the test.
                std::thread::spawn(move || drop(answer(stream, &files, &log)));
            }
        });
        Self { address, requests }
    }

    /// The value of `CROWNLABS_ARCHIVES`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requested paths.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }
}

fn answer(
    mut stream: TcpStream,
    files: &BTreeMap<String, Answer>,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line)?;
    }
    log.lock().expect("no panic").push(path.clone());
    let head = |length| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    match files.get(&path) {
        None => {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        }
        Some(Answer::Whole(bytes)) => {
            stream.write_all(head(bytes.len()).as_bytes())?;
            stream.write_all(bytes)?;
        }
        Some(Answer::Cut(bytes) | Answer::Stalled(bytes)) => {
            stream.write_all(head(bytes.len()).as_bytes())?;
            stream.write_all(&bytes[..bytes.len() / 2])?;
        }
        Some(Answer::Silent) => {}
    }
    if matches!(files.get(&path), Some(Answer::Stalled(_) | Answer::Silent)) {
        // Until the client closes the connection.
        reader.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}
