//! The cookies of a browser. Except for the favourites, they are sealed, so only the dashboard can read and write them. Other
//! cookies are ignored.

mod attempt;
mod cookies;
mod favourites;
mod flash;
pub mod login;
mod logout;
mod random;
mod short;
mod token;

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};

pub use self::attempt::{LoginAttempt, LoginState};
use self::cookies::{LONGEST_SESSION, SESSION, cookie, deleted};
pub use self::cookies::{given, plain, room_for_flash};
pub use self::favourites::Favourites;
pub use self::flash::Flash;
pub use self::logout::Logout;
pub use self::random::{nonce, suffix};
use self::token::{packed, unpacked};
use crate::clients::oidc::Secret;
pub use crate::controllers::shared::sealing::Keys;

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

impl Session {
    /// Returns the cookie of the session; `None` if it is too long. The browser keeps it until it is closed.
    pub fn seal(&self, keys: &Keys) -> Option<String> {
        let Self { id, refresh_token, visited } = self;
        let text = format!("{id} {} ", visited.as_second());
        let plain = [text.as_bytes(), &packed(refresh_token.expose())].concat();
        cookie(SESSION, &keys.seal(SESSION, &plain), None, LONGEST_SESSION)
    }

    /// Whether new tokens may still be requested without a visit. An open page does not keep an unused session alive.
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
            let bytes = keys.open(SESSION, value)?;
            let mut parts = bytes.splitn(3, |byte| *byte == b' ');
            let mut text = || std::str::from_utf8(parts.next()?).ok();
            let (id, visited) = (text()?.to_owned(), text()?.parse().ok()?);
            let token = unpacked(parts.next()?)?;
            let visited = Timestamp::from_second(visited).ok()?;
            Some(Self { id, refresh_token: Secret::from(token), visited })
        })
    }

    /// Returns the cookie that ends a session.
    pub fn ended() -> String {
        deleted(SESSION)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::COOKIE;
    use proptest::prelude::*;

    use super::cookies::FLASH;
    use super::*;
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

    /// The headers of a browser that has this cookie.
    fn sent(set_cookie: &str) -> HeaderMap {
        let pair = set_cookie.split(';').next().expect("a pair");
        HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(pair).expect("text"))])
    }

    #[test]
    fn a_session_is_read_with_its_own_key_only() {
        for token in ["ey.token", "eyJhbGciOiJI.eyJleHAi.c2ln", "with a space"] {
            let session = session_of(token);
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
        }
    }

    #[test]
    fn a_session_that_is_too_long_for_the_header_of_a_response_has_no_cookie() {
        // A JSON Web Token can have a third more characters than another token.
        let opaque = |length: usize| session_of(&"!".repeat(length)).seal(&keys());
        let signed = |length: usize| session_of(&"abcd".repeat(length / 4)).seal(&keys());
        assert!(opaque(1_280).is_some() && opaque(1_320).is_none());
        assert!(signed(1_700).is_some() && signed(1_760).is_none());
    }

    #[test]
    fn a_cookie_is_not_accepted_under_another_name() {
        let session = session_of("t");
        let cookie = session.seal(&keys()).expect("short").replacen(SESSION, FLASH, 1);
        assert_eq!(Flash::read(&sent(&cookie), &keys(), at(0), "/"), None);
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
        fn arbitrary_cookies_and_states_do_not_panic(text in any::<Vec<u8>>(), state in any::<String>()) {
            if let Ok(value) = HeaderValue::from_bytes(&text) {
                let headers = HeaderMap::from_iter([(COOKIE, value)]);
                prop_assert_eq!(Session::read(&headers, &keys()), None);
            }
            prop_assert_eq!(LoginState::open(&keys(), &state), None);
        }
    }
}
