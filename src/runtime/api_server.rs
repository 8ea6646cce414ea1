//! An API server for tests of the runtime's requests. The test provides the responses, and the server records the
//! requests.

use std::future::pending;
use std::sync::Arc;

use http::StatusCode;
use hyper::body::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::client::{self, Writer};
use super::gate::Gate;
use super::http_server::{self, Server, bind, immediate};

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The method, and the path with its query: `GET /api/v1/pods?limit=1`.
    pub line: String,
    /// The body; `Null` without one.
    pub body: Value,
}

impl Asked {
    /// Returns the last name in the path.
    pub fn name(&self) -> &str {
        let path = self.line.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the request line starts with `begin`.
    pub fn is(&self, begin: &str) -> bool {
        self.line.starts_with(begin)
    }
}

/// A server that runs until the runtime of its test ends.
pub struct ApiServer {
    /// The configuration of clients that connect to it.
    pub config: kube::Config,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl ApiServer {
    /// Starts a server; `answer` returns the status code and the body of each response.
    pub async fn start(answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = bind("test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let seen = Arc::clone(&asked);
        let handler = immediate(move |request| {
            let line = format!("{} {}", request.method(), request.uri());
            let asked = Asked { line, body: serde_json::from_slice(request.body()).unwrap_or_default() };
            let (code, body) = answer(&asked);
            seen.lock().push(asked);
            let code = StatusCode::from_u16(code).expect("a status code");
            http_server::response(code, "application/json", Bytes::from(body.to_string()))
        });
        tokio::spawn(Server::new(handler).serve(listener, pending()));
        let url = format!("http://{address}").parse().expect("a URL");
        Self { config: kube::Config::new(url), asked }
    }

    /// Returns a writer with an open gate.
    pub fn writer(&self) -> Writer {
        Writer::new(self.config.clone(), Gate::open()).expect("a writer")
    }

    /// Returns a client with an open gate.
    pub fn client(&self) -> kube::Client {
        client::build(self.config.clone(), Gate::open()).expect("a client")
    }

    /// Returns the requests since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock())
    }

    /// Returns the request lines since the last call.
    pub fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

/// Returns an error response.
pub fn refused(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
    });
    (code, status)
}
