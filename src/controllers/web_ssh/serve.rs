//! The loop of web SSH: the HTTP server, the allowed origins, the graceful shutdown.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::FutureExt;
use http::header::{ORIGIN, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Bytes;
use hyper::upgrade::OnUpgrade;
use kube::Api;
use metrics::gauge;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tracing::{debug, info, warn};

use super::access::Access;
use super::bridge::Limits;
use super::session::{CloseReason, Terminals, close, socket};
use super::slots::{Slot, Slots};
use crate::clients::ssh::{PrivateKey, SshClient};
use crate::config::{WebSshConfig, read};
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::controllers::shared::connections::{Connections, Recorder};
use crate::controllers::shared::entrance::{ByManagedWorkspace, ByPersonalNamespace};
use crate::controllers::shared::listener::{awaited, listen};
use crate::runtime::files::{Awaited, WatchedFile, needed};
use crate::runtime::http_server::{self, Body, Handler, Peer, Server, text};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The time limit for terminals at shutdown, after the last request.
const STOP_LIMIT: Duration = Duration::from_secs(7);
/// The time limit of the last messages, including the browser's response …
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// … for at most this many browsers at once. The responses of further ones are not awaited.
const MOST_CLOSING: usize = 256;
const SHORT_CLOSE: Duration = Duration::from_millis(100);

/// The loop that serves terminals.
pub struct WebSshLoop {
    config: WebSshConfig,
    /// The origins whose pages may open terminals.
    origins: Vec<String>,
    /// `None` only in `crownlabs plan`, where the loop does not run.
    terminals: Option<Terminals>,
    /// The record of terminals; `None` in the same case.
    recorder: Option<Recorder>,
    /// Whether the private key was read; `None` without a file, which the configuration does not allow.
    awaited: Option<Awaited>,
}

impl ReplicaDefinition for WebSshLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = read!(setup.config, controllers.web_ssh).clone();
        let key = Key::default();
        let (file, awaited) = key_file(&config.private_key_file, &key)?.unzip();
        setup.files.extend(file);
        let connections = Arc::clone(&setup.web_ssh_connections);
        let addresses = InstanceAddresses::counted(setup, set, &connections, config.port);
        let tenants = set.store(&Selection::ALL).index::<ByManagedWorkspace>();
        let tenants = tenants.index::<ByPersonalNamespace>().get();
        let (instances, templates) = (set.store(&Selection::ALL).get(), set.store(&Selection::ALL).get());
        let namespace = read!(setup.config, leader_election.namespace).clone();
        let record = Arc::<Connections>::default();
        let recorder = setup
            .ungated
            .clone()
            .map(|client| Recorder::new(Arc::clone(&record), Api::namespaced(client, &namespace)));
        let origins = config.origins(read!(setup.config, controllers.instance.website_base_url));
        let open = setup.shown_open_connections();
        let terminals = setup.users.clone().map(|users| Terminals {
            access: Access { users, tenants, instances, templates, addresses, port: config.port },
            ssh: SshClient::new(&config.user),
            key,
            connections,
            open,
            record,
            limits: Limits { idle: config.idle_timeout.into(), send: config.send_timeout.into() },
        });
        Ok(Self { config, origins, terminals, recorder, awaited })
    }
}

/// The private key; `None` until the file can be read.
pub type Key = Arc<watch::Sender<Option<PrivateKey>>>;

/// The configuration key of the file with the private key.
const KEY_FILE: &str = "controllers.webSsh.privateKeyFile";

/// Reads the file with the private key into `key` and watches it. `None` if the configuration names no file.
///
/// # Errors
/// If the content is invalid. When a later version is invalid, the last valid key stays.
fn key_file(file: &str, key: &Key) -> anyhow::Result<Option<(WatchedFile, Awaited)>> {
    if file.is_empty() {
        return Ok(None);
    }
    if let Ok(text) = std::fs::read(file) {
        PrivateKey::parse(&text).with_context(|| format!("{KEY_FILE}: {file} cannot be used"))?;
    }
    let kept = Arc::clone(key);
    let found = move |key| drop(kept.send_replace(Some(key)));
    Ok(Some(needed(KEY_FILE, file, PrivateKey::parse, found)))
}

impl ReplicaLoop for WebSshLoop {
    const NAME: &'static str = "webSsh";

