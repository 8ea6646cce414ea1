//! The flash message about a form, in a cookie until a page shows it.

use http::HeaderMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cookies::{FLASH, MOST_OF_BOTH, cookie, deleted, given, length_of};
use super::short::{SHORT, is_recent};
use crate::controllers::dashboard::action::result::Outcome;
use crate::controllers::shared::sealing::Keys;

/// The maximum number of characters of a message if the whole one does not fit.
const CUT: usize = 500;
/// … and if that does not fit either.
const CUT_MORE: usize = 120;
/// The fields of forms that pages fill in.
const HIDDEN: [&str; 12] = [
    "uid",
    "selector",
    "name",
    "namespace",
    "templateNamespace",
    "template",
    "environment",
    "entry",
    "at",
    "same",
    "count",
    "who",
];

/// The flash message about a form, until a page shows it. The names in the cookie are short, for longer fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flash {
    /// The path of the page that shows it.
    #[serde(rename = "p")]
    pub path: String,
    /// The outcome of the form.
    #[serde(rename = "o")]
    pub outcome: Outcome,
    /// The message of the server that rejected it.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the form followed by its fields, if it changed nothing.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// Whether the fields were too long for a cookie.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lost: bool,
    /// Whether its page has shown it. It is kept if the user has typed something, so that a reload and *Back* show it
    /// again.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shown: bool,
}

/// A flash message, with the time when it was set.
#[derive(Serialize, Deserialize)]
struct Dated<T> {
    #[serde(rename = "s")]
    since: i64,
    #[serde(rename = "c")]
    content: T,
}

impl Flash {
    /// Returns its cookie, whose name and value have at most `most` bytes. If it is too long, the message is cut; if it
    /// is still too long, the fields are dropped.
    pub fn seal(&self, keys: &Keys, now: Timestamp, most: usize) -> String {
        let cut = |length: usize| {
            let message = self.message.chars().take(length).collect();
            Self { message, ..self.clone() }
        };
        let lost = |form: Self| Self { fields: Vec::new(), is_lost: true, ..form };
        let forms = [self.clone(), cut(CUT), cut(CUT_MORE), lost(cut(CUT)), lost(cut(CUT_MORE))];
        let sealed = |form: &Self| {
            // Plain data can always be encoded.
            let text =
                serde_json::to_vec(&Dated { since: now.as_second(), content: form }).unwrap_or_default();
            cookie(FLASH, &keys.seal(FLASH, &text), Some(SHORT), most)
        };
        forms.iter().find_map(sealed).unwrap_or_else(|| deleted(FLASH))
    }

    /// Reads the flash message for a page.
    pub fn read(headers: &HeaderMap, keys: &Keys, now: Timestamp, path: &str) -> Option<Self> {
        Self::opened(headers, keys, now).filter(|form| form.path == path)
    }

    /// Whether a browser still has the message of a page that has shown it, and now opens another page.
    pub fn is_left(headers: &HeaderMap, keys: &Keys, now: Timestamp, path: &str) -> bool {
        Self::opened(headers, keys, now).is_some_and(|form| form.is_shown && form.path != path)
    }

    /// Returns the cookie after its page has shown it; `None` if it does not change.
    pub fn shown(&self, keys: &Keys, now: Timestamp, most: usize) -> Option<String> {
        match (self.is_typed(), self.is_shown) {
            (false, _) => Some(Self::ended()),
            (true, true) => None,
            (true, false) => Some(Self { is_shown: true, ..self.clone() }.seal(keys, now, most)),
        }
    }

    /// Whether it has text that the user has typed.
    fn is_typed(&self) -> bool {
        // The first entry is the path of the form.
        let mut fields = self.fields.iter().skip(1);
        fields.any(|(name, value)| !HIDDEN.contains(&name.as_str()) && !value.trim().is_empty())
    }

    fn opened(headers: &HeaderMap, keys: &Keys, now: Timestamp) -> Option<Self> {
        given(headers, FLASH).find_map(|value| {
            let Dated { since, content } = serde_json::from_slice(&keys.open(FLASH, value)?).ok()?;
            is_recent(since, now).then_some(content)
        })
    }

    /// Returns a shorter cookie if the one of a browser does not fit beside a new session, whose name and value have
    /// `session` bytes.
    pub fn shortened(headers: &HeaderMap, keys: &Keys, now: Timestamp, session: usize) -> Option<String> {
        let most = MOST_OF_BOTH.saturating_sub(session);
        let is_too_long = length_of(headers, FLASH).is_some_and(|length| length > most);
        is_too_long.then(|| match Self::opened(headers, keys, now) {
            Some(form) => form.seal(keys, now, most),
            None => Self::ended(),
        })
    }

