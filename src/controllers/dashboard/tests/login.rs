//! Logins, logouts and requests of other sites, by a browser with cookies. Each request and each response has a header
//! of at most 3 KB.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::header::{COOKIE, LOCATION, SET_COOKIE};
use http::{HeaderMap, Request, StatusCode};
use jiff::SignedDuration;
use serde_json::json;
use tower::ServiceExt as _;

use super::site::app;
use crate::clients::oidc::Secret;
use crate::clients::oidc::tests::{Issuer, Reply};
use crate::config::Language;
use crate::controllers::dashboard::action::result::Outcome;
use crate::controllers::dashboard::app::App;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::http::headers::{protect, secured};
use crate::controllers::dashboard::paths::machine_login;
use crate::controllers::dashboard::router::router;
use crate::controllers::dashboard::session::{Favourites, Flash, Keys, Session, room_for_flash};
use crate::controllers::dashboard::texts::{Problem, texts};
use crate::controllers::shared::machine_login::Code;
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::clock;

const SESSION: &str = "__Host-crownlabs";
/// The label of the host of a machine.
const LABEL: &str = "abcdefghijklmnopqrstuvwxyz";
/// The maximum length of a header.
const MOST: usize = 3_072;

/// A browser at a dashboard. The user has no Tenant.
struct Browser {
    app: Arc<App>,
    keys: Arc<Keys>,
    issuer: Issuer,
    /// The refresh token that the issuer sends.
    refresh_token: String,
    cookies: BTreeMap<String, String>,
}

async fn browser() -> Browser {
    let api = ApiServer::start(|asked: &Asked| match asked.name() {
        _ if asked.is("POST ") => {
            (201, json!({"status": {"userInfo": {"username": "ada"}, "resourceRules": []}}))
        }
        "instances" | "templates" | "workspaces" => (200, json!({"metadata": {}, "items": []})),
        _ => refused(404, "NotFound", "it is not there"),
    })
    .await;
    let issuer = Issuer::start().await;
    let (app, keys) = app(&api, &issuer);
    let (refresh_token, cookies) = ("first".to_owned(), BTreeMap::new());
    Browser { app, keys, issuer, refresh_token, cookies }
}

/// Returns the length of a header, with its lines that the server adds.
fn length(headers: &HeaderMap) -> usize {
    let lines = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let added = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 10000\r\ndate: Fri, 20 Nov 2026 10:00:00 GMT\r\n\r\n";
    lines.sum::<usize>() + added.len()
}

fn place(answer: &Response) -> &str {
    answer.headers().get(LOCATION).map_or("", |place| place.to_str().expect("text"))
}

