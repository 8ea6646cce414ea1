//! The favourite Templates of a browser, in a cookie: they need neither a right nor a store, and every replica knows them.
//! The cookie contains short digests, so that it fits beside the others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use jiff::SignedDuration;
use ring::digest;

use super::cookies::{cookie, deleted, given};

/// The cookie.
const NAME: &str = "__Host-crownlabs-favourites";
/// The maximum number of favourites. A further one replaces the oldest.
const MOST: usize = 20;
/// The length of a key, which has 36 bits.
const KEY: usize = 6;
/// The maximum length of the cookie, with its name.
const LENGTH: usize = NAME.len() + "=".len() + MOST * KEY;
/// How long a browser keeps the cookie after the last change.
const KEPT: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The keys of the favourite Templates of a browser, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Favourites(Vec<String>);

impl Favourites {
    /// Reads the favourites of a browser.
    pub fn read(headers: &HeaderMap) -> Self {
        let value = given(headers, NAME).next().unwrap_or_default();
        let keys = value.as_bytes().chunks_exact(KEY).filter_map(|key| std::str::from_utf8(key).ok());
        Self(keys.filter(|key| is_key(key)).take(MOST).map(str::to_owned).collect())
    }

    /// Returns the key of a Template.
    pub fn key(namespace: &str, name: &str) -> String {
        let digest = digest::digest(&digest::SHA256, format!("{namespace}/{name}").as_bytes());
        let mut key = URL_SAFE_NO_PAD.encode(digest);
        key.truncate(KEY);
        key
    }

    /// Whether the Template with this key is a favourite.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|known| known == key)
    }

    /// Returns the favourites with (`true`) or without this key; `None` if no Template can have the key.
    pub fn changed(&self, key: &str, is_favourite: bool) -> Option<Self> {
        let added = is_favourite.then(|| key.to_owned());
        let others = self.0.iter().filter(|known| *known != key).cloned();
        is_key(key).then(|| Self(added.into_iter().chain(others).take(MOST).collect()))
    }

    /// Returns their cookie.
    pub fn cookie(&self) -> String {
        let value = self.0.concat();
        let kept = cookie(NAME, &value, Some(KEPT), LENGTH).filter(|_| !value.is_empty());
        kept.unwrap_or_else(|| deleted(NAME))
    }
}

/// Whether a text can be a key.
fn is_key(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.len() == KEY && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::COOKIE;
    use proptest::prelude::*;

    use super::*;

    fn read(cookies: &str) -> Favourites {
        Favourites::read(&HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(cookies).expect("text"))]))
    }

    /// The favourites with these keys, the last one first.
    fn of(keys: &[&str]) -> Favourites {
        let add = |all: Favourites, key: &&str| all.changed(key, true).expect("a key");
        keys.iter().fold(Favourites::default(), add)
    }

    #[test]
    fn a_favourite_is_added_once_and_removed() {
        let both = of(&["aaaaaa", "bbbbbb"]);
        assert_eq!(both, Favourites(vec!["bbbbbb".to_owned(), "aaaaaa".to_owned()]));
        assert_eq!(both.changed("aaaaaa", true), Some(of(&["bbbbbb", "aaaaaa"])), "it is the newest");
        let one = both.changed("bbbbbb", false).expect("a key");
        assert_eq!((one.has("aaaaaa"), one.has("bbbbbb")), (true, false));
        assert_eq!(one.changed("bbbbbb", false), Some(one), "it is none already");
        for key in ["", "aaaaa", "aaaaaaa", "aaaaa;", "aaaaaé", "aaaa a"] {
            assert_eq!(both.changed(key, true), None, "{key}");
        }
    }

    #[test]
    fn the_cookie_has_the_last_twenty_favourites_until_none_is_left() {
        let keys: Vec<String> =
            (0..21).map(|number| Favourites::key("workspace-tea", &number.to_string())).collect();
        let all = of(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        let cookie = all.cookie();
        let (pair, attributes) = cookie.split_once("; ").expect("attributes");
        assert_eq!(attributes, "Max-Age=31536000; Path=/; Secure; HttpOnly; SameSite=Lax");
        assert_eq!(pair.len(), LENGTH);
        assert_eq!(read(&format!("other=1; {pair}")), all);
        assert_eq!((all.has(&keys[0]), all.has(&keys[1]), all.has(&keys[20])), (false, true, true));
        let ended = of(&["aaaaaa"]).changed("aaaaaa", false).expect("a key").cookie();
        assert!(ended.starts_with("__Host-crownlabs-favourites=; Max-Age=0; "), "{ended}");
    }

    #[test]
    fn invalid_keys_in_a_cookie_are_ignored() {
        for (value, expected) in [
            ("", Favourites::default()),
            ("bbbbbb", of(&["bbbbbb"])),
            ("bbbbbbaaa", of(&["bbbbbb"])),
            ("bb%bbbaaaaaa", of(&["aaaaaa"])),
        ] {
            assert_eq!(read(&format!("{NAME}={value}")), expected, "{value}");
        }
        assert_eq!(
            read("crownlabs-favourites=aaaaaa"),
            Favourites::default(),
            "another host can set this name"
        );
    }

    #[test]
    fn templates_of_two_courses_with_one_name_have_different_keys() {
        let keys = ["workspace-tea", "workspace-net"].map(|namespace| Favourites::key(namespace, "desktop"));
        assert!(keys[0] != keys[1] && keys.iter().all(|key| is_key(key)), "{keys:?}");
    }

    proptest! {
        #[test]
        fn arbitrary_cookies_do_not_panic(text in any::<Vec<u8>>()) {
            if let Ok(value) = HeaderValue::from_bytes(&[NAME.as_bytes(), b"=", &text].concat()) {
                let found = Favourites::read(&HeaderMap::from_iter([(COOKIE, value)]));
                prop_assert!(found.0.len() <= MOST && found.0.iter().all(|key| is_key(key)));
            }
        }
    }
}