    async fn run(self, health: Health, stop: Stop) {
        let Self { config, origins, terminals, recorder, awaited: file } = self;
        let (Some(address), Some(file)) = (config.listen.address(), file) else {
            return stop.asked().await;
        };
        let (Some(terminals), Some(mut recorder)) = (terminals, recorder) else {
            return stop.asked().await;
        };
        gauge!("bastion_web_ssh_sessions").set(0);
        // A loop of this process creates the Secret behind the file, so it may appear a minute after the start.
        if !awaited(file, &health, &stop).await {
            return;
        }
        let Some(listener) = listen("controllers.webSsh.listen", address, &health, &stop).await else {
            return;
        };
        info!(address = %listener.local_addr().unwrap_or(address), "serving web SSH");
        health.ready();
        let terminals = Arc::new(terminals);
        let (browsers, slots) = (watch::Sender::new(()), Slots::new(config.max_connections));
        let closing = Arc::new(Semaphore::new(MOST_CLOSING));
        let endpoint =
            Endpoint { terminals, origins, slots, closing, open: browsers.clone(), stop: stop.clone() };
        // Longer than the limit of a terminal, so that the terminal can report why it ends.
        let send_timeout = Duration::from(config.send_timeout).saturating_add(CLOSE_LIMIT);
        let limits = http_server::Limits { send_timeout, ..http_server::Limits::default() };
        let server = Server { limits, ..Server::new(handler(Arc::new(endpoint))) };
        let work = async {
            server.serve(listener, stop.asked()).await;
            // Each browser has a receiver, which is dropped when the browser has left.
            if timeout(STOP_LIMIT, browsers.closed()).await.is_err() {
                warn!("some terminals did not close in time");
            }
        };
        tokio::select! {
            () = work => {}
            () = recorder.run() => {}
        }
        recorder.finish().await;
    }
}

/// The endpoint that answers requests.
struct Endpoint {
    terminals: Arc<Terminals>,
    origins: Vec<String>,
    slots: Arc<Slots>,
    closing: Arc<Semaphore>,
    /// Each open browser has a receiver.
    open: watch::Sender<()>,
    stop: Stop,
}

fn handler(endpoint: Arc<Endpoint>) -> Handler {
    Arc::new(move |request| {
        let response = match request.uri().path() {
            "/webssh" => endpoint.open(request),
            "/healthz" | "/ready" => text(StatusCode::OK, "ok"),
            _ => text(StatusCode::NOT_FOUND, "no such page\n"),
        };
        ready(response.map(Body::from)).boxed()
    })
}

impl Endpoint {
    /// Answers a request for a WebSocket. The terminal starts after the response is sent.
    fn open(&self, mut request: Request<Bytes>) -> Response<Bytes> {
        let response = match create_response_with_body(&request, Bytes::new) {
            Ok(response) => response,
            Err(error) => return refused(&request, &error),
        };
        if !is_of(request.headers(), &self.origins) {
            info!(origin = ?request.headers().get(ORIGIN), "refused a terminal to a page of another origin");
            return text(StatusCode::FORBIDDEN, "pages of this origin may not open terminals\n");
        }
        let Some(Peer(peer)) = request.extensions().get().copied() else {
            return text(StatusCode::INTERNAL_SERVER_ERROR, "this is a defect of the daemon\n");
        };
        // Reserved first, so that a silent browser makes room for the next one.
        let slot = self.slots.wait(peer);
        let upgrade = hyper::upgrade::on(&mut request);
        let (terminals, closing) = (Arc::clone(&self.terminals), Arc::clone(&self.closing));
        let (stop, open) = (self.stop.clone(), self.open.subscribe());
        tokio::spawn(async move {
            terminal(upgrade, &terminals, slot, &closing, &stop).await;
            drop(open);
        });
        response
    }
}

/// Whether the request comes from a page of one of these origins, or from a program that is not a browser and sends no
/// origin. The check protects browsers from foreign pages. It does not authenticate users.
fn is_of(headers: &HeaderMap, origins: &[String]) -> bool {
    headers.get_all(ORIGIN).iter().all(|origin| origins.iter().any(|allowed| origin == allowed.as_str()))
}

/// Serves a terminal.
async fn terminal(upgrade: OnUpgrade, terminals: &Terminals, slot: Slot, closing: &Semaphore, stop: &Stop) {
    let connection = match upgrade.await {
        Ok(connection) => connection,
        Err(error) => return debug!(%error, "a browser left before its terminal began"),
    };
    let mut socket = socket(connection).await;
    let end = tokio::select! {
        end = terminals.serve(&mut socket, &slot) => end,
        () = slot.ended() => CloseReason::Full,
        () = stop.asked() => CloseReason::Stopping,
    };
    drop(slot);
    let answered = closing.try_acquire();
    close(socket, end, if answered.is_ok() { CLOSE_LIMIT } else { SHORT_CLOSE }).await;
}

/// The response to a request that does not open a WebSocket.
fn refused(request: &Request<Bytes>, error: &Error) -> Response<Bytes> {
    let is_upgrade = request.headers().contains_key(UPGRADE);
    if is_upgrade && matches!(error, Error::Protocol(ProtocolError::WrongHttpMethod)) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    let mut response = text(StatusCode::BAD_REQUEST, "Bad Request\n");
    response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}
