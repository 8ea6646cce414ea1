//! Counts the codes that a browser gets for one machine. A browser that does not keep the cookie of the machine comes
//! back for another code at once, and would be redirected forever.

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};

use crate::controllers::dashboard::session::given;
use crate::controllers::shared::cookies::ATTRIBUTES;
use crate::controllers::shared::sealing::Keys;

/// The cookie with the number of codes.
const NAME: &str = "__Host-crownlabs-codes";
/// The time in which codes are counted.
const WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// The number of codes in this time. Several tabs may open the same machine, each with up to four redirects, of which
/// browsers follow 20.
const MOST: u32 = 3;

/// The codes for one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempts {
    label: String,
    /// The time of the first one, in seconds.
    since: i64,
    number: u32,
}

impl Attempts {
    /// Counts a new code for the machine whose host has this label; `None` if there were too many.
    pub fn next(headers: &HeaderMap, keys: &Keys, label: &str, now: Timestamp) -> Option<Self> {
        let is_recent = |known: &Self| {
            known.label == label && (0..WITHIN.as_secs()).contains(&(now.as_second() - known.since))
        };
        match given(headers, NAME).find_map(|value| Self::read(keys, value)).filter(is_recent) {
            Some(known) if known.number >= MOST => None,
            Some(known) => Some(Self { number: known.number + 1, ..known }),
            None => Some(Self { label: label.to_owned(), since: now.as_second(), number: 1 }),
        }
    }

    fn read(keys: &Keys, value: &str) -> Option<Self> {
        let text = String::from_utf8(keys.open(NAME, value)?).ok()?;
        let mut parts = text.split(' ');
        let mut part = || parts.next();
        let (label, since, number) = (part()?.to_owned(), part()?.parse().ok()?, part()?.parse().ok()?);
        Some(Self { label, since, number })
    }

    /// Returns the cookie with their number.
    pub fn cookie(&self, keys: &Keys) -> String {
        let Self { label, since, number } = self;
        let value = keys.seal(NAME, format!("{label} {since} {number}").as_bytes());
        format!("{NAME}={value}; Max-Age={}; {ATTRIBUTES}", WITHIN.as_secs())
    }

    /// Returns the cookie that ends the count.
    pub fn ended() -> String {
        format!("{NAME}=; Max-Age=0; {ATTRIBUTES}")
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::COOKIE;

    use super::*;
    use crate::fixtures::at;

    fn keys() -> Keys {
        Keys::parse(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").expect("a key")
    }

    /// The number of the next code of a browser with this cookie.
    fn next(cookie: &str, label: &str, second: i64) -> Option<Attempts> {
        let pair = cookie.split(';').next().expect("a pair");
        let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(pair).expect("text"))]);
        Attempts::next(&headers, &keys(), label, at(second))
    }

    #[test]
    fn the_fourth_code_for_a_machine_within_a_minute_is_too_many() {
        let mut cookie = String::new();
        for number in 1..=3 {
            let attempts = next(&cookie, "a", 1_000 + i64::from(number)).expect("few");
            assert_eq!(attempts.number, number);
            cookie = attempts.cookie(&keys());
        }
        assert!(cookie.ends_with("; Max-Age=60; Path=/; Secure; HttpOnly; SameSite=Lax"), "{cookie}");
        assert_eq!(next(&cookie, "a", 1_060), None);
        let number = |cookie: &str, label, second| next(cookie, label, second).map(|next| next.number);
        assert_eq!(number(&cookie, "a", 1_061), Some(1), "a minute later");
        assert_eq!(number(&cookie, "b", 1_004), Some(1), "another machine");
        assert_eq!(number(&Attempts::ended(), "a", 1_004), Some(1), "after the page that says so");
    }
}