    /// Returns the cookie that ends it.
    pub fn ended() -> String {
        deleted(FLASH)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::COOKIE;
    use proptest::prelude::*;

    use super::*;
    use crate::controllers::dashboard::texts::Problem;
    use crate::fixtures::at;

    /// The room beside a session of Keycloak.
    const ROOM: usize = 1_300;

    fn keys() -> Keys {
        Keys::parse(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").expect("a key")
    }

    fn flash(path: &str, message: String, fields: Vec<(String, String)>) -> Flash {
        let outcome = Outcome::Failed(Problem::SessionOver);
        Flash { path: path.to_owned(), outcome, message, fields, is_lost: false, is_shown: false }
    }

    /// The headers of a browser that has this cookie.
    fn sent(set_cookie: &str) -> HeaderMap {
        let pair = set_cookie.split(';').next().expect("a pair");
        HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(pair).expect("text"))])
    }

    #[test]
    fn a_flash_message_lasts_ten_minutes_and_is_for_one_page() {
        let cookie = flash("/", String::new(), Vec::new()).seal(&keys(), at(1_000), ROOM);
        assert!(cookie.contains("; Max-Age=600;"), "{cookie}");
        for (second, is_there) in [(1_000, true), (1_600, true), (1_601, false), (940, true), (939, false)] {
            let read = Flash::read(&sent(&cookie), &keys(), at(second), "/");
            assert_eq!(read.is_some(), is_there, "{second}");
        }
        assert_eq!(Flash::read(&sent(&cookie), &keys(), at(1_000), "/courses"), None);
    }

    #[test]
    fn a_message_is_cut_for_the_fields_and_fields_that_are_too_long_are_reported_as_lost() {
        // An SSH key of RSA with 4,096 bits has about 740 characters.
        for (length, message, is_lost, rest) in
            [(740, 0, false, 0), (300, 450, false, 450), (600, 3_000, false, 120), (900, 3_000, true, 500)]
        {
            let fields =
                vec![("/account/keys/add".to_owned(), String::new()), ("key".to_owned(), "x".repeat(length))];
            let form = flash("/account", "m".repeat(message), fields);
            let cookie = form.seal(&keys(), at(0), ROOM);
            let kept = Flash::read(&sent(&cookie), &keys(), at(0), "/account");
            let fields = if is_lost { Vec::new() } else { form.fields };
            assert_eq!(kept, Some(Flash { message: "m".repeat(rest), fields, is_lost, ..form }), "{length}");
        }
    }

    #[test]
    fn a_message_with_fields_is_kept_until_another_page_is_opened() {
        let fields =
            vec![("/account/keys/add".to_owned(), String::new()), ("key".to_owned(), "x".to_owned())];
        let form = flash("/account", String::new(), fields);
        let seal = |form: &Flash| sent(&form.seal(&keys(), at(0), ROOM));
        assert!(!Flash::is_left(&seal(&form), &keys(), at(0), "/"), "its page has not shown it");
        let shown = form.shown(&keys(), at(0), ROOM).expect("a new cookie");
        let kept = Flash::read(&sent(&shown), &keys(), at(0), "/account").expect("the message");
        assert_eq!(kept, Flash { is_shown: true, ..form });
        assert_eq!(kept.shown(&keys(), at(0), ROOM), None, "a reload does not change it");
        for (path, is_left) in [("/account", false), ("/", true)] {
            assert_eq!(Flash::is_left(&seal(&kept), &keys(), at(0), path), is_left, "{path}");
        }
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let untyped = vec![field("/machines/a/b/stop", ""), field("uid", "u1"), field("prettyName", " ")];
        for fields in [Vec::new(), untyped] {
            let done = flash("/account", String::new(), fields);
            assert_eq!(done.shown(&keys(), at(0), ROOM), Some(Flash::ended()), "nothing was typed");
        }
    }

    #[test]
    fn a_message_is_shortened_if_it_does_not_fit_beside_the_session_of_the_next_login() {
        let form = flash("/account", String::new(), vec![("key".to_owned(), "x".repeat(700))]);
        let headers = sent(&form.seal(&keys(), at(0), ROOM));
        assert_eq!(Flash::shortened(&headers, &keys(), at(0), MOST_OF_BOTH - ROOM), None);
        let cookie = Flash::shortened(&headers, &keys(), at(0), 1_800).expect("a shorter one");
        let kept = Flash::read(&sent(&cookie), &keys(), at(0), "/account").expect("the message");
        assert!(kept.is_lost && kept.fields.is_empty(), "{kept:?}");
        let foreign = sent(&format!("{FLASH}={}", "x".repeat(700)));
        assert_eq!(Flash::shortened(&foreign, &keys(), at(0), 1_800), Some(Flash::ended()));
        assert_eq!(Flash::shortened(&HeaderMap::new(), &keys(), at(0), 1_800), None);
    }

    proptest! {
        #[test]
        fn fields_are_kept_completely_or_reported_as_lost(
            message in any::<String>(),
            fields in prop::collection::vec((any::<String>(), ".{0,600}"), 0..4),
            repeated in 1_usize..40,
            room in 400_usize..1_300,
        ) {
            let message = message.repeat(repeated);
            let form = flash("/account", message, fields);
            let cookie = form.seal(&keys(), at(0), room);
            let (pair, _) = cookie.split_once(';').expect("attributes");
            prop_assert!(pair.len() <= room && HeaderValue::try_from(&cookie).is_ok());
            if let Some(kept) = Flash::read(&sent(&cookie), &keys(), at(0), "/account") {
                prop_assert!(form.message.starts_with(&kept.message));
                prop_assert_eq!(kept.fields, if kept.is_lost { Vec::new() } else { form.fields });
            }
        }
    }
}
