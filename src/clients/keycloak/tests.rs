//! The client against a scripted server: cases that Keycloak itself causes only when it is down, old, or behind a
//! broken server. The operations are tested with a real Keycloak in `tests/integration`.

use std::convert::Infallible;

use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::MutexGuard;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;
use crate::config::ConfigDuration;

/// A request that the server received.
#[derive(Clone)]
struct Seen {
    method: Method,
    path: String,
    authorization: String,
    body: String,
}

type Script = dyn Fn(&Seen) -> (u16, Value) + Send + Sync;

/// A server that responds according to a script, and a client of it.
struct Scripted {
    keycloak: Keycloak,
    seen: Arc<Mutex<Vec<Seen>>>,
    url: String,
    folder: TempDir,
}

const SECRET: &str = "s3cret-of-the-client";

impl Scripted {
    async fn start(gate: Gate, script: impl Fn(&Seen) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(serve(listener, Arc::clone(&seen), Arc::new(script)));
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&url, &folder);
        std::fs::write(&settings.client_secret_file, SECRET).unwrap();
        let keycloak = Keycloak::new(&settings, gate).unwrap();
        Self { keycloak, seen, url, folder }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock()
    }

    /// Method and path of each request, relative to the realm.
    fn requests(&self) -> Vec<String> {
        let short = |seen: &Seen| {
            let path = seen.path.replace("/protocol/openid-connect", "");
            format!("{} {}", seen.method, path.rsplit("realms/r/").next().unwrap_or_default())
        };
        self.seen().iter().map(short).collect()
    }
}

fn settings(url: &str, folder: &TempDir) -> KeycloakConfig {
    KeycloakConfig {
        url: url.to_owned(),
        realm: "r".to_owned(),
        client_id: "operator".to_owned(),
        client_secret_file: folder.path().join("secret").display().to_string(),
        roles_client_id: "api".to_owned(),
        timeout: ConfigDuration::from_secs(10),
        ..KeycloakConfig::default()
    }
}

