//! The loop of the dashboard: the HTTP server, its limits and metrics, the graceful shutdown.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::{Bytes, HttpBody as _};
use futures::future::ready;
use futures::{FutureExt, StreamExt};
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use metrics::{counter, gauge, histogram};
use tokio::join;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tower::ServiceExt as _;
use tracing::{info, warn};

use super::app::{App, settings};
use super::http::{assets, headers};
use super::live::broadcast::Broadcast;
use super::live::watches::{self, Announced};
use super::router::{RouteName, router};
use super::session::Keys;
use super::sharing::stores::Shared;
use super::student::Settings as PageSettings;
use super::terminal::web_ssh::WebSsh;
use super::user::users::Users;
use crate::clients::oidc::{Provider, Settings};
use crate::config::{DashboardConfig, Identity, read};
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::controllers::shared::connections::Recorder;
use crate::controllers::shared::listener::{again, awaited, listen};
use crate::runtime::client::UserClient;
use crate::runtime::files::{Awaited, WatchedFile, needed};
use crate::runtime::http_server::{Body, Handler, Limits, Peer, Server};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;

/// The limits for browsers. Forms are short. An Ingress that closes idle connections after a minute does so before the
/// dashboard.
const LIMITS: Limits = Limits {
    // In addition to the streams of open pages. Others wait in the kernel, whose memory for them is small.
    connections: 112,
    long_bodies: 64 << 10,
    // More than a hundred pages.
    answers: 4 << 20,
    body: 64 << 10,
    receive_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(75),
    send_timeout: Duration::from_secs(30),
};
/// The maximum time that running requests have to end during the shutdown.
const STOP_LIMIT: Duration = Duration::from_secs(8);
const SESSION_KEY_FILE: &str = "controllers.dashboard.sessionKeyFile";

/// The keys that seal cookies; `None` until the file exists.
type SessionKeys = Arc<watch::Sender<Option<Arc<Keys>>>>;

/// Serves the dashboard.
pub struct DashboardLoop {
    config: DashboardConfig,
    /// `None` only in `crownlabs plan`, which does not run the loop.
    users: Option<UserClient>,
    /// `None` without an issuer.
    provider: Option<Provider>,
    settings: PageSettings,
    keys: SessionKeys,
    /// Whether the keys were read; `None` without a file, which the configuration does not allow.
    awaited: Option<Awaited>,
    broadcast: Arc<Broadcast>,
    /// The Tenants, whose annotations name ended sessions, and the shared machines.
    shared: Shared,
    announced: Announced,
    /// `None` if it is not configured.
    web_ssh: Option<WebSsh>,
    /// The client for the record of consoles; `None` in the same case as `users`.
    record: Option<Api<ConfigMap>>,
}

impl ReplicaDefinition for DashboardLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = read!(setup.config, controllers.dashboard).clone();
        let broadcast = Broadcast::new(config.max_pages);
        let watches::Signals { instances, tenants } = watches::declare(set, &broadcast);
        let namespace = read!(setup.config, leader_election.namespace);
        let announced = watches::announced(set, &broadcast, namespace);
        let connections = watches::connections(set, &broadcast, namespace);
        let keys = SessionKeys::default();
        let mut awaited = None;
        if !config.session_key_file.is_empty() {
            let (file, waits) = key_file(&config.session_key_file, &keys)?;
            setup.files.push(file);
            awaited = Some(waits);
        }
        let issuer = Settings {
            issuer: config.issuer_url.clone(),
            client_id: config.client_id.clone(),
            client_secret_file: config.client_secret_file.clone(),
            ca_file: config.ca_file.clone(),
            redirect_uri: format!("{}/callback", config.public_url),
        };
        let provider = if config.issuer_url.is_empty() {
            None
        } else {
            let (provider, file) = Provider::new(issuer)?;
            setup.files.push(file);
            let provider = provider.reporting_to(&setup.outages);
            setup.issuer = Some(provider.clone());
            Some(provider)
        };
        let open = Arc::clone(&broadcast);
        setup.gauges.push(Box::new(move || {
            gauge!("dashboard_open_pages").set(u32::try_from(open.open()).unwrap_or(u32::MAX));
        }));
        Ok(Self {
            settings: settings(&mut setup.config),
            web_ssh: WebSsh::new(&config.web_ssh_url)?,
            record: setup.ungated.clone().map(|client| Api::namespaced(client, namespace)),
            config,
            users: setup.users.clone(),
            provider,
            keys,
            awaited,
            broadcast,
            shared: Shared { instances, tenants, connections },
            announced,
        })
    }
}

