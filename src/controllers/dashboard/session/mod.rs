//! The cookies of a browser. They are sealed, so only the dashboard can read and write them. Other cookies are ignored.

mod cookies;
mod keys;
pub mod login;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::cookies::{deleted, given, plain};
pub use self::keys::Keys;
use super::action::result::Outcome;
use crate::clients::oidc::{Attempt, Secret};

/// The maximum duration of a login, and of a form that waits for a login.
const SHORT: SignedDuration = SignedDuration::from_mins(10);
/// How long an open page may request new tokens after the last visit of the user.
const UNUSED: SignedDuration = SignedDuration::from_mins(30);
/// The precision of the time of the last visit.
const VISITS: SignedDuration = SignedDuration::from_mins(5);

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id, which never changes. The refresh token is replaced each time.
    pub id: String,
    /// The token that requests new tokens.
    pub refresh_token: Secret,
    /// When the user last opened a page or sent a form, to within a few minutes.
    pub visited: Timestamp,
}

/// A login that has begun.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginAttempt {
    /// Its random values.
    pub attempt: Attempt,
    /// The page to return to.
    pub path: String,
}

/// The flash message about a form, until a page shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flash {
    /// The path of the page that shows it.
    pub path: String,
    /// The outcome of the form.
    pub outcome: Outcome,
    /// The message of the server that rejected it.
    pub message: String,
    /// The path of the form followed by its fields, if it changed nothing.
    pub fields: Vec<(String, String)>,
    /// Whether the fields were too long for a cookie, which holds nearly 3 KB of them.
    pub is_lost: bool,
}

/// The names of the cookies. Each name is also the purpose of the seal, so one cookie is never accepted as another.
const SESSION: &str = "__Host-crownlabs";
const LOGIN: &str = "__Host-crownlabs-login";
const FLASH: &str = "__Host-crownlabs-flash";

/// The content of a short-lived cookie, with the time when it was set.
#[derive(Serialize, Deserialize)]
struct Dated<T> {
    since: i64,
    content: T,
}

impl Session {
    /// Returns the cookie of the session; `None` if it is too long. The browser keeps it until it is closed.
    pub fn seal(&self, keys: &Keys) -> Option<String> {
        let Self { id, refresh_token, visited } = self;
        let text = format!("{id} {} {}", visited.as_second(), refresh_token.expose());
        cookies::cookie(SESSION, &keys.seal(SESSION, text.as_bytes()), None)
    }

    /// Whether an open page may still request new tokens. An open page does not keep an unused session alive.
    pub fn is_used(&self, now: Timestamp) -> bool {
        now.duration_since(self.visited) <= UNUSED
    }

    /// Returns the session with the time of a new visit, if the stored time is out of date.
    pub fn visit(&self, now: Timestamp) -> Option<Self> {
        let is_old = now.duration_since(self.visited) > VISITS;
        is_old.then(|| Self { visited: now, ..self.clone() })
    }

    /// Reads the session of a browser.
    pub fn read(headers: &HeaderMap, keys: &Keys) -> Option<Self> {
        given(headers, SESSION).find_map(|value| {
            let text = String::from_utf8(keys.open(SESSION, value)?).ok()?;
            let mut parts = text.splitn(3, ' ');
            let (id, visited, token) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
            let visited = Timestamp::from_second(visited).ok()?;
            Some(Self { id: id.to_owned(), refresh_token: Secret::from(token.to_owned()), visited })
        })
    }

    /// Returns the cookie that ends a session.
    pub fn ended() -> String {
        deleted(SESSION)
    }
}

impl LoginAttempt {
    /// Returns its cookie; `None` if the cookie is too long, because the path is.
    pub fn seal(&self, keys: &Keys, now: Timestamp) -> Option<String> {
        let Attempt { state, nonce, verifier } = &self.attempt;
        short(LOGIN, &[state, nonce, verifier, &self.path], keys, now)
    }

    /// Reads the login that a browser has begun.
    pub fn read(headers: &HeaderMap, keys: &Keys, now: Timestamp) -> Option<Self> {
        let [state, nonce, verifier, path]: [String; 4] = opened(LOGIN, headers, keys, now)?;
        is_local(&path).then_some(Self { attempt: Attempt { state, nonce, verifier }, path })
    }

    /// Returns the cookie that ends it.
    pub fn ended() -> String {
        deleted(LOGIN)
    }
}

