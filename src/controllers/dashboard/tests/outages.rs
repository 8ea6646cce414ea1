//! Responses while the API server does not respond, or while other pages and forms take all permits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::header::{COOKIE, RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};
use tower::ServiceExt as _;

use super::site::app;
use crate::clients::oidc::Secret;
use crate::clients::oidc::tests::{Issuer, Reply};
use crate::controllers::dashboard::action::result::Outcome;
use crate::controllers::dashboard::app::App;
use crate::controllers::dashboard::home::actions::CREATE;
use crate::controllers::dashboard::router::router;
use crate::controllers::dashboard::session::{Flash, Keys, Session};
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::clock;

const MACHINE: &str = "/machines/tenant-ada/vm";

/// A dashboard with a user who is logged in, and its servers.
struct Site {
    app: Arc<App>,
    keys: Arc<Keys>,
    api: ApiServer,
    /// Whether the API server does not respond.
    is_away: Arc<AtomicBool>,
    /// The cookie of the session.
    cookie: String,
    _issuer: Issuer,
}

/// Starts a dashboard. The user has no Tenant.
async fn site() -> Site {
    let is_away = Arc::<AtomicBool>::default();
    let away = Arc::clone(&is_away);
    let api = ApiServer::start(move |asked: &Asked| match asked.name() {
        _ if away.load(Ordering::Relaxed) => refused(503, "ServiceUnavailable", "wait"),
        _ if asked.is("POST ") => {
            (201, json!({"status": {"userInfo": {"username": "ada"}, "resourceRules": []}}))
        }
        "instances" | "templates" | "workspaces" => (200, json!({"metadata": {}, "items": []})),
        _ => refused(404, "NotFound", "it is not there"),
    })
    .await;
    let issuer = Issuer::start().await;
    let claims = json!({"nonce": null, "exp": clock::now().as_second() + 300});
    issuer.answers(Reply::Json(200, issuer.tokens(&claims)));
    let (app, keys) = app(&api, &issuer);
    let refresh_token = Secret::from("first".to_owned());
    let session = Session { id: "one".to_owned(), refresh_token, visited: clock::now() };
    let sealed = session.seal(&keys).expect("a cookie");
    Site { app, keys, api, is_away, cookie: pair(&sealed).to_owned(), _issuer: issuer }
}

/// Returns the name and the value of a cookie from its `Set-Cookie`.
fn pair(set_cookie: &str) -> &str {
    set_cookie.split(';').next().expect("a pair")
}

impl Site {
    async fn send(&self, request: http::request::Builder, body: &'static str) -> Response {
        let request = request.header(COOKIE, &self.cookie).body(Body::from(body)).expect("a request");
        let Ok(answer) = router(Arc::clone(&self.app)).oneshot(request).await;
        answer
    }

    /// Opens a page.
    async fn open(&self, path: &str) -> Response {
        self.send(Request::get(path), "").await
    }

    /// Asserts that a form has changed nothing, and that its fields are kept.
    fn assert_kept(&self, answer: &Response) {
        let mut headers = HeaderMap::new();
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let cookie = pair(cookie.to_str().expect("text"));
            headers.append(COOKIE, HeaderValue::from_str(cookie).expect("a value"));
        }
        let flash = Flash::read(&headers, &self.keys, clock::now(), "/").expect("a flash message");
        assert_eq!(flash.outcome, Outcome::Failed(Problem::NotNow));
        assert!(flash.fields.contains(&("name".to_owned(), "vm-1".to_owned())), "{flash:?}");
    }

    /// Updates an open page.
    async fn update(&self, path: &str) -> Response {
        self.send(Request::get(path).header("hx-request", "true"), "").await
    }
}

/// Takes all permits.
fn all(of: &Semaphore) -> SemaphorePermit<'_> {
    let number = u32::try_from(of.available_permits()).expect("a small number");
    of.try_acquire_many(number).expect("permits")
}

/// Whether a browser loads this page again after `least` seconds, or up to twice as many.
fn is_loaded_again(answer: &Response, path: &str, least: u64) -> bool {
    let refresh = answer.headers().get("refresh").and_then(|value| value.to_str().ok()).unwrap_or_default();
    refresh.split_once("; url=").is_some_and(|(seconds, url)| {
        url == path && seconds.parse().is_ok_and(|seconds: u64| (least..=2 * least).contains(&seconds))
    })
}

