//! The format of cookies in headers, and their length.
//!
//! The header of a request or a response has at most 3 KB: NGINX reads the header of a response into a buffer of 4 KB by
//! default, and answers with 502 if it is longer. Lines without cookies take about 800 bytes.

use http::HeaderMap;
use jiff::SignedDuration;

use crate::controllers::shared::cookies::ATTRIBUTES;
pub use crate::controllers::shared::cookies::given;

/// The cookie of the session.
pub const SESSION: &str = "__Host-crownlabs";
/// The cookie of the flash message.
pub const FLASH: &str = "__Host-crownlabs-flash";

/// The maximum length of a session, with its name.
pub const LONGEST_SESSION: usize = 1_800;
/// The maximum length of a session and a flash message together, with their names: a response can set both.
pub const MOST_OF_BOTH: usize = 2_200;
/// The expected length of the session that follows a login. A session of Keycloak has 800 to 1,000 bytes.
const USUAL_SESSION: usize = 1_000;

/// Returns a cookie for `Set-Cookie`; `None` if its name and value have more than `most` bytes. Without an age, it
/// lasts until the browser is closed.
pub fn cookie(name: &str, value: &str, age: Option<SignedDuration>, most: usize) -> Option<String> {
    let age = age.map_or_else(String::new, |age| format!("Max-Age={}; ", age.as_secs()));
    (length(name, value) <= most).then(|| format!("{name}={value}; {age}{ATTRIBUTES}"))
}

/// Returns the length of a cookie in the header of a request.
fn length(name: &str, value: &str) -> usize {
    name.len() + "=".len() + value.len()
}

/// Returns the length of a cookie of a browser; `None` if the browser does not send it.
pub fn length_of(headers: &HeaderMap, name: &str) -> Option<usize> {
    given(headers, name).map(|value| length(name, value)).max()
}

/// Returns the maximum length of a flash message, with its name, for a browser with these cookies. The message may have
/// to fit beside the session of the next login.
pub fn room_for_flash(headers: &HeaderMap) -> usize {
    let session = length_of(headers, SESSION).unwrap_or(USUAL_SESSION).min(LONGEST_SESSION);
    MOST_OF_BOTH - session
}

/// Returns the cookie that removes another.
pub fn deleted(name: &str) -> String {
    format!("{name}=; Max-Age=0; {ATTRIBUTES}")
}

/// Returns a cookie that scripts may read, such as the language. It lasts for a year.
pub fn plain(name: &str, value: &str) -> String {
    format!("{name}={value}; Max-Age=31536000; Path=/; Secure; SameSite=Lax")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::COOKIE;

    use super::*;

    #[test]
    fn cookies_are_restricted_to_their_host_and_to_https() {
        assert_eq!(cookie("n", "v", None, 3).as_deref(), Some("n=v; Path=/; Secure; HttpOnly; SameSite=Lax"));
        assert_eq!(deleted("n"), "n=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Lax");
        assert_eq!(plain("n", "v"), "n=v; Max-Age=31536000; Path=/; Secure; SameSite=Lax");
        assert_eq!(cookie("n", "v", None, 2), None, "it is too long");
    }

    #[test]
    fn a_flash_message_gets_the_room_that_the_session_leaves() {
        let with = |cookies: &str| {
            room_for_flash(&HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(cookies).expect("text"))]))
        };
        let session = |length: usize| format!("{SESSION}={}", "x".repeat(length - SESSION.len() - 1));
        for (cookies, room) in [
            (String::new(), 1_200),
            ("other=1".to_owned(), 1_200),
            (session(900), 1_300),
            (format!("a=b; {}; {FLASH}=x", session(1_800)), 400),
            (session(4_000), 400),
        ] {
            assert_eq!(with(&cookies), room, "{cookies:.60}");
        }
    }
}
