//! A fault proxy in front of the API server or another server. It rejects, delays or breaks the requests that a test
//! chooses, counts writes, and can call a test between a write and its answer.
//!
//! It serves plain HTTP/1.1 on loopback, so that a kubeconfig for it needs no certificate. Credentials and all other
//! headers of the client are passed on, and answers are streamed.

mod fault;
mod forward;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use http::{Method, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::Cluster;
use super::background::Background;

// Every test target uses only a part of these.
#[allow(unused_imports)]
pub use fault::{Fault, Matcher, everything, matching, nth, requests_of, writes};

/// A request that the proxy has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The user agent.
    pub user_agent: String,
    /// The form of the answer that the client accepts.
    pub accept: String,
    /// The status of the answer; `None` if the connection was broken instead.
    pub status: Option<StatusCode>,
}

/// A running proxy; its connections end when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _background: Background,
}

/// The state that all connections share.
struct Shared {
    upstream: Client,
    state: Mutex<State>,
    /// Changes when the open watches are dropped.
    watches: watch::Sender<()>,
}

struct State {
    fault: Fault,
    log: Vec<Answered>,
    writes: u64,
    count_all: bool,
    hook: Option<Hook>,
    /// Removed from the beginning of each path.
    hidden_prefix: Option<&'static str>,
    /// The silenced watches.
    silent: Option<Matcher>,
}

/// An action that runs once.
struct Hook {
    when: When,
    /// `None` while the action runs.
    action: Option<Action>,
}

type Action = Box<dyn FnOnce() + Send>;

/// When the action of a hook runs.
enum When {
    /// After the `n`-th write from now.
    After(u64),
    /// Before the first write while this is true.
    Before(Box<dyn Fn() -> bool + Send>),
}

/// The handling of a write before it reaches the API server.
enum Passage {
    Pass,
    Break,
    BreakAfter(Action),
}

impl Proxy {
    /// Starts a proxy in front of a cluster's API server, without a fault.
    pub fn start(target: &Cluster) -> Result<Self> {
        Self::in_front_of(&target.server(), Some(target.ca_file()))
    }

    /// Starts a proxy in front of any server, without a fault. `ca` is the CA of the server's certificate, if it has one.
    pub fn in_front_of(server: &str, ca: Option<PathBuf>) -> Result<Self> {
        let background = Background::start("fault-proxy")?;
        let server: http::Uri = server.parse()?;
        let (listener, address, upstream) = background.run(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.context("listening on loopback")?;
            let address = listener.local_addr()?;
            let mut config = kube::Config::new(server);
            // For a server without TLS no CA is needed; loading the CAs of the machine would only take time.
            config.root_cert = Some(Vec::new());
            config.root_cert_file = ca;
            // Errors are passed to the client, which is under test.
            config.default_retry = false;
            anyhow::Ok((listener, address, Client::try_from(config)?))
        })??;
        let state = State {
            fault: Fault::None,
            log: Vec::new(),
            writes: 0,
            count_all: false,
            hook: None,
            hidden_prefix: None,
            silent: None,
        };
        let shared = Arc::new(Shared { upstream, state: Mutex::new(state), watches: watch::Sender::new(()) });
        background.handle().spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _background: background })
    }

    /// The URL of the proxy, for [`Cluster::kubeconfig_via`].
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Removes `prefix` from the beginning of every path from now on; a path without it is answered with 404.
    pub fn hide_prefix(&self, prefix: &'static str) {
        self.shared.state.lock().hidden_prefix = Some(prefix);
    }

    /// Sets the fault for requests from now on.
    pub fn set(&self, fault: Fault) {
        self.shared.state.lock().fault = fault;
    }

    /// From now on, matching watches, open and new ones, stay open and deliver nothing: no event, no bookmark, no end.
    /// With `None`, watches are passed on again; events that an open one has missed are lost.
    pub fn silence(&self, watches: Option<Matcher>) {
        self.shared.state.lock().silent = watches;
    }

    /// Breaks all open watches. New ones are passed on.
    pub fn drop_watches(&self) {
        self.shared.watches.send_replace(());
    }

    /// The number of successful writes (POST, PUT, PATCH, DELETE) since the start or the last [`reset`](Self::reset),
    /// without leases and events.
    pub fn writes(&self) -> u64 {
        self.shared.state.lock().writes
    }

    /// Sets whether leases and events are counted as writes, too.
    pub fn count_leases_and_events(&self, count: bool) {
        self.shared.state.lock().count_all = count;
    }

    /// Clears the log and the number of writes; the fault and the hook stay.
    pub fn reset(&self) {
        let mut state = self.shared.state.lock();
        state.writes = 0;
        state.log.clear();
    }

    /// Calls `action` once, after the API server has carried out the `n`-th write from now (counted from 1, as in
    /// [`writes`](Self::writes)) and before its answer is passed on; then breaks the client's connection.
    pub fn on_nth_write(&self, n: u64, action: impl FnOnce() + Send + 'static) {
        self.hook(When::After(n), action);
    }

    /// Calls `action` once, before the first write (leases and events included) at which `is_due`. That write and
    /// writes that arrive while `action` runs do not reach the API server: their connections are broken.
    pub fn before_write_when(
        &self,
        is_due: impl Fn() -> bool + Send + 'static,
        action: impl FnOnce() + Send + 'static,
    ) {
        self.hook(When::Before(Box::new(is_due)), action);
    }

    fn hook(&self, when: When, action: impl FnOnce() + Send + 'static) {
        self.shared.state.lock().hook = Some(Hook { when, action: Some(Box::new(action)) });
    }

    /// Undoes [`on_nth_write`](Self::on_nth_write) or [`before_write_when`](Self::before_write_when). Returns whether the
    /// write had not happened yet.
    pub fn clear_hook(&self) -> bool {
        self.shared.state.lock().hook.take_if(|hook| hook.action.is_some()).is_some()
    }

    /// The requests answered since the start or the last [`reset`](Self::reset), in the order of their answers; a watch
    /// is listed when it begins.
    pub fn request_log(&self) -> Vec<Answered> {
        self.shared.state.lock().log.clone()
    }
}

impl Shared {
    /// Whether the watch with this path is silenced.
    fn is_silent(&self, path: &str) -> bool {
        self.state.lock().silent.as_ref().is_some_and(|silent| silent(&Method::GET, path))
    }
}

impl State {
    /// Counts a successful write; returns the hook's action if this was the write that it waits for.
    fn count(&mut self, path: &str) -> Option<Box<dyn FnOnce() + Send>> {
        if !self.count_all && fault::is_lease_or_event(path) {
            return None;
        }
        self.writes += 1;
        let Some(Hook { when: When::After(n), action }) = &mut self.hook else { return None };
        *n = n.saturating_sub(1);
        if *n > 0 {
            return None;
        }
        let action = action.take();
        self.hook = None;
        action
    }

    /// The handling of a write that arrives now.
    fn passage(&mut self) -> Passage {
        match &mut self.hook {
            Some(Hook { when: When::Before(_), action: None }) => Passage::Break,
            Some(Hook { when: When::Before(is_due), action }) if is_due() => {
                action.take().map_or(Passage::Break, Passage::BreakAfter)
            }
            _ => Passage::Pass,
        }
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // `accept` fails when the process is out of file descriptors; then the test fails, too.
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| forward::answer(Arc::clone(&shared), request));
        tokio::spawn(async move {
            // An error is a connection that this proxy has broken.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
