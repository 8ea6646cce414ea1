//! The logins that a browser has begun. Each has its own cookie, so that several tabs can log in at the same time, and
//! no response about one login ends another.

use http::HeaderMap;
use jiff::Timestamp;

use super::cookies::{cookie, deleted, given};
use super::random::random;
use super::short::{SHORT, is_recent};
use crate::clients::oidc::{Attempt, SECRET_BYTES};
use crate::controllers::dashboard::paths;
use crate::controllers::shared::sealing::Keys;

/// The cookies of the logins. One more login than these replaces the oldest, whose tab then begins again.
const NAMES: [&str; 5] = [
    "__Host-crownlabs-login-0",
    "__Host-crownlabs-login-1",
    "__Host-crownlabs-login-2",
    "__Host-crownlabs-login-3",
    "__Host-crownlabs-login-4",
];
/// The length of a cookie with its name: 40 bytes, sealed.
const LENGTH: usize = 116;
/// The purpose of the seal of a state.
const STATE: &str = "login-state";

/// A login that a browser has begun.
pub struct LoginAttempt {
    /// The name of its cookie.
    name: &'static str,
    /// When it began, in seconds.
    since: i64,
    /// All values of the login derive from it.
    secret: [u8; SECRET_BYTES],
}

/// The state of a login, which the issuer sends back. It is sealed, so only the dashboard can write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginState {
    /// Identifies the login.
    id: String,
    /// The page to return to.
    pub path: String,
    /// Whether the login was begun by itself, because the previous one was unknown. It is not repeated again: the
    /// browser may keep no cookies.
    pub is_again: bool,
}

impl LoginAttempt {
    /// Begins a login of a browser with these cookies; `None` if the system has no random numbers.
    pub fn begin(headers: &HeaderMap, keys: &Keys, now: Timestamp) -> Option<Self> {
        let secret = random::<SECRET_BYTES>()?;
        let begun = Self::all(headers, keys, now);
        let is_free = |name: &&str| begun.iter().all(|one| one.name != *name);
        let free: Vec<&'static str> = NAMES.into_iter().filter(is_free).collect();
        let oldest = || begun.iter().min_by_key(|one| one.since).map_or(NAMES[0], |one| one.name);
        // Several tabs may begin at the same time, without a cookie of the others.
        let chosen = free.get(usize::from(secret[0]) % free.len().max(1));
        let name = chosen.copied().unwrap_or_else(oldest);
        Some(Self { name, since: now.as_second(), secret })
    }

    /// Returns the login of a browser that a state belongs to.
    pub fn of(state: &LoginState, headers: &HeaderMap, keys: &Keys, now: Timestamp) -> Option<Self> {
        Self::all(headers, keys, now).into_iter().find(|begun| begun.values().is_of(&state.id))
    }

    /// Returns the logins that a browser has begun.
    fn all(headers: &HeaderMap, keys: &Keys, now: Timestamp) -> Vec<Self> {
        let of_name = |name: &'static str| {
            given(headers, name).find_map(|value| {
                let bytes = keys.open(name, value)?;
                let (since, secret) = bytes.split_first_chunk()?;
                let since = i64::from_be_bytes(*since);
                let secret = <[u8; SECRET_BYTES]>::try_from(secret).ok()?;
                is_recent(since, now).then_some(Self { name, since, secret })
            })
        };
        NAMES.into_iter().filter_map(of_name).collect()
    }

    /// Returns the values of the login.
    pub fn values(&self) -> Attempt {
        Attempt::of(&self.secret)
    }

    /// Returns the state of the login, which returns to a page.
    pub fn state(&self, path: &str, is_again: bool) -> LoginState {
        LoginState { id: self.values().state, path: path.to_owned(), is_again }
    }

    /// Returns its cookie.
    pub fn seal(&self, keys: &Keys) -> String {
        let plain = [self.since.to_be_bytes().as_slice(), &self.secret].concat();
        // Its length does not depend on its content.
        cookie(self.name, &keys.seal(self.name, &plain), Some(SHORT), LENGTH).unwrap_or_default()
    }

    /// Returns the cookie that ends it.
    pub fn ended(&self) -> String {
        deleted(self.name)
    }
}

impl LoginState {
    /// Returns the text that the issuer sends back.
    pub fn seal(&self, keys: &Keys) -> String {
        let Self { id, path, is_again } = self;
        keys.seal(STATE, format!("{} {id} {path}", u8::from(*is_again)).as_bytes())
    }

