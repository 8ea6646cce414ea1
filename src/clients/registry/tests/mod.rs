//! The client against a server with scripted responses.

mod docker;
mod faults;
mod harbor;

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A request that the server received.
#[derive(Debug, Clone)]
struct Asked {
    /// Path and query.
    path: String,
    /// The header `Authorization`, or empty.
    login: String,
}

/// A response.
enum Answer {
    /// The lines of the head after the version, and the body.
    Text(String, String),
    /// No response.
    Hang,
    /// 200, and an endless body.
    Endless,
    /// 200, and a body that is shorter than announced.
    Short,
}

/// A response with status 200 and this body.
fn found(body: impl Into<String>) -> Answer {
    Answer::Text("200 OK".to_owned(), body.into())
}

/// A response with this head and this body.
fn with(head: &str, body: impl Into<String>) -> Answer {
    Answer::Text(head.to_owned(), body.into())
}

/// A running server.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (answer, log) = (Arc::new(answer), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                tokio::spawn(async move {
                    // The client may close the connection at any time.
                    drop(serve(stream, &*answer, &log).await);
                });
            }
        });
        Self { url, asked }
    }

    /// The requests until now.
    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The paths of the requests until now.
    fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }
}

/// Answers one request and closes the connection.
async fn serve(
    mut stream: TcpStream,
    answer: &(impl Fn(&Asked) -> Answer + Sync),
    log: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let login =
        head.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default().to_owned();
    let asked = Asked { path, login };
    log.lock().unwrap().push(asked.clone());
    match answer(&asked) {
        Answer::Text(head, body) => {
            let length = body.len();
            let text =
                format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).await
        }
        Answer::Hang => std::future::pending().await,
        Answer::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"repositories\": [").await?;
            loop {
                stream.write_all(b"\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", ").await?;
            }
        }
        Answer::Short => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{").await,
    }
}

/// The configuration of a registry, with additional keys.
fn config(url: &str, more: &serde_json::Value) -> RegistryConfig {
    let mut entry = serde_json::json!({"imageListName": "list", "url": url, "registryName": "r.example.org"});
    entry.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    serde_json::from_value(entry).unwrap()
}

/// Lists the registry of a server.
async fn list(server: &Server, more: &serde_json::Value) -> Result<Listing, QueryError> {
    Registry::new(config(&server.url, more)).list().await
}

/// The images of a listing, each as `name: tag tag`.
fn lines(listing: &Listing) -> Vec<String> {
    listing.images.iter().map(|image| format!("{}: {}", image.name, image.versions.join(" "))).collect()
}
