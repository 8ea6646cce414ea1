//! The loop of the login of machines: the HTTP server, its files and limits, the graceful shutdown.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::FutureExt;
use http::{Request, StatusCode};
use hyper::body::Bytes;
use kube::{Api, Client};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tracing::{info, warn};

use super::codes::UsedCodes;
use super::door::{Door, SessionKeys};
use super::machines::Machines;
use super::relay::Relay;
use crate::config::{LoginConfig, read};
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::controllers::shared::connections::{Connections, Recorder};
use crate::controllers::shared::entrance::{ByManagedWorkspace, ByPersonalNamespace};
use crate::controllers::shared::listener::{awaited, listen};
use crate::controllers::shared::machine_host::HostKey;
use crate::controllers::shared::sealing::Keys;
use crate::runtime::clock;
use crate::runtime::files::{Awaited, WatchedFile, needed};
use crate::runtime::http_server::{Body, Handler, Limits, Server, text};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The limits for gateways, which open a connection for each request of a browser. Requests have no body.
const LIMITS: Limits = Limits {
    connections: 1_024,
    long_bodies: 64 << 10,
    answers: 4 << 20,
    body: 64 << 10,
    receive_timeout: Duration::from_secs(5),
    // An Envoy keeps idle connections for an hour by default, and repeats a request on a connection that was closed.
    idle_timeout: Duration::from_secs(75),
    send_timeout: Duration::from_secs(10),
};
/// The maximum time that running requests have to end during the shutdown.
const STOP_LIMIT: Duration = Duration::from_secs(8);
/// The configuration keys of the files.
const SESSION_KEY_FILE: &str = "controllers.login.sessionKeyFile";
const HOST_KEY_FILE: &str = "controllers.login.hostKeyFile";

/// The loop that answers the authentication requests.
pub struct LoginLoop {
    config: LoginConfig,
    /// `None` only in `crownlabs plan`, where the loop does not run.
    door: Option<Arc<Door>>,
    /// The relay of peers, and the record of their desktops; `None` if the relay is off.
    relay: Option<(Arc<Relay>, Recorder)>,
    /// Whether the file with the session keys was read.
    files: Vec<Awaited>,
}

impl ReplicaDefinition for LoginLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = read!(setup.config, controllers.login).clone();
        let base = read!(setup.config, controllers.instance.website_base_url).clone();
        let sign_in = read!(setup.config, controllers.instance.access.daemon.sign_in_url).clone();
        let namespace = read!(setup.config, leader_election.namespace).clone();
        let instances = set.store(&Selection::ALL).get();
        let has_relay = config.peers_listen.address().is_some();
        let addresses = has_relay.then(|| InstanceAddresses::declare(set, &instances));
        let templates = set.store(&Selection::ALL).get();
        let tenants = set.store(&Selection::ALL).index::<ByManagedWorkspace>();
        let tenants = tenants.index::<ByPersonalNamespace>().get();
        let machines = Arc::new(Machines::new(instances, templates, tenants));
        let keys = SessionKeys::default();
        let mut files = Vec::new();
        if !config.session_key_file.is_empty() {
            let file = config.session_key_file.as_str();
            if let Ok(text) = std::fs::read(file) {
                Keys::parse(&text).with_context(|| format!("{SESSION_KEY_FILE}: {file} is invalid"))?;
            }
            let kept = Arc::clone(&keys);
            let found = move |keys| drop(kept.send_replace(Some(Arc::new(keys))));
            let (file, waits) = needed(SESSION_KEY_FILE, file, Keys::parse, found);
            setup.files.push(file);
            files.push(waits);
        }
        if !config.host_key_file.is_empty() {
            setup.files.push(host_key(&config.host_key_file, Arc::clone(&machines)));
        }
        let api = setup.ungated.clone().map(|client: Client| Api::namespaced(client, &namespace));
        let door = api.clone().map(|api| {
            let codes = UsedCodes::new(api);
            Arc::new(Door { base, sign_in, machines, keys, codes })
        });
        let parts = door.clone().zip(api).zip(addresses);
        let relay = parts.map(|((door, api), addresses)| {
            let connections = Arc::<Connections>::default();
            let recorder = Recorder::new(Arc::clone(&connections), api);
            (Arc::new(Relay::new(door, addresses, connections)), recorder)
        });
        Ok(Self { config, door, relay, files })
    }
}

impl ReplicaLoop for LoginLoop {
    const NAME: &'static str = "login";

    async fn run(self, health: Health, stop: Stop) {
        let Self { config, door, relay, files } = self;
        let (Some(address), Some(door)) = (config.listen.address(), door) else {
            return stop.asked().await;
        };
        for file in files {
            if !awaited(file, &health, &stop).await {
                return;
            }
        }
        let Some(listener) = listen("controllers.login.listen", address, &health, &stop).await else {
            return;
        };
        info!(address = %listener.local_addr().unwrap_or(address), "serving the login of machines");
        let peers = if let (Some(relay), Some(address)) = (relay, config.peers_listen.address()) {
            let Some(listener) = listen("controllers.login.peersListen", address, &health, &stop).await
            else {
                return;
            };
            info!(address = %listener.local_addr().unwrap_or(address), "serving the desktops of peers");
            Some((relay, listener))
        } else {
            None
        };
        health.ready();
        let server = Server { limits: LIMITS, ..Server::new(handler(door)) };
        let work = async { tokio::join!(server.serve(listener, stop.asked()), serve_peers(peers, &stop)) };
        tokio::select! {
            ((), ()) = work => {}
            () = async { stop.asked().await; sleep(STOP_LIMIT).await } => warn!("some logins to machines did not end in time"),
        }
    }
}

/// Serves the desktops of peers, if the relay is on, and records them.
async fn serve_peers(peers: Option<((Arc<Relay>, Recorder), TcpListener)>, stop: &Stop) {
    let Some(((relay, mut recorder), listener)) = peers else { return };
    tokio::select! {
        () = relay.serve(listener, stop.asked()) => {}
        () = recorder.run() => {}
    }
    recorder.finish().await;
}

/// Watches the file with the key of the host names. The daemon creates it with the first machine, so the login starts
/// without it: there is no machine then.
fn host_key(path: &str, machines: Arc<Machines>) -> WatchedFile {
    let shown = path.to_owned();
    WatchedFile::new(HOST_KEY_FILE, PathBuf::from(path), move |content| {
        let content = content.as_deref().map_err(ToString::to_string);
        match content.and_then(HostKey::parse) {
            Ok(key) => machines.set_key(key),
            Err(problem) => warn!(
                "{HOST_KEY_FILE}: {shown} cannot be used: {problem}. The last valid version stays in use; without one, no \
                 machine can be opened"
            ),
        }
    })
}

fn handler(door: Arc<Door>) -> Handler {
    Arc::new(move |request: Request<Bytes>| {
        let door = Arc::clone(&door);
        async move {
            let answer = match request.uri().path() {
                "/healthz" | "/ready" => text(StatusCode::OK, "ok"),
                _ => door.answer(&request, clock::now()).await,
            };
            answer.map(Body::from)
        }
        .boxed()
    })
}
