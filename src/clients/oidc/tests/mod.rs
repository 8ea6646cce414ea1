//! The client against a server that sends wrong responses or none. A real provider does neither; logins at a real one
//! are tested in `tests/dashboard`.

mod server;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::future::join3;
use parking_lot::Mutex as Lock;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

pub use self::server::Reply;
use self::server::{Script, serve};
use super::keys::tests::signed;
use super::*;

const CODE: &str = "c0de";
const CLIENT_SECRET: &str = "s3cr+t %25:";
const REFRESH_TOKEN: &str = "r3fresh";
/// The signature of ID tokens.
const SIGNATURE: &str = "c2lnbmF0dXJl";
const REDIRECT_URI: &str = "https://labs.example.com/callback";

/// A server, and a client of it.
pub struct Issuer {
    pub provider: Provider,
    pub url: String,
    script: Arc<Script>,
    folder: TempDir,
}

impl Issuer {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.path().join("ca.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join("secret"), format!("{CLIENT_SECRET}\n")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![made.cert.der().clone()],
                made.signing_key.serialize_der().try_into().unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/realms/labs", listener.local_addr().unwrap());
        let script = Arc::new(Script {
            discovery: Lock::new(Reply::Json(200, document(&url))),
            answer: Lock::new(Reply::Silence),
            keys: Lock::new(Reply::Silence),
            seen: Lock::default(),
            arrived: Notify::new(),
        });
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&script)));
        let provider = Provider::new(settings(&url, &folder)).unwrap().0;
        Self { provider, url, script, folder }
    }

    pub fn answers(&self, reply: Reply) {
        *self.script.answer.lock() = reply;
    }

    /// Sets the response with the keys.
    pub fn has_keys(&self, reply: Reply) {
        *self.script.keys.lock() = reply;
    }

    pub fn describes_itself(&self, reply: Reply) {
        *self.script.discovery.lock() = reply;
    }

    pub fn paths(&self) -> Vec<String> {
        self.script.seen.lock().iter().map(|seen| seen.path.clone()).collect()
    }

    /// A response with tokens. `changes` replace claims of the ID token.
    pub fn tokens(&self, changes: &Value) -> Value {
        let claims = self.claims(changes);
        let [header, claims] =
            [json!({"alg": "RS256"}), claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        json!({
            "access_token": "a.b.c", "id_token": format!("{header}.{claims}.{SIGNATURE}"), "refresh_token": REFRESH_TOKEN,
        })
    }

    /// The claims of an ID token.
    pub fn claims(&self, changes: &Value) -> Value {
        let mut claims = json!({
            "iss": self.url, "aud": "dashboard", "azp": "dashboard", "exp": 1_300, "sub": "7", "nonce": attempt().nonce,
        });
        json_patch::merge(&mut claims, changes);
        claims
    }

    async fn exchange(&self) -> Result<Tokens, Error> {
        self.provider.exchange(CODE, &attempt(), now()).await
    }
}

fn settings(issuer: &str, folder: &TempDir) -> Settings {
    let file = |name: &str| folder.path().join(name).display().to_string();
    Settings {
        issuer: issuer.to_owned(),
        client_id: "dashboard".to_owned(),
        client_secret_file: file("secret"),
        ca_file: file("ca.crt"),
        redirect_uri: REDIRECT_URI.to_owned(),
    }
}

fn attempt() -> Attempt {
    let [state, nonce, verifier] = ["st@te", "n0nce", "ver1fier"].map(str::to_owned);
    Attempt { state, nonce, verifier }
}

/// A token with these claims, and a response with the key that signed it.
pub fn signed_token(claims: &Value) -> (Secret, Reply) {
    let (token, key) = signed(&json!({"alg": "ES256", "kid": "one"}), claims);
    (token.into(), Reply::Json(200, json!({"keys": [key]})))
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

/// The description of an issuer.
pub fn document(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/auth"),
        "token_endpoint": format!("{issuer}/token"),
        "end_session_endpoint": format!("{issuer}/logout"),
        "jwks_uri": format!("{issuer}/keys"),
    })
}

/// Asserts that a text contains no secret.
fn assert_says_nothing(text: &str) {
    let Attempt { nonce, verifier, .. } = attempt();
    for secret in [CODE, CLIENT_SECRET, REFRESH_TOKEN, SIGNATURE, &nonce, &verifier] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
}

