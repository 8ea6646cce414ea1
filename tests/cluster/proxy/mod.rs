//! A fault proxy in front of the API server or another server: refuses, delays and breaks what a test tells it to,
//! counts writes, and stops between a write and its answer.
//!
//! It speaks plain HTTP/1.1 on loopback, so that a kubeconfig for it needs no other certificate; credentials and
//! all other headers of the client are passed on, and answers are streamed.

mod fault;
mod forward;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use http::{Method, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::Cluster;
use super::background::Background;

// Every test uses another part of these.
#[allow(unused_imports)]
pub use fault::{Fault, Matcher, everything, matching, requests_of, writes};

/// A request that came through, in the order of the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The user agent.
    pub user_agent: String,
    /// What the client was answered; `None` if its connection was broken instead.
    pub status: Option<StatusCode>,
}

/// A running proxy; its connections end when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _background: Background,
}

/// What all connections share.
struct Shared {
    upstream: Client,
    state: Mutex<State>,
    /// Changes when the open watches are to be closed.
    watches: watch::Sender<()>,
}

struct State {
    fault: Fault,
    log: Vec<Answered>,
    writes: u64,
    count_all: bool,
    hook: Option<Hook>,
    /// What is taken from the beginning of each path.
    hidden_prefix: Option<&'static str>,
}

/// To be called after the `n`-th write from now.
struct Hook {
    n: u64,
    action: Box<dyn FnOnce() + Send>,
}

impl Proxy {
    /// Starts a proxy in front of a cluster's API server, without any fault.
    pub fn start(target: &Cluster) -> Result<Self> {
        Self::in_front_of(&target.server(), Some(target.ca_file()))
    }

    /// Starts a proxy in front of any server, without any fault; `ca` has signed its certificate, if it has one.
    pub fn in_front_of(server: &str, ca: Option<PathBuf>) -> Result<Self> {
        let background = Background::start("fault-proxy")?;
        let server: http::Uri = server.parse()?;
        let (listener, address, upstream) = background.run(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.context("listening on loopback")?;
            let address = listener.local_addr()?;
            let mut config = kube::Config::new(server);
            // Without certificate there is nothing to check, and no authorities are needed.
            config.root_cert = Some(Vec::new());
            config.root_cert_file = ca;
            // What goes wrong is the client's to handle.
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
        };
        let shared = Arc::new(Shared { upstream, state: Mutex::new(state), watches: watch::Sender::new(()) });
        background.handle().spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _background: background })
    }

    /// The URL of the proxy, for [`Cluster::kubeconfig_via`].
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Takes `prefix` from the beginning of every path; a path without it is answered with 404.
    pub fn hide_prefix(&self, prefix: &'static str) {
        self.shared.state().hidden_prefix = Some(prefix);
    }

    /// Replaces the fault that is applied to requests from now on.
    pub fn set(&self, fault: Fault) {
        self.shared.state().fault = fault;
    }

    /// Closes all open watches, once; new ones are let through.
    pub fn drop_watches(&self) {
        self.shared.watches.send_replace(());
    }

    /// How many writes (POST, PUT, PATCH, DELETE) the API server has carried out with success since the start or
    /// the last [`reset`](Self::reset); leases and events do not count.
    pub fn writes(&self) -> u64 {
        self.shared.state().writes
    }

    /// Whether leases and events count as writes, too.
    pub fn count_leases_and_events(&self, count: bool) {
        self.shared.state().count_all = count;
    }

    /// Forgets the log and the number of writes; the fault and the hook stay.
    pub fn reset(&self) {
        let mut state = self.shared.state();
        state.writes = 0;
        state.log.clear();
    }

    /// Calls `action` once, after the API server has carried out the `n`-th write from now (counted from 1, as in
    /// [`writes`](Self::writes)) and before its answer is passed on; then breaks the client's connection.
    pub fn on_nth_write(&self, n: u64, action: impl FnOnce() + Send + 'static) {
        self.shared.state().hook = Some(Hook { n, action: Box::new(action) });
    }

    /// Takes back [`on_nth_write`](Self::on_nth_write). Returns whether it had not been reached.
    pub fn clear_hook(&self) -> bool {
        self.shared.state().hook.take().is_some()
    }

    /// What was answered since the start or the last [`reset`](Self::reset); a watch is listed when it opens.
    pub fn request_log(&self) -> Vec<Answered> {
        self.shared.state().log.clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a write that was carried out; returns the action whose turn it is.
    fn count(&mut self, path: &str) -> Option<Box<dyn FnOnce() + Send>> {
        if !self.count_all && fault::is_lease_or_event(path) {
            return None;
        }
        self.writes += 1;
        let hook = self.hook.as_mut()?;
        hook.n = hook.n.saturating_sub(1);
        if hook.n > 0 {
            return None;
        }
        self.hook.take().map(|hook| hook.action)
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Fails when the process is out of file descriptors: then the test fails, too.
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| forward::answer(Arc::clone(&shared), request));
        tokio::spawn(async move {
            // A broken connection is what this proxy is for.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