#[tokio::test]
async fn a_page_that_waits_too_long_for_others_has_its_last_content_or_an_error() {
    let site = site().await;
    assert_eq!(site.open("/").await.status(), StatusCode::OK);
    let _all = [all(&site.app.opened), all(&site.app.open)];
    tokio::time::pause();
    let home = site.open("/").await;
    assert_eq!(home.status(), StatusCode::OK, "the last content");
    assert!(is_loaded_again(&home, "/", 15), "{home:?}");
    for answer in [site.open("/courses").await, site.update("/").await] {
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.headers()[RETRY_AFTER], "5");
    }
}

#[tokio::test]
async fn a_form_that_waits_too_long_for_others_changes_nothing_and_keeps_its_fields() {
    let site = site().await;
    assert_eq!(site.open("/").await.status(), StatusCode::OK);
    site.api.lines();
    let _all = all(&site.app.forms);
    tokio::time::pause();
    let form = Request::post(CREATE.path).header("sec-fetch-site", "same-origin");
    let answer = site.send(form, "name=vm-1").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(site.api.lines(), Vec::<String>::new());
    site.assert_kept(&answer);
}

#[tokio::test]
async fn while_the_api_server_is_silent_pages_and_forms_are_answered_at_once_without_requests() {
    let site = site().await;
    assert_eq!(site.open("/").await.status(), StatusCode::OK);
    let client = site.app.users.client.clone();
    let watch = tokio::spawn(async move { client.watch_silence(|| true).await });
    site.is_away.store(true, Ordering::Relaxed);
    tokio::time::pause();
    site.app.users.client.silence().becomes(true).await;
    site.api.lines();
    let begin = tokio::time::Instant::now();
    assert!(is_loaded_again(&site.open("/").await, "/", 15), "the last content");
    for path in ["/courses", MACHINE] {
        assert_eq!(site.open(path).await.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    assert_eq!(site.update("/").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    let form = Request::post(CREATE.path).header("sec-fetch-site", "same-origin");
    site.assert_kept(&site.send(form, "name=vm-1&templateNamespace=workspace-tea&template=vm").await);
    assert_eq!(begin.elapsed(), std::time::Duration::ZERO);
    assert!(site.api.lines().iter().all(|line| line == "GET /livez"));
    site.is_away.store(false, Ordering::Relaxed);
    site.app.users.client.silence().becomes(false).await;
    assert!(!site.open("/").await.headers().contains_key("refresh"), "the content is current");
    watch.abort();
}

#[tokio::test]
async fn a_page_that_is_opened_during_an_outage_is_loaded_again() {
    let site = site().await;
    assert_eq!(site.open("/").await.status(), StatusCode::OK);
    assert!(!site.open("/").await.headers().contains_key("refresh"), "the content is current");
    site.is_away.store(true, Ordering::Relaxed);
    let away = StatusCode::SERVICE_UNAVAILABLE;
    for (path, status, least) in [("/", StatusCode::OK, 15), ("/courses", away, 3), (MACHINE, away, 3)] {
        let answer = site.open(path).await;
        assert_eq!(answer.status(), status, "{path}");
        assert!(is_loaded_again(&answer, path, least), "{path}: {answer:?}");
    }
    assert_eq!(site.update("/").await.status(), away, "an open page keeps its content");
}

#[tokio::test]
async fn an_open_page_continues_to_update_after_an_error() {
    let site = site().await;
    let text = async |answer: Response| {
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a page");
        String::from_utf8(body.into()).expect("text")
    };
    let (opened, updated) = (site.open(MACHINE).await, site.update(MACHINE).await);
    assert_eq!([opened.status(), updated.status()], [StatusCode::NOT_FOUND; 2]);
    assert!(!text(opened).await.contains("hx-get"), "it has no scripts");
    let updated = text(updated).await;
    let (_, main) = updated.split_once("<main id=\"content\"").expect("the content");
    assert!(main.contains(&format!("hx-get=\"{MACHINE}\"")), "{main}");
    assert!(main.contains("hx-trigger=\"refresh from:body"), "{main}");
}