/// Asserts that a call has failed with this kind of error and these words.
pub fn assert_fails<T: std::fmt::Debug>(result: Result<T, Error>, kind: fn(String) -> Error, words: &[&str]) {
    let error = result.expect_err("it fails");
    assert_says_nothing(&format!("{error} {error:?}"));
    assert_eq!(error, kind(error.to_string()), "{error:?}");
    for part in words {
        assert!(error.to_string().contains(part), "{part:?} is not in {error}");
    }
}

#[tokio::test]
async fn a_session_begins_is_refreshed_and_ends() {
    let issuer = Issuer::start().await;
    let url = issuer.provider.authorize_url(&attempt(), "it").await.unwrap();
    assert_says_nothing(&url.replace(&attempt().nonce, ""));
    let expected = format!(
        "{}/auth?response_type=code&client_id=dashboard&redirect_uri=https%3A%2F%2Flabs%2Eexample%2Ecom%2Fcallback&scope=openid\
         &state=st%40te&nonce=n0nce&code_challenge={}&code_challenge_method=S256&ui_locales=it",
        issuer.url,
        utf8_percent_encode(&attempt().challenge(), NON_ALPHANUMERIC),
    );
    assert_eq!(url, expected);
    issuer.answers(Reply::Json(200, issuer.tokens(&json!({}))));
    let tokens = issuer.exchange().await.unwrap();
    assert_says_nothing(&format!("{tokens:?}"));
    assert_eq!(tokens.expires.as_second(), 1_300);
    let refresh_token = tokens.refresh_token.unwrap();
    assert_eq!(refresh_token.expose(), REFRESH_TOKEN);
    // A later ID token belongs to no login.
    issuer.answers(Reply::Json(200, issuer.tokens(&json!({"nonce": null, "exp": 1_600}))));
    assert_eq!(issuer.provider.refresh(&refresh_token, now()).await.unwrap().expires.as_second(), 1_600);
    issuer.answers(Reply::Text(204, String::new()));
    issuer.provider.logout(&refresh_token).await.unwrap();
    // Another replica has ended the session.
    issuer.answers(Reply::Json(400, json!({"error": "invalid_grant"})));
    issuer.provider.logout(&refresh_token).await.unwrap();
    assert_eq!(
        issuer.paths(),
        ["/.well-known/openid-configuration", "/token", "/token", "/logout", "/logout"]
    );
    let seen = issuer.script.seen.lock();
    assert_eq!(seen[0].authorization, "");
    let client = format!("Basic {}", STANDARD.encode("dashboard:s3cr%2Bt%20%2525%3A"));
    assert!(seen[1..].iter().all(|seen| seen.authorization == client), "{}", seen[1].authorization);
    let redirect = "https%3A%2F%2Flabs.example.com%2Fcallback";
    let code =
        format!("grant_type=authorization_code&code={CODE}&redirect_uri={redirect}&code_verifier=ver1fier");
    assert_eq!(seen[1].body, code);
    assert_eq!(seen[2].body, format!("grant_type=refresh_token&refresh_token={REFRESH_TOKEN}"));
    assert_eq!(seen[3].body, format!("refresh_token={REFRESH_TOKEN}"));
}

#[tokio::test]
async fn a_response_without_a_token_names_the_setting_to_check() {
    let issuer = Issuer::start().await;
    let lie = |changes: Value| Reply::Json(200, issuer.tokens(&changes));
    let error = |status, error: &str| Reply::Json(status, json!({"error": error, "error_description": CODE}));
    let url = "controllers.dashboard.issuerUrl";
    let unsigned = format!("e30.e30.{SIGNATURE}");
    for (reply, kind, words) in [
        (error(400, "invalid_grant"), Error::Ended as fn(String) -> Error, &["ended"][..]),
        (error(401, "invalid_client"), Error::Refused, &["dashboard.clientId", "dashboard.clientSecretFile"]),
        (error(401, "unauthorized_client"), Error::Refused, &["dashboard.clientId"]),
        (error(400, "invalid_scope"), Error::Refused, &[url, "400 Bad Request invalid_scope"]),
        (error(503, "invalid_grant"), Error::Away, &["503"]),
        (error(429, "slow_down"), Error::Away, &["429"]),
        (Reply::Text(500, REFRESH_TOKEN.to_owned()), Error::Away, &["500"]),
        (Reply::Text(404, REFRESH_TOKEN.to_owned()), Error::Refused, &[url, "404 Not Found"]),
        (Reply::Redirect, Error::Refused, &[url, "302 Found"]),
        (Reply::Text(200, format!("<html>{REFRESH_TOKEN}")), Error::Refused, &[url, "no tokens"]),
        (Reply::Json(200, json!({"id_token": 1})), Error::Refused, &[url, "no tokens"]),
        (Reply::Json(200, json!({"refresh_token": REFRESH_TOKEN})), Error::Refused, &[url, "no ID token"]),
        (Reply::Json(200, json!({"id_token": unsigned})), Error::Refused, &[url, "not a signed"]),
        (Reply::Text(200, CODE.repeat(1 << 18)), Error::Refused, &[url, "64 KiB"]),
        (lie(json!({"iss": "https://other"})), Error::Refused, &[url, "has the issuer https://other"]),
        (lie(json!({"aud": "other"})), Error::Refused, &["controllers.dashboard.clientId"]),
        (lie(json!({"aud": ["other", "dashboard"], "azp": "other"})), Error::Refused, &["clientId"]),
        (lie(json!({"exp": 940})), Error::Refused, &["has expired", "clocks"]),
        (lie(json!({"nonce": "other"})), Error::Refused, &["another login"]),
    ] {
        issuer.answers(reply);
        assert_fails(issuer.exchange().await, kind, words);
    }
    assert!(!issuer.paths().iter().any(|path| path == "/elsewhere"), "no redirect is followed");
    issuer.answers(lie(json!({})));
    assert!(issuer.exchange().await.is_ok(), "the error is not cached");
}

