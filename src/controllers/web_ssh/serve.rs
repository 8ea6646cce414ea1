//! The loop of web SSH: the HTTP server, the number of open terminals, the orderly end.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::FutureExt;
use futures::future::join;
use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Bytes;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use metrics::gauge;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tracing::{debug, info, warn};

use super::access::Access;
use super::bridge::Limits;
use super::session::{End, Terminals, farewell};
use crate::capture::ConnectionCounter;
use crate::clients::ssh::{PrivateKey, SshClient};
use crate::config::WebSshConfig;
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::controllers::shared::listener::listen;
use crate::controllers::{ReplicaDefinition, Setup};
use crate::runtime::client::UserReader;
use crate::runtime::files::WatchedFile;
use crate::runtime::http_server::{Handler, Server, text};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;

/// The longest message of a browser, in bytes.
const LONGEST_MESSAGE: usize = 1 << 20;
/// The buffers of a WebSocket, in bytes: one for reading, one in which messages are gathered before they are sent. Each
/// open terminal has both.
const BUFFER: usize = 4 << 10;
/// How long the terminals have to end at a stop.
const STOP_LIMIT: Duration = Duration::from_secs(8);

/// Serves terminals.
pub struct WebSshLoop {
    config: WebSshConfig,
    /// `None` only in `crownlabs plan`, where the loop does not run.
    users: Option<UserReader>,
    addresses: InstanceAddresses,
    connections: Arc<ConnectionCounter>,
    key: Key,
}

impl ReplicaDefinition for WebSshLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = setup.config.controllers.web_ssh.clone();
        let (users, key) = (setup.users.clone(), Key::default());
        setup.files.extend(key_file(&config.private_key_file, &key)?);
        let connections = Arc::clone(&setup.web_ssh_connections);
        let addresses = InstanceAddresses::counted(setup, set, &connections, config.port);
        Ok(Self { config, users, addresses, connections, key })
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
        let Self { config, users, addresses, connections, key } = self;
        let (Some(address), Some(users)) = (config.listen.address(), users) else {
            return stop.asked().await;
        };
        gauge!("bastion_web_ssh_sessions").set(0);
        if !is_there(&key, &config.private_key_file, &health, &stop).await {
            return;
        }
        let Some(listener) = listen("controllers.webSsh.listen", address, &health, &stop).await else {
            return;
        };
        info!(address = %listener.local_addr().unwrap_or(address), "serving web SSH");
        health.ready();
        let terminals = Arc::new(Terminals {
            access: Access { users, addresses, port: config.port },
            ssh: SshClient::new(&config.user),
            key,
            connections,
            limits: Limits { idle: config.idle_timeout.into(), send: config.send_timeout.into() },
        });
        let most = config.max_connections;
        let slots = Arc::new(Semaphore::new(most));
        let door = Door { terminals, slots: Arc::clone(&slots), stop: stop.clone() };
        let ended = async {
            stop.asked().await;
            // As many as there are: all terminals have ended then.
            let all = u32::try_from(most).unwrap_or(u32::MAX);
            drop(slots.acquire_many(all).await);
        };
        tokio::select! {
            _ = join(Server::new(handler(Arc::new(door))).serve(listener, stop.asked()), ended) => {}
            () = async { stop.asked().await; sleep(STOP_LIMIT).await } => warn!("some terminals did not end in time"),
        }
    }
}

/// Waits for the key; `false` if the process is asked to stop before. The Secret that it comes from is made by a loop of
/// this process, so the file may appear a minute after the start.
async fn is_there(key: &Key, file: &str, health: &Health, stop: &Stop) -> bool {
    let mut there = key.subscribe();
    if there.borrow().is_none() {
        health.failing(format!("{KEY_FILE}: {file} cannot be read; it is awaited"));
    }
    tokio::select! {
        found = there.wait_for(Option::is_some) => found.is_ok(),
        () = stop.asked() => false,
    }
}

/// What requests are answered by.
struct Door {
    terminals: Arc<Terminals>,
    /// One for each terminal that may be open.
    slots: Arc<Semaphore>,
    stop: Stop,
}

fn handler(door: Arc<Door>) -> Handler {
    Arc::new(move |request| {
        let response = match request.uri().path() {
            "/webssh" => door.open(request),
            "/healthz" | "/ready" => text(StatusCode::OK, "ok"),
            _ => text(StatusCode::NOT_FOUND, "no such page\n"),
        };
        ready(response).boxed()
    })
}

impl Door {
    /// Answers a request for a WebSocket, on which a terminal begins once the answer is sent.
    fn open(&self, mut request: Request<Bytes>) -> Response<Bytes> {
        let response = match create_response_with_body(&request, Bytes::new) {
            Ok(response) => response,
            Err(error) => return refused(&request, &error),
        };
        // Reserved before anything else, so that two browsers cannot take the last one.
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
        let upgrade = hyper::upgrade::on(&mut request);
        let (terminals, stop) = (Arc::clone(&self.terminals), self.stop.clone());
        tokio::spawn(async move {
            terminal(upgrade, slot.is_some().then_some(&*terminals), &stop).await;
            drop(slot);
        });
        response
    }
}

/// Serves a terminal, or, without `terminals`, says that there are too many.
async fn terminal(upgrade: OnUpgrade, terminals: Option<&Terminals>, stop: &Stop) {
    let connection = match upgrade.await {
        Ok(connection) => TokioIo::new(connection),
        Err(error) => return debug!(%error, "a browser left before its terminal began"),
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_write_buffer_size(16 * BUFFER)
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE));
    let mut socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    let end = match terminals {
        Some(terminals) => tokio::select! {
            end = terminals.serve(&mut socket) => end,
            () = stop.asked() => End::Stopping,
        },
        None => End::Full,
    };
    farewell(socket, end).await;
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
