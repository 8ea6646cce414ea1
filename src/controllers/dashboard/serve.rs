//! The loop of the dashboard: the HTTP server, its limits and metrics, the orderly end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::FutureExt;
use http::{Method, Request};
use hyper::body::Bytes;
use metrics::{counter, gauge, histogram};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::answer::{Dashboard, settings};
use super::live::{self, Hub};
use super::page::Settings as PageSettings;
use super::route::route;
use super::session::Keys;
use super::{assets, guard};
use crate::clients::oidc::{Provider, Settings};
use crate::config::{DashboardConfig, Identity};
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::controllers::shared::listener::{again, awaited, listen};
use crate::runtime::client::UserClient;
use crate::runtime::files::WatchedFile;
use crate::runtime::http_server::{Handler, Limits, Server};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;

/// The connections beside those of open pages.
const CONNECTIONS: usize = 1_024;
/// The limits of browsers: a form is short, and an Ingress that keeps connections open for a minute closes them before we do.
const LIMITS: Limits = Limits {
    connections: CONNECTIONS,
    long_bodies: 64 << 10,
    // More than a hundred pages.
    answers: 4 << 20,
    body: 64 << 10,
    receive_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(75),
    send_timeout: Duration::from_secs(30),
};
/// How long requests that have begun may take after the daemon was asked to stop.
const STOP_LIMIT: Duration = Duration::from_secs(8);
const SESSION_KEY_FILE: &str = "controllers.dashboard.sessionKeyFile";

/// The keys that seal cookies; `None` until the file is there.
type SessionKeys = Arc<watch::Sender<Option<Arc<Keys>>>>;

/// Serves the dashboard.
pub struct DashboardLoop {
    config: DashboardConfig,
    /// `None` only in `crownlabs plan`, where the loop does not run.
    users: Option<UserClient>,
    /// `None` without an issuer.
    provider: Option<Provider>,
    settings: PageSettings,
    keys: SessionKeys,
    hub: Arc<Hub>,
}

impl ReplicaDefinition for DashboardLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = setup.config.controllers.dashboard.clone();
        let hub = Hub::new(config.max_pages);
        live::declare(set, &hub);
        let keys = SessionKeys::default();
        if !config.session_key_file.is_empty() {
            setup.files.push(key_file(&config.session_key_file, &keys)?);
        }
        let redirect_uri = format!("{}/callback", config.public_url);
        let issuer = Settings {
            issuer: config.issuer_url.clone(),
            client_id: config.client_id.clone(),
            client_secret_file: config.client_secret_file.clone(),
            ca_file: config.ca_file.clone(),
            redirect_uri,
        };
        let provider = if config.issuer_url.is_empty() {
            None
        } else {
            let (provider, file) = Provider::new(issuer)?;
            setup.files.push(file);
            Some(provider)
        };
        let open = Arc::clone(&hub);
        setup.gauges.push(Box::new(move || {
            gauge!("dashboard_open_pages").set(u32::try_from(open.open()).unwrap_or(u32::MAX));
        }));
        Ok(Self { settings: settings(setup.config), config, users: setup.users.clone(), provider, keys, hub })
    }
}

/// Reads the file with the keys that seal cookies, and watches it.
///
/// # Errors
/// When its content cannot be used. Later, the last keys that could be used stay.
fn key_file(file: &str, keys: &SessionKeys) -> anyhow::Result<WatchedFile> {
    if let Ok(text) = std::fs::read(file) {
        let parsed =
            Keys::parse(&text).with_context(|| format!("{SESSION_KEY_FILE}: {file} cannot be used"))?;
        keys.send_replace(Some(Arc::new(parsed)));
    }
    let (kept, path) = (Arc::clone(keys), file.to_owned());
    Ok(WatchedFile::new(SESSION_KEY_FILE, Path::new(file).to_owned(), move |content| {
        match content.map(Keys::parse) {
            Some(Ok(parsed)) => drop(kept.send_replace(Some(Arc::new(parsed)))),
            Some(Err(error)) => {
                warn!(file = path, %error, "{SESSION_KEY_FILE} cannot be used; the keys before it are kept");
            }
            None if kept.borrow().is_none() => {}
            None => warn!(file = path, "{SESSION_KEY_FILE} cannot be read; the last keys are kept"),
        }
    }))
}

impl ReplicaLoop for DashboardLoop {
    const NAME: &'static str = "dashboard";

    async fn run(self, health: Health, stop: Stop) {
        let Self { config, users, provider, settings, keys, hub } = self;
        let (Some(address), Some(client), Some(provider)) = (config.listen.address(), users, provider) else {
            return stop.asked().await;
        };
        let missing =
            format!("{SESSION_KEY_FILE}: {} cannot be read; it is awaited", config.session_key_file);
        if !awaited(keys.subscribe(), Option::is_some, missing, &health, &stop).await {
            return;
        }
        if config.identity == Identity::Impersonate {
            while let Err(error) = client.check_impersonation().await {
                if !again(&error, &health, &stop).await {
                    return;
                }
            }
        }
        let Some(listener) = listen("controllers.dashboard.listen", address, &health, &stop).await else {
            return;
        };
        info!(address = %listener.local_addr().unwrap_or(address), url = config.public_url, "serving the dashboard");
        if !assets::are_pages_live() {
            info!(
                "this build has no live updates: pages are shown anew by a button (build it with the feature `live`)"
            );
        }
        let limits = Limits { connections: CONNECTIONS + config.max_pages, ..LIMITS };
        let dashboard = Dashboard::new(config, settings, client, provider, keys.subscribe(), hub);
        let server = Server { limits, ..Server::new(handler(Arc::new(dashboard))) };
        health.ready();
        tokio::select! {
            () = server.serve(listener, stop.asked()) => {}
            () = async { stop.asked().await; sleep(STOP_LIMIT).await } => warn!("some requests of the dashboard did not end in time"),
        }
    }
}

/// Answers and counts requests.
fn handler(dashboard: Arc<Dashboard>) -> Handler {
    Arc::new(move |request: Request<Bytes>| {
        let dashboard = Arc::clone(&dashboard);
        async move {
            let begin = Instant::now();
            let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
            let route = route(is_get, *request.method() == Method::POST, request.uri().path());
            let name = route.name();
            let answer = guard::protect(dashboard.answer(route, &request).await);
            if name != "health" {
                let code = answer.status().as_u16().to_string();
                counter!("dashboard_requests_total", "route" => name, "code" => code).increment(1);
                histogram!("dashboard_request_duration_seconds", "route" => name).record(begin.elapsed());
            }
            answer
        }
        .boxed()
    })
}