async fn serve(listener: TcpListener, seen: Arc<Mutex<Vec<Seen>>>, script: Arc<Script>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
            async move {
                let (head, body) = request.into_parts();
                let authorization = head.headers.get(header::AUTHORIZATION);
                let one = Seen {
                    method: head.method,
                    path: head.uri.to_string(),
                    authorization: authorization.map_or("", |value| value.to_str().unwrap()).to_owned(),
                    body: String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap(),
                };
                let (status, body) = script(&one);
                seen.lock().push(one);
                let mut answer = Response::builder().status(status);
                if let Some(location) = body["location"].as_str() {
                    answer = answer.header(header::LOCATION, location);
                }
                Ok::<_, Infallible>(answer.body(Full::new(Bytes::from(body.to_string()))).unwrap())
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn is_token(seen: &Seen) -> bool {
    seen.path.ends_with("/token")
}

fn token(value: &str) -> (u16, Value) {
    (200, json!({"access_token": value, "expires_in": 300, "token_type": "Bearer"}))
}

#[tokio::test(start_paused = true)]
async fn a_token_is_requested_once_and_used_by_every_call() {
    let server =
        Scripted::start(Gate::open(), |seen| if is_token(seen) { token("t1") } else { (200, json!([])) });
    let server = server.await;
    for _ in 0..3 {
        assert_eq!(server.keycloak.find_user("Ada").await, Ok(None));
    }
    let find = "GET users?username=ada&exact=true&briefRepresentation=false";
    assert_eq!(server.requests(), ["POST token", find, find, find]);
    let seen = server.seen();
    assert_eq!(seen[0].body, "grant_type=client_credentials&client_id=operator");
    assert!(seen[0].authorization.starts_with("Basic "));
    assert!(seen[1..].iter().all(|seen| seen.authorization == "Bearer t1"));
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_rejected_token_is_repeated_once() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = Scripted::start(Gate::open(), move |seen| match &*seen.authorization {
        _ if is_token(seen) => {
            token(&format!("t{}", count.fetch_add(1, std::sync::atomic::Ordering::SeqCst)))
        }
        "Bearer t0" => (401, json!({"error": "HTTP 401 Unauthorized"})),
        _ => (204, Value::Null),
    });
    let server = server.await;
    let update = difference(&user(), &wanted()).unwrap();
    assert_eq!(server.keycloak.update_user("1", &update).await, Ok(()));
    assert_eq!(server.requests(), ["POST token", "PUT users/1", "POST token", "PUT users/1"]);
    let seen = server.seen();
    assert_eq!(seen[1].body, seen[3].body, "the same call");
    assert_eq!(seen[3].authorization, "Bearer t1");
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_with_a_rejected_token_share_the_next_token() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = Scripted::start(Gate::open(), move |seen| match &*seen.authorization {
        _ if is_token(seen) => {
            token(&format!("t{}", count.fetch_add(1, std::sync::atomic::Ordering::SeqCst)))
        }
        "Bearer t0" => (401, json!({"error": "HTTP 401 Unauthorized"})),
        _ => (200, json!([])),
    });
    let server = server.await;
    let find = || server.keycloak.find_user("ada");
    let found = futures::future::join3(find(), find(), find()).await;
    assert_eq!(found, (Ok(None), Ok(None), Ok(None)));
    let tokens = server.requests().iter().filter(|request| *request == "POST token").count();
    assert_eq!(tokens, 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_rejected_twice_fails() {
    let refuse = |seen: &Seen| if is_token(seen) { token("t") } else { (401, json!({"error": "no"})) };
    let server = Scripted::start(Gate::open(), refuse).await;
    let error = server.keycloak.find_user("ada").await.unwrap_err();
    assert_eq!(error.reason(), "KeycloakUnauthorized");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn no_call_is_made_without_a_token() {
    let refuse = |seen: &Seen| {
        let refusal = json!({"error": "unauthorized_client", "error_description": "Invalid client"});
        if is_token(seen) { (401, refusal) } else { (200, json!([])) }
    };
    let server = Scripted::start(Gate::open(), refuse).await;
    let error = server.keycloak.find_user("ada").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Keycloak does not accept the client operator: unauthorized_client: Invalid client; check \
         integrations.keycloak.clientId, the content of integrations.keycloak.clientSecretFile, and that the client has a service account"
    );
    assert_eq!(server.requests(), ["POST token"]);
}

#[tokio::test(start_paused = true)]
async fn errors_never_repeat_the_response_to_a_token_request() {
    // Another server at the address may echo the request.
    for status in [200, 302, 400, 401, 403, 404, 405, 500] {
        let echo = move |seen: &Seen| (status, json!({"headers": seen.authorization, "body": seen.body}));
        let server = Scripted::start(Gate::open(), echo).await;
        let error = server.keycloak.find_user("ada").await.unwrap_err();
        let text = format!("{error} {error:?} {:?}", server.keycloak);
        let basic = server.seen()[0].authorization.replace("Basic ", "");
        assert!(!text.contains(SECRET) && !text.contains(&basic), "{status}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_reads_succeed_and_writes_are_not_sent() {
    let gate = Gate::open();
    let server =
        Scripted::start(gate.clone(), |seen| if is_token(seen) { token("t") } else { (200, json!([])) });
    let server = server.await;
    gate.close();
    assert_eq!(server.keycloak.create_user(&wanted()).await, Err(KeycloakError::NotLeader));
    assert_eq!(server.keycloak.delete_user("1").await, Err(KeycloakError::NotLeader));
    assert_eq!(server.keycloak.find_user("ada").await, Ok(None));
    let asked = server.requests();
    assert!(asked.iter().all(|request| request == "POST token" || request.starts_with("GET ")), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_while_a_token_is_fetched_stops_the_change() {
    let gate = Gate::open();
    let lease = gate.clone();
    let lose = move |seen: &Seen| {
        lease.close();
        if is_token(seen) { token("t") } else { (204, Value::Null) }
    };
    let server = Scripted::start(gate, lose).await;
    assert_eq!(server.keycloak.delete_user("1").await, Err(KeycloakError::NotLeader));
    assert_eq!(server.requests(), ["POST token"]);
}

#[tokio::test(start_paused = true)]
async fn the_roles_client_is_looked_up_once_and_again_after_its_deletion() {
    let server = Scripted::start(Gate::open(), |seen| match &*seen.path {
        _ if is_token(seen) => token("t"),
        path if path.contains("/clients?") => (200, json!([{"id": "c", "clientId": "api"}])),
        path if path.ends_with("/roles/gone") => (404, json!({"error": "Could not find client"})),
        path if path.ends_with("/roles/none") => (404, json!({"error": "Could not find role"})),
        _ => (200, json!({"id": "7", "name": "some"})),
    });
    let server = server.await;
    assert!(server.keycloak.role("some").await.unwrap().is_some());
    assert_eq!(server.keycloak.role("none").await, Ok(None));
    assert_eq!(server.keycloak.delete_role("none").await, Ok(()));
    let error = server.keycloak.role("gone").await.unwrap_err();
    assert_eq!(error.to_string(), "Keycloak cannot find a role: Could not find client");
    assert!(server.keycloak.role("some").await.is_ok());
    let lookups = server.requests().iter().filter(|request| request.contains("clients?")).count();
    assert_eq!(lookups, 2);
}

#[tokio::test(start_paused = true)]
async fn a_404_of_a_proxy_does_not_mean_that_a_user_is_missing() {
    // The reverse proxy in front of Keycloak does not reach it.
    let lost = |seen: &Seen| if is_token(seen) { token("t") } else { (404, json!("no such page")) };
    let server = Scripted::start(Gate::open(), lost).await;
    let error = server.keycloak.delete_user("1").await.unwrap_err();
    assert_eq!(error.reason(), "KeycloakBadAnswer");
    assert_eq!(server.keycloak.delete_role("x").await.unwrap_err().reason(), "KeycloakBadAnswer");
}

#[tokio::test(start_paused = true)]
async fn errors_do_not_repeat_responses_of_an_unknown_form() {
    let strange =
        |seen: &Seen| if is_token(seen) { token("t") } else { (200, json!({"email": "ada@example.org"})) };
    let server = Scripted::start(Gate::open(), strange).await;
    let errors = [
        server.keycloak.find_user("ada").await.unwrap_err(),
        server.keycloak.user_roles("1").await.unwrap_err(),
        server.keycloak.create_user(&wanted()).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.reason(), "KeycloakBadAnswer");
        assert!(!error.to_string().contains('@'), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_identifier_of_a_new_user_is_read_from_the_location() {
    let created = |seen: &Seen| {
        let location = json!({"location": "http://k/admin/realms/r/users/0b5c-1"});
        if is_token(seen) { token("t") } else { (201, location) }
    };
    let server = Scripted::start(Gate::open(), created).await;
    assert_eq!(server.keycloak.create_user(&wanted()).await.as_deref(), Ok("0b5c-1"));
    let body: Value = serde_json::from_str(&server.seen()[1].body).unwrap();
    let expected = json!({
        "username": "ada.rossi",
        "email": "ada@example.org",
        "firstName": "Ada",
        "lastName": "Rossi",
        "enabled": true,
        "emailVerified": false,
        "requiredActions": ["UPDATE_PASSWORD", "VERIFY_EMAIL"],
    });
    assert_eq!(body, expected);
}

#[tokio::test(start_paused = true)]
async fn removing_an_empty_list_of_roles_removes_no_roles() {
    let server = Scripted::start(Gate::open(), |_| (500, Value::Null)).await;
    assert_eq!(server.keycloak.remove_roles("1", &[]).await, Ok(()));
    assert_eq!(server.keycloak.add_roles("1", &[]).await, Ok(()));
    assert!(server.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_to_a_silent_server_times_out() {
    // The server accepts connections but never responds.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let settings = KeycloakConfig { timeout: ConfigDuration::from_millis(50), ..settings(&url, &folder) };
    std::fs::write(&settings.client_secret_file, SECRET).unwrap();
    let keycloak = Keycloak::new(&settings, Gate::open()).unwrap();
    let error = keycloak.find_user("ada").await.unwrap_err();
    assert_eq!(error.to_string(), format!("Keycloak cannot be reached at {url}: no answer within 50ms"));
    assert!(error.is_transient());
}

#[tokio::test(start_paused = true)]
async fn the_error_names_an_unreachable_server() {
    let server = Scripted::start(Gate::open(), |_| (200, Value::Null)).await;
    // Nothing listens at port 1.
    let url = "http://127.0.0.1:1";
    let keycloak = Keycloak::new(&settings(url, &server.folder), Gate::open()).unwrap();
    let error = keycloak.find_user("ada").await.unwrap_err();
    assert_eq!(error.reason(), "KeycloakUnreachable");
    assert!(error.to_string().starts_with(&format!("Keycloak cannot be reached at {url}: ")), "{error}");
    assert!(!error.to_string().contains("users"), "the rest of the URL may contain a user name: {error}");
    assert_ne!(url, server.url);
}

#[tokio::test(start_paused = true)]
async fn reading_an_endless_response_stops_at_the_limit() {
    let long = |seen: &Seen| if is_token(seen) { token("t") } else { (200, json!("x".repeat(5 << 20))) };
    let server = Scripted::start(Gate::open(), long).await;
    let error = server.keycloak.find_user("ada").await.unwrap_err();
    assert_eq!(error.reason(), "KeycloakBadAnswer");
    assert!(error.to_string().contains("longer than 4 MiB"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn every_request_is_counted() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    // The recorder is for this thread only. The test runs on it.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let server = Scripted::start(Gate::open(), |seen| match &*seen.path {
        _ if is_token(seen) => token("t"),
        path if path.contains("/clients?") => (503, Value::Null),
        _ => (200, json!([])),
    });
    let server = server.await;
    assert!(server.keycloak.find_user("ada").await.is_ok());
    assert!(server.keycloak.role("x").await.is_err());
    let unreachable = Keycloak::new(&settings("http://127.0.0.1:1", &server.folder), Gate::open()).unwrap();
    assert!(unreachable.find_user("ada").await.is_err());
    let text = handle.render();
    for (method, operation, code) in [
        ("POST", "token", "200"),
        ("POST", "token", "<error>"),
        ("GET", "find_user", "200"),
        ("GET", "roles_client", "503"),
    ] {
        let series = format!("{{method=\"{method}\",operation=\"{operation}\",code=\"{code}\"}} 1");
        assert!(text.contains(&format!("keycloak_requests_total{series}")), "{series} not in:\n{text}");
    }
    assert!(text.contains("keycloak_request_duration_seconds_count{operation=\"find_user\"} 1"), "{text}");
}

#[test]
fn the_error_names_certificates_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("ca.crt");
    let settings =
        KeycloakConfig { ca_file: missing.display().to_string(), ..settings("https://a.b", &folder) };
    let error = Keycloak::new(&settings, Gate::open()).unwrap_err().to_string();
    let expected = "ca.crt cannot be used: it does not exist; create it, or correct the path";
    assert!(error.starts_with("integrations.keycloak.caFile: /") && error.ends_with(expected), "{error}");
}

fn wanted() -> WantedUser {
    let text = str::to_owned;
    WantedUser {
        username: text("ada.rossi"),
        email: text("ada@example.org"),
        first_name: text("Ada"),
        last_name: text("Rossi"),
    }
}

fn user() -> User {
    serde_json::from_value(json!({"id": "1", "username": "ada.rossi"})).unwrap()
}
