//! The loop of web SSH: the HTTP server, whose pages may open terminals, the orderly end.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::FutureExt;
use http::header::{ORIGIN, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Bytes;
use hyper::upgrade::OnUpgrade;
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
use crate::api::tenant::TenantKind;
use crate::capture::{ConnectionCounter, OpenConnections};
use crate::clients::ssh::{PrivateKey, SshClient};
use crate::config::WebSshConfig;
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::controllers::shared::entrance::{ByManagedWorkspace, ByPersonalNamespace};
use crate::controllers::shared::listener::{awaited, listen};
use crate::runtime::client::UserClient;
use crate::runtime::files::WatchedFile;
use crate::runtime::http_server::{self, Body, Handler, Peer, Server, text};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// How long the terminals have to end at a stop, once no request is served any more.
const STOP_LIMIT: Duration = Duration::from_secs(7);
/// How long the last messages may take, with the browser's answer to them …
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// … which so many browsers at the same time may give; of more, it is not awaited.
const MOST_CLOSING: usize = 256;
const SHORT_CLOSE: Duration = Duration::from_millis(100);

/// Serves terminals.
pub struct WebSshLoop {
    config: WebSshConfig,
    /// The origins of the pages that may open terminals.
    origins: Vec<String>,
    /// `None` only in `crownlabs plan`, where the loop does not run.
    users: Option<UserClient>,
    tenants: Arc<Store<TenantKind>>,
    addresses: InstanceAddresses,
    connections: Arc<ConnectionCounter>,
    open: Arc<OpenConnections>,
    key: Key,
}

impl ReplicaDefinition for WebSshLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = setup.config.controllers.web_ssh.clone();
        let (users, key) = (setup.users.clone(), Key::default());
        setup.files.extend(key_file(&config.private_key_file, &key)?);
        let connections = Arc::clone(&setup.web_ssh_connections);
        let addresses = InstanceAddresses::counted(setup, set, &connections, config.port);
        let tenants =
            set.store(&Selection::ALL).index::<ByManagedWorkspace>().index::<ByPersonalNamespace>().get();
        let origins = config.origins(&setup.config.controllers.instance);
        let open = setup.shown_open_connections();
        Ok(Self { config, origins, users, tenants, addresses, connections, open, key })
    }
}

/// The private key; `None` until the file is there.
pub type Key = Arc<watch::Sender<Option<PrivateKey>>>;

/// The key in the configuration that names the file with the private key.
const KEY_FILE: &str = "controllers.webSsh.privateKeyFile";

/// Reads the file with the private key into `key`, and watches it. `None` without a file in the configuration.
///
/// # Errors
/// When its content cannot be used. Later, the last key that could be used stays.
fn key_file(file: &str, key: &Key) -> anyhow::Result<Option<WatchedFile>> {
    if file.is_empty() {
        return Ok(None);
    }
    if let Ok(text) = std::fs::read(file) {
        let parsed =
            PrivateKey::parse(&text).with_context(|| format!("{KEY_FILE}: {file} cannot be used"))?;
        key.send_replace(Some(parsed));
    }
    let (kept, path) = (Arc::clone(key), file.to_owned());
    Ok(Some(WatchedFile::new(KEY_FILE, Path::new(file).to_owned(), move |content| {
        match content.map(PrivateKey::parse) {
            Some(Ok(parsed)) => drop(kept.send_replace(Some(parsed))),
            Some(Err(error)) => {
                warn!(file = path, %error, "{KEY_FILE} cannot be used; the key before it is kept");
            }
            None if kept.borrow().is_none() => {}
            None => warn!(file = path, "{KEY_FILE} cannot be read; the last key is kept"),
        }
    })))
}

impl ReplicaLoop for WebSshLoop {
    const NAME: &'static str = "webSsh";

    async fn run(self, health: Health, stop: Stop) {
        let Self { config, origins, users, tenants, addresses, connections, open, key } = self;
        let (Some(address), Some(users)) = (config.listen.address(), users) else {
            return stop.asked().await;
        };
        gauge!("bastion_web_ssh_sessions").set(0);
        // The Secret that the file comes from is made by a loop of this process, so it may appear a minute after the start.
        let missing = format!("{KEY_FILE}: {} cannot be read; it is awaited", config.private_key_file);
        if !awaited(key.subscribe(), Option::is_some, missing, &health, &stop).await {
            return;
        }
        let Some(listener) = listen("controllers.webSsh.listen", address, &health, &stop).await else {
            return;
        };
        info!(address = %listener.local_addr().unwrap_or(address), "serving web SSH");
        health.ready();
        let terminals = Arc::new(Terminals {
            access: Access { users, tenants, addresses, port: config.port },
            ssh: SshClient::new(&config.user),
            key,
            connections,
            open,
            limits: Limits { idle: config.idle_timeout.into(), send: config.send_timeout.into() },
        });
        let (browsers, slots) = (watch::Sender::new(()), Slots::new(config.max_connections));
        let closing = Arc::new(Semaphore::new(MOST_CLOSING));
        let endpoint =
            Endpoint { terminals, origins, slots, closing, open: browsers.clone(), stop: stop.clone() };
        // Later than that of a terminal, which says why it ends.
        let send_timeout = Duration::from(config.send_timeout).saturating_add(CLOSE_LIMIT);
        let limits = http_server::Limits { send_timeout, ..http_server::Limits::default() };
        let server = Server { limits, ..Server::new(handler(Arc::new(endpoint))) };
        server.serve(listener, stop.asked()).await;
        // Each browser has a receiver, and drops it when it has left.
        if timeout(STOP_LIMIT, browsers.closed()).await.is_err() {
            warn!("some terminals did not end in time");
        }
    }
}

/// The endpoint that answers requests.
struct Endpoint {
    terminals: Arc<Terminals>,
    origins: Vec<String>,
    slots: Arc<Slots>,
    closing: Arc<Semaphore>,
    /// A browser that has a receiver has not left yet.
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
    /// Answers a request for a WebSocket, on which a terminal begins once the answer is sent.
    fn open(&self, mut request: Request<Bytes>) -> Response<Bytes> {
        let response = match create_response_with_body(&request, Bytes::new) {
            Ok(response) => response,
            Err(error) => return refused(&request, &error),
        };
        if !is_of(request.headers(), &self.origins) {
            info!(origin = ?request.headers().get(ORIGIN), "a page of another origin wanted a terminal");
            return text(StatusCode::FORBIDDEN, "pages of this origin may not open terminals\n");
        }
        let Some(Peer(peer)) = request.extensions().get().copied() else {
            return text(StatusCode::INTERNAL_SERVER_ERROR, "defect of the daemon\n");
        };
        // Reserved before anything else, so that whoever is silent from here on makes room for the next.
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

/// Whether the page that sends a request is of one of these origins. A program that is no browser says none: an origin keeps
/// pages of others from a browser, not people.
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

/// The answer to a request that begins no WebSocket.
fn refused(request: &Request<Bytes>, error: &Error) -> Response<Bytes> {
    let is_upgrade = request.headers().contains_key(UPGRADE);
    if is_upgrade && matches!(error, Error::Protocol(ProtocolError::WrongHttpMethod)) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    let mut response = text(StatusCode::BAD_REQUEST, "Bad Request\n");
    response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}