impl Flash {
    /// Returns its cookie. If it is too long, the message is cut; if it is still too long, the fields are dropped.
    pub fn seal(&self, keys: &Keys, now: Timestamp) -> String {
        let message = self.message.chars().take(500).collect();
        let cut = Self { message, ..self.clone() };
        let lost = Self { fields: Vec::new(), is_lost: true, ..cut.clone() };
        let cookie = [self, &cut, &lost].into_iter().find_map(|form| short(FLASH, form, keys, now));
        cookie.unwrap_or_else(|| deleted(FLASH))
    }

    /// Reads the flash message for a page.
    pub fn read(headers: &HeaderMap, keys: &Keys, now: Timestamp, path: &str) -> Option<Self> {
        opened(FLASH, headers, keys, now).filter(|form: &Self| form.path == path)
    }

    /// Returns the cookie that ends it.
    pub fn ended() -> String {
        deleted(FLASH)
    }
}

/// Whether a text is a path of the dashboard, so that a redirect to it does not lead to another host.
fn is_local(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    path.starts_with('/') && !path.starts_with("//") && path.bytes().all(is_plain)
}

fn short<T: Serialize>(name: &str, content: &T, keys: &Keys, now: Timestamp) -> Option<String> {
    let dated = Dated { since: now.as_second(), content };
    // Plain data can always be encoded.
    let text = serde_json::to_vec(&dated).unwrap_or_default();
    cookies::cookie(name, &keys.seal(name, &text), Some(SHORT))
}

fn opened<T: DeserializeOwned>(name: &str, headers: &HeaderMap, keys: &Keys, now: Timestamp) -> Option<T> {
    given(headers, name).find_map(|value| {
        let Dated { since, content } = serde_json::from_slice(&keys.open(name, value)?).ok()?;
        let age = now.as_second().checked_sub(since)?;
        // The clock of another replica may be a little ahead.
        (-60..=SHORT.as_secs()).contains(&age).then_some(content)
    })
}