impl Browser {
    async fn send(&mut self, request: http::request::Builder) -> Response {
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = pairs.join("; ");
        assert!(cookies.len() <= MOST, "{} bytes of cookies: {cookies}", cookies.len());
        let request = request.header(COOKIE, cookies).body(Body::empty()).expect("a request");
        let Ok(answer) = router(Arc::clone(&self.app)).oneshot(request).await;
        let answer = secured(protect(answer), Duration::from_hours(180 * 24));
        let length = length(answer.headers());
        assert!(length <= MOST, "{length} bytes: {:?}", answer.headers());
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let pair = cookie.to_str().expect("text").split(';').next().expect("a pair");
            let (name, value) = pair.split_once('=').expect("a name");
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    async fn open(&mut self, path: &str) -> Response {
        self.send(Request::get(path)).await
    }

    /// Makes the issuer send tokens for a login with this nonce.
    fn issuer_sends_tokens(&self, nonce: Option<&str>) {
        let claims = json!({"nonce": nonce, "exp": clock::now().as_second() + 300});
        let mut tokens = self.issuer.tokens(&claims);
        tokens["refresh_token"] = self.refresh_token.as_str().into();
        self.issuer.answers(Reply::Json(200, tokens));
    }

    /// Opens the login in a tab. Returns the query that the issuer gets.
    async fn begin(&mut self, path: &str) -> Fields {
        let answer = self.open(&format!("/login?return={path}")).await;
        self.sent_to_issuer(&answer)
    }

    /// Returns the query that the issuer gets by a redirect.
    fn sent_to_issuer(&self, answer: &Response) -> Fields {
        let query = place(answer).strip_prefix(&format!("{}/auth?", self.issuer.url));
        Fields::parse(query.unwrap_or_else(|| panic!("{answer:?}")).as_bytes())
    }

    /// Returns from the issuer after a login there.
    async fn come_back(&mut self, login: &Fields) -> Response {
        self.issuer_sends_tokens(Some(login.get("nonce")));
        self.open(&format!("/callback?code=c&state={}", login.get("state"))).await
    }

    /// Adds the cookie of a session whose last visit was this long ago.
    fn visited(&mut self, ago: SignedDuration) {
        let refresh_token = Secret::from(self.refresh_token.clone());
        let session = Session { id: "one".to_owned(), refresh_token, visited: clock::now() - ago };
        self.set(&session.seal(&self.keys).expect("a cookie"));
        self.issuer_sends_tokens(None);
    }

    fn set(&mut self, cookie: &str) {
        let (name, rest) = cookie.split_once('=').expect("a name");
        let value = rest.split(';').next().expect("a value");
        self.cookies.insert(name.to_owned(), value.to_owned());
    }

    fn has_session(&self) -> bool {
        self.cookies.contains_key(SESSION)
    }
}

/// A request with the headers of Fetch Metadata.
fn fetch(path: &str, site: &str, mode: &str, dest: &str) -> http::request::Builder {
    let request = Request::get(path).header("sec-fetch-site", site);
    request.header("sec-fetch-mode", mode).header("sec-fetch-dest", dest)
}

#[tokio::test]
async fn two_tabs_log_in_and_back_leads_to_the_home_page() {
    let mut browser = browser().await;
    let (one, other) = (browser.begin("/courses").await, browser.begin("/account").await);
    assert_eq!(place(&browser.come_back(&other).await), "/account");
    assert!(browser.has_session());
    assert_eq!(place(&browser.come_back(&one).await), "/courses");
    assert_eq!(browser.cookies.len(), 1, "both logins have ended: {:?}", browser.cookies);
    for login in [&one, &other] {
        assert_eq!(place(&browser.come_back(login).await), "/");
    }
    assert_eq!(place(&browser.open("/callback?state=x&code=y").await), "/");
}

#[tokio::test]
async fn a_login_to_a_machine_leads_through_the_issuer_to_its_host() {
    let mut browser = browser().await;
    let page = machine_login(&format!("https://{LABEL}.machines.example.org/app?a=b"));
    let answer = browser.open(&page).await;
    let login = place(&answer).to_owned();
    assert!(login.starts_with("/login?return=%2Flogin%2Fmachine%3Frd%3D"), "{login}");
    let answer = browser.open(&login).await;
    let login = browser.sent_to_issuer(&answer);
    assert_eq!(place(&browser.come_back(&login).await), page);
    let exchange = place(&browser.open(&page).await).to_owned();
    let sealed =
        exchange.strip_prefix(&format!("https://{LABEL}.machines.example.org/_crownlabs/login?code="));
    let code = Code::open(&browser.keys, LABEL, sealed.expect("an exchange")).expect("a code");
    let cookie = format!("{SESSION}={}", browser.cookies[SESSION]).parse().expect("a value");
    let session = Session::read(&HeaderMap::from_iter([(COOKIE, cookie)]), &browser.keys).expect("a session");
    assert_eq!((&*code.user, &*code.path, &*code.session), ("ada", "/app?a=b", &*session.id));
    assert!(code.is_fresh(clock::now()));
    // The same address again, after ingress-nginx has added the cookie of the machine.
    let back = browser.open(&machine_login(&exchange)).await;
    assert_eq!(place(&back), format!("https://{LABEL}.machines.example.org/app?a=b"));
    let broken = browser.open(&machine_login(&exchange[..exchange.len() - 1])).await;
    assert_eq!((broken.status(), place(&broken)), (StatusCode::NOT_FOUND, ""), "not a code of the dashboard");
}

#[tokio::test]
async fn a_browser_that_comes_back_from_a_machine_without_a_login_gets_a_page() {
    let mut browser = browser().await;
    let login = browser.begin("/").await;
    browser.come_back(&login).await;
    let page = machine_login(&format!("https://{LABEL}.machines.example.org/"));
    for _ in 0..3 {
        assert_eq!(browser.open(&page).await.status(), StatusCode::SEE_OTHER);
    }
    let answer = browser.open(&page).await;
    assert_eq!((answer.status(), place(&answer)), (StatusCode::FORBIDDEN, ""));
    assert_eq!(browser.open(&page).await.status(), StatusCode::SEE_OTHER, "the user tries again");
    let other = browser.open(&machine_login("https://labs.example.org/")).await;
    assert_eq!((other.status(), place(&other)), (StatusCode::NOT_FOUND, ""), "no machine has this address");
}

#[tokio::test]
async fn a_planted_state_ends_no_login() {
    let mut browser = browser().await;
    let login = browser.begin("/courses").await;
    for planted in ["/callback?state=x", "/callback", "/callback?error=access_denied&state=x"] {
        let answer = browser.open(planted).await;
        assert_eq!(browser.sent_to_issuer(&answer).get("response_type"), "code", "it begins again");
    }
    assert_eq!(place(&browser.come_back(&login).await), "/courses");
}

#[tokio::test]
async fn an_unknown_login_begins_again_once_and_returns_to_its_page() {
    let mut browser = browser().await;
    let lost = browser.begin("/courses").await;
    browser.cookies.clear();
    let answer = browser.come_back(&lost).await;
    let again = browser.sent_to_issuer(&answer);
    let cookies = std::mem::take(&mut browser.cookies);
    assert_eq!(browser.come_back(&again).await.status(), StatusCode::UNAUTHORIZED, "it keeps no cookies");
    browser.cookies = cookies;
    assert_eq!(place(&browser.come_back(&again).await), "/courses");
}

#[tokio::test]
async fn an_error_of_the_issuer_is_shown_unless_the_user_is_logged_in_or_the_issuer_asks_to_try_again() {
    let mut browser = browser().await;
    let failed =
        |login: &Fields, error: &str| format!("/callback?error={error}&state={}", login.get("state"));
    let login = browser.begin("/courses").await;
    let answer = browser.open(&failed(&login, "temporarily_unavailable")).await;
    let login = browser.sent_to_issuer(&answer);
    let answer = browser.open(&failed(&login, "access_denied")).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    assert!(browser.cookies.is_empty(), "{:?}", browser.cookies);
    let (late, login) = (browser.begin("/courses").await, browser.begin("/").await);
    browser.come_back(&login).await;
    assert_eq!(place(&browser.open(&failed(&late, "access_denied")).await), "/courses");
    assert!(browser.has_session());
}

#[tokio::test]
async fn headers_stay_short_with_many_logins_and_typed_text() {
    for (length, is_lost) in [(850, false), (1_600, true)] {
        let mut browser = browser().await;
        // A JSON Web Token, as Keycloak sends it, or a longer one.
        browser.refresh_token = "abcd".repeat(length / 4);
        let fields =
            vec![("/account/keys/add".to_owned(), String::new()), ("key".to_owned(), "x".repeat(740))];
        let outcome = Outcome::Failed(Problem::SessionOver);
        let (path, message) = ("/account".to_owned(), String::new());
        let flash = Flash { path, outcome, message, fields, is_lost: false, is_shown: false };
        let room = room_for_flash(&HeaderMap::new());
        browser.set(&flash.seal(&browser.keys, clock::now(), room));
        let zone = format!("__Host-crownlabs-zone={}", "x".repeat(64));
        browser.set(&zone);
        let keys = (0..20).map(|number| Favourites::key("workspace-tea", &number.to_string()));
        let all = keys.fold(Favourites::default(), |all, key| all.changed(&key, true).expect("a key"));
        browser.set(&all.cookie());
        browser.open("/?lang=it").await;
        let mut login = browser.begin("/account").await;
        for _ in 0..6 {
            login = browser.begin("/account").await;
        }
        assert_eq!(place(&browser.come_back(&login).await), "/account");
        let kept = browser.cookies.get("__Host-crownlabs-flash").expect("the message");
        let cookie = format!("__Host-crownlabs-flash={kept}").parse().expect("a value");
        let headers = HeaderMap::from_iter([(COOKIE, cookie)]);
        let kept = Flash::read(&headers, &browser.keys, clock::now(), "/account").expect("the message");
        assert_eq!(kept.is_lost, is_lost, "{length}");
        browser.open("/account").await;
    }
}

#[tokio::test]
async fn the_page_after_a_logout_says_what_has_ended() {
    let mut browser = browser().await;
    let login = browser.begin("/").await;
    browser.come_back(&login).await;
    let logout = || Request::post("/logout").header("sec-fetch-site", "same-origin");
    let answer = browser.send(logout()).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER, "the browser can go back and forward");
    let page = place(&answer).to_owned();
    assert!(page.starts_with("/logged-out?of=") && !browser.has_session(), "{page}");
    let answer = browser.open(&page).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let text = to_bytes(answer.into_body(), usize::MAX).await.expect("a page");
    let (text, english) = (String::from_utf8_lossy(&text).into_owned(), texts(Language::ENGLISH));
    // The user has no Tenant, so the logout is written nowhere.
    for sentence in [&english.states.logged_out.heading, &english.logout_late, &english.desktops_stay] {
        assert!(text.contains(sentence.as_str()), "{sentence}: {text}");
    }
    for address in ["/logged-out", "/logged-out?of=x"] {
        assert_eq!(place(&browser.open(address).await), "/", "{address}");
    }
    assert_eq!(place(&browser.send(logout()).await), "/", "without a session");
    browser.visited(SignedDuration::ZERO);
    assert_eq!(place(&browser.open(&page).await), "/", "with a session");
}

#[tokio::test]
async fn requests_of_other_sites_are_rejected_or_do_not_count_as_visits() {
    let mut browser = browser().await;
    for (path, mode, dest) in [
        ("/", "no-cors", "image"),
        ("/account", "navigate", "iframe"),
        ("/callback?state=x", "no-cors", "image"),
    ] {
        let answer = browser.send(fetch(path, "same-site", mode, dest)).await;
        assert_eq!((answer.status(), place(&answer)), (StatusCode::FORBIDDEN, ""), "{path}");
    }
    for (site, minutes, expected) in [
        // Within half an hour, the page is served. The time of a visit is stored after five minutes.
        ("none", 6, ("", true)),
        ("cross-site", 6, ("", false)),
        ("same-origin", 31, ("", true)),
        ("cross-site", 31, ("/login?return=%2F", false)),
    ] {
        browser.visited(SignedDuration::from_mins(minutes));
        let before = browser.cookies[SESSION].clone();
        let answer = browser.send(fetch("/", site, "navigate", "document")).await;
        let is_new = browser.cookies[SESSION] != before;
        assert_eq!((place(&answer), is_new), expected, "{site} after {minutes} minutes");
    }
}