/// Reads the file with the keys that seal cookies, and watches it.
///
/// # Errors
/// If its content is invalid. If a later version is invalid, the last valid keys stay in use.
fn key_file(file: &str, keys: &SessionKeys) -> anyhow::Result<(WatchedFile, Awaited)> {
    if let Ok(text) = std::fs::read(file) {
        Keys::parse(&text).with_context(|| format!("{SESSION_KEY_FILE}: {file} is invalid"))?;
    }
    let kept = Arc::clone(keys);
    let found = move |keys| drop(kept.send_replace(Some(Arc::new(keys))));
    Ok(needed(SESSION_KEY_FILE, file, Keys::parse, found))
}

impl ReplicaLoop for DashboardLoop {
    const NAME: &'static str = "dashboard";

    async fn run(self, health: Health, stop: Stop) {
        let Self {
            config,
            users,
            provider,
            settings,
            keys,
            awaited: file,
            broadcast,
            shared,
            announced,
            web_ssh,
            record,
        } = self;
        let needs = (config.listen.address(), users, provider, file, record);
        let (Some(address), Some(client), Some(provider), Some(file), Some(record)) = needs else {
            return stop.asked().await;
        };
        if !awaited(file, &health, &stop).await {
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
                "this build has no live updates: pages have a link that reloads them (built after `make assets`, it has updates)"
            );
        }
        let users = Users::new(client, provider, config.identity).with_tenants(Arc::clone(&shared.tenants));
        let app = App::new(config, settings, users, keys.subscribe(), broadcast);
        let app = Arc::new(app.with_announced(announced).with_shared(shared).with_web_ssh(web_ssh));
        let mut recorder = Recorder::new(Arc::clone(&app.consoles), record);
        gauge!("dashboard_open_sockets").set(0);
        health.ready();
        let (client, broadcast) = (app.users.client.clone(), Arc::clone(&app.broadcast));
        let sockets = async {
            stop.asked().await;
            app.sockets.close().await;
        };
        let served = async { join!(server(Arc::clone(&app)).serve(listener, stop.asked()), sockets) };
        tokio::select! {
            ((), ()) = served => {}
            () = client.watch_silence(|| broadcast.open() > 0) => {}
            () = recorder.run() => {}
            () = async { stop.asked().await; sleep(STOP_LIMIT).await } => warn!("some requests of the dashboard did not end in time"),
        }
        recorder.finish().await;
    }
}

/// Creates the server with its limits.
fn server(app: Arc<App>) -> Server {
    Server { limits: LIMITS, ..Server::new(handler(app)) }
}

/// Serves the routes within the limits of each client, and measures the responses.
fn handler(app: Arc<App>) -> Handler {
    let router = router(Arc::clone(&app));
    Arc::new(move |request: Request<Bytes>| {
        let (app, router) = (Arc::clone(&app), router.clone());
        async move {
            let begin = Instant::now();
            let (name, answer) = answer(&app, router, request).await;
            if name != "health" {
                let code = answer.status().as_u16().to_string();
                counter!("dashboard_requests_total", "route" => name, "code" => code).increment(1);
                histogram!("dashboard_request_duration_seconds", "route" => name).record(begin.elapsed());
            }
            headers::secured(answer, app.config.hsts_max_age.get())
        }
        .boxed()
    })
}