/// Returns a nonce of 128 random bits; `None` if the system has no random numbers.
pub fn nonce() -> Option<String> {
    random::<16>().map(|bytes| URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns a random suffix for a name: six of 32 letters and digits that are easy to distinguish.
pub fn suffix() -> Option<String> {
    const SIGNS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz23456789i";
    let sign = |byte: u8| char::from(SIGNS[usize::from(byte % 32)]);
    random::<6>().map(|bytes| bytes.into_iter().map(sign).collect())
}

fn random<const BYTES: usize>() -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::COOKIE;
    use proptest::prelude::*;

    use super::*;
    use crate::controllers::dashboard::texts::Problem;
    use crate::fixtures::at;

    fn keys() -> Keys {
        Keys::parse(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").expect("a key")
    }

    fn session_of(token: &str) -> Session {
        Session { id: "id".to_owned(), refresh_token: Secret::from(token.to_owned()), visited: at(1_000) }
    }

    #[test]
    fn an_open_page_does_not_keep_an_unused_session_alive() {
        let session = session_of("t");
        for (second, is_used, is_old) in [
            (1_000, true, false),
            (1_300, true, false),
            (1_301, true, true),
            (2_800, true, true),
            (2_801, false, true),
        ] {
            assert_eq!(session.is_used(at(second)), is_used, "{second}");
            let next = session.visit(at(second));
            assert_eq!(next.is_some(), is_old, "{second}");
            assert!(next.is_none_or(|next| next.visited == at(second) && next.id == session.id));
        }
    }

    fn flash(path: &str, message: String, fields: Vec<(String, String)>) -> Flash {
        let outcome = Outcome::Failed(Problem::SessionOver);
        Flash { path: path.to_owned(), outcome, message, fields, is_lost: false }
    }

    /// The headers of a browser that has this cookie.
    fn sent(set_cookie: &str) -> HeaderMap {
        let pair = set_cookie.split(';').next().expect("a pair");
        HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(pair).expect("text"))])
    }

    #[test]
    fn a_session_is_read_with_its_own_key_only() {
        let session = session_of("ey.token");
        let cookie = session.seal(&keys()).expect("short");
        assert!(cookie.starts_with("__Host-crownlabs=") && !cookie.contains("token"), "{cookie}");
        assert!(cookie.ends_with("; Path=/; Secure; HttpOnly; SameSite=Lax"), "{cookie}");
        assert_eq!(Session::read(&sent(&cookie), &keys()), Some(session.clone()));
        let other = Keys::parse(b"BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=").expect("a key");
        assert_eq!(Session::read(&sent(&cookie), &other), None);
        let both =
            b"BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let both = Keys::parse(both).expect("two keys");
        assert_eq!(Session::read(&sent(&cookie), &both), Some(session), "the previous key");
        let long = session_of(&"x".repeat(4_000));
        assert_eq!(long.seal(&keys()), None);
    }

    #[test]
    fn a_cookie_is_not_accepted_under_another_name() {
        let session = session_of("t");
        let cookie = session.seal(&keys()).expect("short").replacen(SESSION, FLASH, 1);
        assert_eq!(Flash::read(&sent(&cookie), &keys(), at(0), "/"), None);
    }

    #[test]
    fn a_login_and_a_flash_message_last_ten_minutes() {
        let attempt = Attempt { state: "s".to_owned(), nonce: "n".to_owned(), verifier: "v".to_owned() };
        let login = LoginAttempt { attempt, path: "/courses".to_owned() };
        let cookie = login.seal(&keys(), at(1_000)).expect("short");
        assert!(cookie.contains("; Max-Age=600;"), "{cookie}");
        let form = flash("/", String::new(), Vec::new());
        let typed = form.seal(&keys(), at(1_000));
        for (second, is_there) in [(1_000, true), (1_600, true), (1_601, false), (940, true), (939, false)] {
            assert_eq!(
                LoginAttempt::read(&sent(&cookie), &keys(), at(second)).is_some(),
                is_there,
                "{second}"
            );
            assert_eq!(Flash::read(&sent(&typed), &keys(), at(second), "/").is_some(), is_there, "{second}");
        }
        assert_eq!(Flash::read(&sent(&typed), &keys(), at(1_000), "/courses"), None, "for another page");
    }

    #[test]
    fn fields_that_are_too_long_are_reported_as_lost() {
        for (length, message, is_lost, rest) in
            [(2_700, 0, false, 0), (2_000, 3_000, false, 500), (3 << 10, 3_000, true, 500)]
        {
            let fields = vec![("key".to_owned(), "x".repeat(length))];
            let form = flash("/account", "m".repeat(message), fields);
            let kept = Flash::read(&sent(&form.seal(&keys(), at(0))), &keys(), at(0), "/account");
            let fields = if is_lost { Vec::new() } else { form.fields };
            assert_eq!(kept, Some(Flash { message: "m".repeat(rest), fields, is_lost, ..form }), "{length}");
        }
    }

    #[test]
    fn redirects_lead_to_pages_of_the_dashboard_only() {
        for path in ["/", "/machines/a/b", "/login?x=%2F%2Fy"] {
            assert!(is_local(path), "{path}");
        }
        for path in
            ["", "x", "//evil.example.com", "/\\evil.example.com", "/\n/evil", "https://evil", "/a b", "/é"]
        {
            assert!(!is_local(path), "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_or_cut_cookie_is_rejected(at in 0_usize..60, byte in any::<u8>(), cut in any::<bool>()) {
            let keys = keys();
            let sealed = keys.seal(SESSION, b"a refresh token");
            let at = at % sealed.len();
            let mut changed = sealed.clone().into_bytes();
            if cut { changed.truncate(at) } else { changed[at] = byte }
            let changed = String::from_utf8_lossy(&changed).into_owned();
            prop_assume!(changed != sealed);
            prop_assert_eq!(keys.open(SESSION, &changed), None);
        }

        #[test]
        fn fields_are_kept_completely_or_reported_as_lost(
            message in any::<String>(),
            fields in prop::collection::vec((any::<String>(), ".{0,2000}"), 0..4),
            repeated in 1_usize..40,
        ) {
            let message = message.repeat(repeated);
            let form = flash("/account", message, fields);
            let cookie = form.seal(&keys(), at(0));
            prop_assert!(cookie.len() <= cookies::LONGEST && HeaderValue::try_from(&cookie).is_ok());
            if let Some(kept) = Flash::read(&sent(&cookie), &keys(), at(0), "/account") {
                prop_assert!(form.message.starts_with(&kept.message));
                prop_assert_eq!(kept.fields, if kept.is_lost { Vec::new() } else { form.fields });
            }
        }

        #[test]
        fn arbitrary_cookies_do_not_panic(text in any::<Vec<u8>>()) {
            if let Ok(value) = HeaderValue::from_bytes(&text) {
                let headers = HeaderMap::from_iter([(COOKIE, value)]);
                prop_assert_eq!(Session::read(&headers, &keys()), None);
                prop_assert!(LoginAttempt::read(&headers, &keys(), at(0)).is_none());
            }
        }
    }
}
