//! The login to a machine at its own host. The dashboard begins it, and the login loop completes it.
//!
//! The dashboard knows the user, and redirects the browser to the host of the machine with a [`Code`]. The login loop
//! exchanges the code for a [`Pass`], a cookie of that host. Both are sealed with the session keys of the dashboard for
//! one purpose and one host, so they are worthless at any other host, and a machine that receives the cookie of its
//! visitor cannot read it.

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::cookies::{ATTRIBUTES, given};
use super::sealing::Keys;

/// The path at which the login loop exchanges a code, below [`LOGIN_PATH`](super::machine_host::LOGIN_PATH).
pub const EXCHANGE: &str = "/_crownlabs/login";
/// The parameter of the exchange with the code.
pub const CODE: &str = "code";
/// The cookie of a host. Only its own host can set a cookie with the prefix `__Host-` (RFC 6265bis, 4.1.3.2).
pub const COOKIE: &str = "__Host-crownlabs-machine";

/// The time in which a code can be exchanged.
pub const CODE_FOR: SignedDuration = SignedDuration::from_secs(30);
/// The tolerated difference between the clocks of two replicas.
pub const SKEW: SignedDuration = SignedDuration::from_secs(10);
/// The time after which a user logs in again. The annotation of a logout stays in the Tenant for longer.
const PASS_FOR: SignedDuration = SignedDuration::from_hours(12);

/// The right to log in to one host once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Identifies the code: random, and a valid key of a `ConfigMap`.
    pub id: String,
    /// The time of its creation, in seconds since 1970.
    pub since: i64,
    /// The user.
    pub user: String,
    /// The session at the dashboard.
    pub session: String,
    /// The path and query to return to. It begins with a slash.
    pub path: String,
}

/// The login of a user at one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// The user.
    pub user: String,
    /// The session at the dashboard. Its end is the end of the login.
    pub session: String,
    /// The time of its expiry, in seconds since 1970.
    pub until: i64,
}

impl Code {
    /// Returns the code as text, for the host with this label; empty if the system has no random numbers.
    pub fn seal(&self, keys: &Keys, label: &str) -> String {
        keys.seal(&purpose(CODE, label), &serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads the text of a code; `None` if it is for another host, or the dashboard has not written it.
    pub fn open(keys: &Keys, label: &str, text: &str) -> Option<Self> {
        serde_json::from_slice(&keys.open(&purpose(CODE, label), text)?).ok()
    }

    /// Whether the code can still be exchanged.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let age = now.as_second().saturating_sub(self.since);
        (-SKEW.as_secs()..=CODE_FOR.as_secs()).contains(&age)
    }
}

impl Pass {
    /// Returns the login that follows from a code.
    pub fn of(code: &Code, now: Timestamp) -> Self {
        let until = now.as_second().saturating_add(PASS_FOR.as_secs());
        Self { user: code.user.clone(), session: code.session.clone(), until }
    }

    /// Returns the value of its cookie, for the host with this label; empty if the system has no random numbers.
    pub fn seal(&self, keys: &Keys, label: &str) -> String {
        keys.seal(&purpose(COOKIE, label), &serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns its cookie for `Set-Cookie`. It lasts until the browser is closed; `None` if the system has no random
    /// numbers.
    pub fn cookie(&self, keys: &Keys, label: &str) -> Option<String> {
        let value = self.seal(keys, label);
        (!value.is_empty()).then(|| format!("{COOKIE}={value}; {ATTRIBUTES}"))
    }

    /// Reads the login of a browser at the host with this label; `None` without a valid cookie, and after its expiry.
    pub fn read(headers: &HeaderMap, keys: &Keys, label: &str, now: Timestamp) -> Option<Self> {
        let purpose = purpose(COOKIE, label);
        let open = |value| serde_json::from_slice::<Self>(&keys.open(&purpose, value)?).ok();
        given(headers, COOKIE).filter_map(open).find(|pass| now.as_second() < pass.until)
    }
}

/// The purpose of a seal.
fn purpose(of: &str, label: &str) -> String {
    format!("machine {of} {label}")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::COOKIE as COOKIES;

    use super::*;
    use crate::controllers::shared::machine_host::LOGIN_PATH;
    use crate::fixtures::at;

    const LABEL: &str = "abcdefghijklmnopqrstuvwxyz";
    const OTHER: &str = "zyxwvutsrqponmlkjihgfedcba";

    fn keys(letter: char) -> Keys {
        Keys::parse(format!("{}A=", letter.to_string().repeat(42)).as_bytes()).expect("a key")
    }

    fn code() -> Code {
        Code {
            id: "one".to_owned(),
            since: 1_000,
            user: "ada".to_owned(),
            session: "s".to_owned(),
            path: "/instance/1/app/?a=b".to_owned(),
        }
    }

    #[test]
    fn the_exchange_is_below_the_path_that_no_machine_answers() {
        assert_eq!(EXCHANGE.strip_prefix(LOGIN_PATH), Some("/login"));
    }

    #[test]
    fn a_code_is_read_for_its_host_with_the_key_of_the_dashboard() {
        let text = code().seal(&keys('A'), LABEL);
        assert_eq!(Code::open(&keys('A'), LABEL, &text), Some(code()));
        assert_eq!(Code::open(&keys('A'), OTHER, &text), None, "for another host");
        assert_eq!(Code::open(&keys('B'), LABEL, &text), None, "of another dashboard");
        assert_eq!(Code::open(&keys('A'), LABEL, &text[1..]), None, "changed");
        let pass = Pass::of(&code(), at(0)).seal(&keys('A'), LABEL);
        assert_eq!(Code::open(&keys('A'), LABEL, &pass), None, "a cookie is not a code");
    }

    #[test]
    fn a_code_is_fresh_for_30_seconds() {
        for (second, is_fresh) in [(989, false), (990, true), (1_000, true), (1_030, true), (1_031, false)] {
            assert_eq!(code().is_fresh(at(second)), is_fresh, "{second}");
        }
        let never = Code { since: i64::MIN, ..code() };
        assert!(!never.is_fresh(at(0)));
    }

    #[test]
    fn a_cookie_is_valid_at_its_host_for_12_hours() {
        let cookie = Pass::of(&code(), at(1_000)).cookie(&keys('A'), LABEL).expect("random");
        let (pair, attributes) = cookie.split_once("; ").expect("attributes");
        assert_eq!(attributes, "Path=/; Secure; HttpOnly; SameSite=Lax");
        // A machine can set a cookie with the same name and a path for all hosts of its domain in an old browser.
        let line = format!("{COOKIE}=tossed; {pair}; {COOKIE}=tossed");
        let headers = HeaderMap::from_iter([(COOKIES, HeaderValue::try_from(line).expect("text"))]);
        let read = |letter, label, second| {
            Pass::read(&headers, &keys(letter), label, at(second)).map(|pass| (pass.user, pass.session))
        };
        let user = Some(("ada".to_owned(), "s".to_owned()));
        assert_eq!(read('A', LABEL, 1_000), user);
        assert_eq!(read('A', LABEL, 1_000 + 12 * 3_600 - 1), user);
        assert_eq!(read('A', LABEL, 1_000 + 12 * 3_600), None, "it has expired");
        assert_eq!(read('A', OTHER, 1_000), None, "at another host");
        assert_eq!(read('B', LABEL, 1_000), None, "with another key");
    }
}