/// Returns the name of the route of a request, and the response.
async fn answer(app: &App, router: Router, request: Request<Bytes>) -> (&'static str, Response<Body>) {
    let peer = request.extensions().get().map(|Peer(address)| *address);
    let keys = app.keys.borrow().clone();
    let client = app.limits.client(request.headers(), peer, keys.as_deref());
    let admission = app.limits.request(&client);
    if admission.is_none() {
        return ("other", app.limits.refusal());
    }
    let Ok(answer) = router.oneshot(request.map(axum::body::Body::from)).await;
    let name = answer.extensions().get().map_or("other", |RouteName(name)| *name);
    let (head, body) = headers::protect(answer).into_parts();
    let body = match whole_or_stream(body).await {
        Body::Stream(pieces) => match app.limits.stream(&client) {
            // The stream holds its place.
            Some(place) => Body::stream(pieces.scan(place, |_, piece| ready(Some(piece)))),
            None => return (name, app.limits.refusal()),
        },
        body => body,
    };
    (name, Response::from_parts(head, body))
}

/// Converts the body of a response. A body of known length is already in one piece.
async fn whole_or_stream(body: axum::body::Body) -> Body {
    if body.size_hint().exact().is_some() {
        return axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default().into();
    }
    // A body of the dashboard does not fail.
    Body::stream(body.into_data_stream().filter_map(|piece| ready(piece.ok())))
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::SocketAddr;

    use serde_json::Value;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::clients::oidc::Secret;
    use crate::controllers::dashboard::account::actions::ADD_KEY;
    use crate::controllers::dashboard::session::Session;
    use crate::runtime::api_server::ApiServer;
    use crate::runtime::clock;
    use crate::runtime::http_server::bind;

    /// Returns the state of a dashboard without users.
    async fn app() -> Arc<App> {
        let api = ApiServer::start(|_| (404, Value::Null)).await;
        let client = UserClient::new(&api.config).expect("a client");
        let (provider, _file) = Provider::new(Settings {
            issuer: "https://auth.example.com".to_owned(),
            client_id: "dashboard".to_owned(),
            client_secret_file: String::new(),
            ca_file: String::new(),
            redirect_uri: String::new(),
        })
        .expect("a provider");
        let key = b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let (_, keys) = watch::channel(Some(Arc::new(Keys::parse(key).expect("a key"))));
        let users = Users::new(client, provider, Identity::Token);
        let (config, settings) = (DashboardConfig::default(), PageSettings::default());
        Arc::new(App::new(config, settings, users, keys, Broadcast::new(1)))
    }

    /// Sends a form of the dashboard with a body of this length. Returns the status line of the response.
    async fn send(address: SocketAddr, path: &str, length: usize) -> String {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\nsec-fetch-site: same-origin\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n"
        );
        let body = format!("key={}", "x".repeat(length - 4));
        stream.write_all((head + &body).as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_session_above_its_limit_is_refused_and_another_one_is_not() {
        let listener = bind("test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let app = app().await;
        let keys = app.keys.borrow().clone().expect("keys");
        tokio::spawn(server(app).serve(listener, pending()));
        let get = async |id: &str| {
            let refresh_token = Secret::from("token".to_owned());
            let session = Session { id: id.to_owned(), refresh_token, visited: clock::now() };
            let cookie = session.seal(&keys).expect("a cookie");
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            let head = format!(
                "GET /healthz HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncookie: {cookie}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            answer.starts_with("HTTP/1.1 200 OK\r\n")
        };
        let mut answered = 0;
        while answered < 1_000 && get("one").await {
            answered += 1;
        }
        assert!((100..1_000).contains(&answered), "a burst of {answered}");
        assert!(get("two").await);
    }

    #[tokio::test]
    async fn a_form_of_more_than_64_kib_is_rejected() {
        let listener = bind("test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(server(app().await).serve(listener, pending()));
        for (length, status) in [(64 << 10, "303 See Other"), ((64 << 10) + 1, "413 Payload Too Large")] {
            assert_eq!(send(address, ADD_KEY.path, length).await, format!("HTTP/1.1 {status}"), "{length}");
        }
    }
}