#[tokio::test]
async fn a_different_or_unsafe_issuer_gets_no_requests() {
    let issuer = Issuer::start().await;
    let lie = |changes: Value| {
        let mut document = document(&issuer.url);
        json_patch::merge(&mut document, &changes);
        Reply::Json(200, document)
    };
    let key = "controllers.dashboard.issuerUrl";
    for (reply, kind, words) in [
        (Reply::Text(503, String::new()), Error::Away as fn(String) -> Error, &["503"][..]),
        (Reply::Text(429, String::new()), Error::Away, &["429"]),
        (Reply::Text(404, String::new()), Error::Refused, &[key, "404", "expected the URL of a realm"]),
        (Reply::Redirect, Error::Refused, &[key, "302"]),
        (Reply::Text(200, "<html>".to_owned()), Error::Refused, &[key, "not an OpenID provider"]),
        (Reply::Text(200, " ".repeat(1 << 20)), Error::Refused, &[key, "64 KiB"]),
        (lie(json!({"token_endpoint": null})), Error::Refused, &[key, "not an OpenID provider"]),
        (
            lie(json!({"issuer": "https://other/\u{1b}[m"})),
            Error::Refused,
            &[key, "calls itself https://other/[m:"],
        ),
        (
            lie(json!({"token_endpoint": "http://other/token"})),
            Error::Refused,
            &[key, "\"http://other/token\""],
        ),
        (lie(json!({"authorization_endpoint": ""})), Error::Refused, &[key, "\"\"", "https://"]),
        (
            lie(json!({"authorization_endpoint": "https://other/#x"})),
            Error::Refused,
            &[key, "https://other/#x"],
        ),
        (lie(json!({"authorization_endpoint": "https://"})), Error::Refused, &[key]),
        (lie(json!({"end_session_endpoint": "javascript:x"})), Error::Refused, &[key, "javascript:x"]),
    ] {
        issuer.describes_itself(reply);
        assert_fails(issuer.exchange().await, kind, words);
    }
    assert!(!issuer.paths().iter().any(|path| path == "/token" || path == "/elsewhere"));
    issuer.describes_itself(lie(json!({"end_session_endpoint": null})));
    issuer.answers(Reply::Json(200, issuer.tokens(&json!({}))));
    assert!(issuer.exchange().await.is_ok());
    let token = Secret::from(REFRESH_TOKEN.to_owned());
    assert_fails(issuer.provider.logout(&token).await, Error::Refused, &[key, "end_session_endpoint"]);
}

#[tokio::test]
async fn concurrent_requests_share_one_timeout_of_a_silent_issuer() {
    let issuer = Issuer::start().await;
    issuer.describes_itself(Reply::Silence);
    let provider = issuer.provider.clone();
    let all = tokio::spawn(async move {
        let url = || async { provider.authorize_url(&attempt(), "it").await };
        join3(url(), url(), url()).await
    });
    issuer.script.arrived.notified().await;
    // The clock is paused, so that time advances only while nothing else happens.
    tokio::time::pause();
    let (one, two, three) = all.await.unwrap();
    for result in [one, two, three] {
        assert_fails(result, Error::Away, &[&issuer.url, "no answer within 10s"]);
    }
    assert_eq!(issuer.paths().len(), 1);
}