    /// Reads a text that the issuer, or another site, has sent; `None` if the dashboard has not written it.
    pub fn open(keys: &Keys, text: &str) -> Option<Self> {
        let text = String::from_utf8(keys.open(STATE, text)?).ok()?;
        let mut parts = text.splitn(3, ' ');
        let (is_again, id, path) = (parts.next()? == "1", parts.next()?.to_owned(), parts.next()?.to_owned());
        paths::is_page(&path).then_some(Self { id, path, is_again })
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use http::HeaderValue;
    use http::header::COOKIE;

    use super::*;
    use crate::fixtures::at;

    fn keys() -> Keys {
        Keys::parse(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").expect("a key")
    }

    /// The cookies of a browser, from their `Set-Cookie`. A later cookie replaces an earlier one of the same name.
    fn browser(set: &[String]) -> HeaderMap {
        let pair = |cookie: &String| cookie.split(';').next().expect("a pair").to_owned();
        let mut pairs: Vec<String> = Vec::new();
        for pair in set.iter().map(pair) {
            let (name, _) = pair.split_once('=').expect("a name");
            pairs.retain(|known| !known.starts_with(&format!("{name}=")));
            pairs.push(pair);
        }
        HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(pairs.join("; ")).expect("text"))])
    }

    /// Begins a number of logins, one after the other. Returns their cookies and states.
    fn begin(number: i64) -> (Vec<String>, Vec<LoginState>) {
        let (mut cookies, mut states) = (Vec::new(), Vec::new());
        for second in 0..number {
            let login = LoginAttempt::begin(&browser(&cookies), &keys(), at(second)).expect("random");
            cookies.push(login.seal(&keys()));
            states.push(login.state("/courses", false));
        }
        (cookies, states)
    }

    #[test]
    fn each_tab_has_its_own_login_and_the_oldest_of_too_many_is_replaced() {
        for number in [1, 2, 5, 6, 9] {
            let (cookies, states) = begin(number);
            let headers = browser(&cookies);
            let known =
                states.iter().map(|state| LoginAttempt::of(state, &headers, &keys(), at(9)).is_some());
            let replaced = usize::try_from(number).expect("a small number").saturating_sub(NAMES.len());
            let expected = (0..states.len()).map(|tab| tab >= replaced);
            assert_eq!(known.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{number}");
        }
    }

    #[test]
    fn the_end_of_a_login_keeps_the_others() {
        let (mut cookies, states) = begin(3);
        let login = LoginAttempt::of(&states[1], &browser(&cookies), &keys(), at(3)).expect("the login");
        let cookie = login.ended();
        assert!(cookie.contains("=; Max-Age=0; "), "{cookie}");
        cookies.push(cookie);
        let headers = browser(&cookies);
        let known = |state| LoginAttempt::of(state, &headers, &keys(), at(3)).is_some();
        assert_eq!(states.iter().map(known).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn a_login_lasts_ten_minutes() {
        let login = LoginAttempt::begin(&HeaderMap::new(), &keys(), at(1_000)).expect("random");
        let (cookie, state) = (login.seal(&keys()), login.state("/", false));
        assert!(cookie.contains("; Max-Age=600; Path=/; Secure; HttpOnly; SameSite=Lax"), "{cookie}");
        assert_eq!(cookie.split(';').next().map(str::len), Some(LENGTH));
        for (second, is_known) in [(1_000, true), (1_600, true), (1_601, false), (940, true), (939, false)] {
            let found = LoginAttempt::of(&state, &browser(slice::from_ref(&cookie)), &keys(), at(second));
            assert_eq!(found.is_some(), is_known, "{second}");
        }
    }

    #[test]
    fn a_state_is_read_if_the_dashboard_has_written_it() {
        let login = LoginAttempt::begin(&HeaderMap::new(), &keys(), at(0)).expect("random");
        for (path, is_again) in [("/", false), ("/machines/tenant-ada/vm.1", true)] {
            let state = login.state(path, is_again);
            assert_eq!(LoginState::open(&keys(), &state.seal(&keys())), Some(state));
        }
        let foreign = login.state("//evil.example.com", false).seal(&keys());
        let sealed = login.state("/", false).seal(&keys());
        let plain = login.values().state;
        for text in ["", "x", &foreign, &sealed[1..], &plain] {
            assert_eq!(LoginState::open(&keys(), text), None, "{text}");
        }
    }
}