#[tokio::test]
async fn a_silent_token_endpoint_counts_as_unavailable() {
    let issuer = Issuer::start().await;
    let provider = issuer.provider.clone();
    provider.authorize_url(&attempt(), "it").await.unwrap();
    issuer.script.arrived.notified().await;
    let exchange = tokio::spawn(async move { provider.exchange(CODE, &attempt(), now()).await });
    issuer.script.arrived.notified().await;
    tokio::time::pause();
    assert_fails(exchange.await.unwrap(), Error::Away, &["no answer within 10s"]);
}

#[tokio::test]
async fn errors_of_files_name_their_configuration_key() {
    let issuer = Issuer::start().await;
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(issuer.folder.path().join("other.crt"), other.cert.pem()).unwrap();
    let file = |name: &str| issuer.folder.path().join(name).display().to_string();
    let with = |settings: Settings| Provider::new(settings).map(|(provider, _)| provider);
    let settings = || settings(&issuer.url, &issuer.folder);
    let untrusted = with(Settings { ca_file: file("other.crt"), ..settings() }).unwrap();
    let url = untrusted.authorize_url(&attempt(), "it").await;
    assert_fails(url, Error::Away, &["invalid peer certificate", "controllers.dashboard.caFile"]);
    let without_secret = with(Settings { client_secret_file: file("none"), ..settings() }).unwrap();
    let tokens = without_secret.exchange(CODE, &attempt(), now()).await;
    assert_fails(
        tokens,
        Error::Refused,
        &["controllers.dashboard.clientSecretFile", "the secret of the client dashboard"],
    );
    let error = with(Settings { ca_file: file("none"), ..settings() }).err().unwrap().to_string();
    assert!(error.contains("controllers.dashboard.caFile") && error.contains("none"), "{error}");
    let error = with(Settings { issuer: "https://".to_owned(), ..settings() }).err().unwrap().to_string();
    assert!(error.contains("controllers.dashboard.issuerUrl"), "{error}");
}

#[tokio::test]
async fn a_refused_client_is_an_outage_and_an_expired_code_is_not() {
    let issuer = Issuer::start().await;
    let outages = Outages::default();
    let provider = issuer.provider.clone().reporting_to(&outages);
    issuer.has_keys(Reply::Json(200, json!({"keys": []})));
    let refusal = |status, error: &str| issuer.answers(Reply::Json(status, json!({"error": error})));
    refusal(400, "invalid_grant");
    provider.ask().await.unwrap();
    assert_eq!(outages.lines(), "");
    for (status, error) in [(401, "invalid_client"), (503, "")] {
        refusal(status, error);
        provider.ask().await.unwrap_err();
        let line = format!("[!] issuer {}: failing for 0 s, logins at the dashboard fail: ", issuer.url);
        assert!(outages.lines().starts_with(&line), "{}", outages.lines());
        refusal(400, "invalid_grant");
        provider.ask().await.unwrap();
        assert_eq!(outages.lines(), "", "{error}");
    }
}

#[tokio::test]
async fn keys_that_cannot_be_read_are_an_outage_that_no_login_ends() {
    let issuer = Issuer::start().await;
    let outages = Outages::default();
    let provider = issuer.provider.clone().reporting_to(&outages);
    let (invalid, keys) = (json!({"error": "invalid_grant"}), json!({"keys": []}));
    for reply in [Reply::Text(503, String::new()), Reply::Text(200, "<html>".to_owned())] {
        issuer.has_keys(reply);
        issuer.answers(Reply::Json(400, invalid.clone()));
        provider.ask().await.unwrap_err();
        let first = outages.lines();
        assert!(first.starts_with(&format!("[!] issuer {}: failing for ", issuer.url)), "{first}");
        issuer.answers(Reply::Json(200, issuer.tokens(&json!({}))));
        let tokens = provider.exchange(CODE, &attempt(), now()).await.unwrap();
        assert_eq!(outages.lines().lines().count(), 1);
        provider.user(&tokens.id_token).await.unwrap_err();
        assert_eq!(outages.lines().lines().count(), 1);
        issuer.has_keys(Reply::Json(200, keys.clone()));
        issuer.answers(Reply::Json(400, invalid.clone()));
        provider.ask().await.unwrap();
        assert_eq!(outages.lines(), "");
    }
}
