//! A request with what its answer needs to know of the browser: its language, its zone, and the key of its cookies.

use std::sync::Arc;

use http::header::{ACCEPT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::Markup;

use super::page::{Language, State, View, state};
use super::route::{Fields, page_at};
use super::session::{self, Keys};
use super::{assets, guard};
use crate::config;
use crate::runtime::clock;

/// After how long a page is asked for again at least, in seconds.
pub const PAUSE: u64 = 5;
/// The cookie with the language that a user has chosen.
pub const LANGUAGE: &str = "crownlabs-lang";
/// The cookie with the zone of the browser's times, which a script writes.
const ZONE: &str = "crownlabs-zone";

/// A request.
pub struct Visit<'r> {
    /// The request itself.
    pub request: &'r Request<Bytes>,
    /// The keys of its cookies.
    pub keys: Arc<Keys>,
    /// The fields of its query.
    pub query: Fields,
    /// When it has arrived.
    pub now: Timestamp,
    languages: &'r [Language],
    language: Language,
    zone: TimeZone,
    nonce: String,
    fresh: String,
    issuer: &'r str,
    help: &'r str,
}

/// What is the same for all requests.
pub struct Installation {
    /// The languages of the pages.
    pub languages: Vec<Language>,
    /// The origin of the issuer, to which forms may lead.
    pub issuer: String,
    /// Where help is found.
    pub help: String,
}

/// The languages of the configuration.
pub fn languages(configured: &[config::Language]) -> Vec<Language> {
    let language = |of: &config::Language| match of {
        config::Language::En => Language::English,
        config::Language::It => Language::Italian,
    };
    configured.iter().map(language).collect()
}

impl<'r> Visit<'r> {
    /// A request; `None` if the system has no random numbers.
    pub fn of(request: &'r Request<Bytes>, keys: Arc<Keys>, installation: &'r Installation) -> Option<Self> {
        let headers = request.headers();
        let zone = session::given(headers, ZONE).next().filter(|zone| is_zone(zone));
        Some(Self {
            request,
            keys,
            query: Fields::parse(request.uri().query().unwrap_or_default().as_bytes()),
            now: clock::now(),
            languages: &installation.languages,
            language: language(headers, &installation.languages),
            zone: zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or(TimeZone::UTC),
            nonce: session::nonce()?,
            fresh: session::suffix()?,
            issuer: &installation.issuer,
            help: &installation.help,
        })
    }

    /// The headers.
    pub fn headers(&self) -> &'r HeaderMap {
        self.request.headers()
    }

    /// The language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Whether a part of a page is asked for by its script, which goes nowhere else.
    pub fn is_by_script(&self) -> bool {
        self.headers().contains_key("hx-request")
    }

    /// What a page at this path is shown with.
    pub fn view<'v>(&'v self, path: &'v str, scripts: &'v [&'v str]) -> View<'v> {
        View {
            language: self.language,
            languages: self.languages,
            zone: &self.zone,
            now: self.now,
            nonce: &self.nonce,
            path,
            user: "",
            help: self.help,
            style: assets::style(),
            scripts,
            events: "",
            live: super::page::Live::Never,
            fresh: &self.fresh,
            notice: None,
            typed: None,
            old: None,
        }
    }

    /// The answer with a page.
    pub fn page(&self, code: StatusCode, page: Markup) -> Response<Bytes> {
        let mut page = page.into_string();
        // It may take a while until the browser has taken it.
        page.shrink_to_fit();
        let mut answer = Response::new(Bytes::from(page));
        *answer.status_mut() = code;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, guard::policy(&self.nonce, self.issuer));
        answer
    }

    /// The answer with a page that says what is wrong. It leads to the page that was asked for, or to which a login was to return.
    pub fn state(&self, user: &str, of: &State) -> Response<Bytes> {
        let places = [self.request.uri().path(), self.query.get("return")];
        let path = places.into_iter().find(|place| page_at(place).is_some()).unwrap_or("/");
        let view = View { user, ..self.view(path, &[]) };
        let code = StatusCode::from_u16(of.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = self.page(code, state(&view, of));
        match of {
            State::TooMany(seconds) => {
                answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*seconds));
                // A browser without scripts, too, asks again by itself. Paths of pages are plain text.
                if let Ok(refresh) = HeaderValue::try_from(format!("{seconds}; url={path}")) {
                    answer.headers_mut().insert("refresh", refresh);
                }
            }
            State::Away(_) | State::LoginAway => {
                answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(PAUSE));
            }
            _ => {}
        }
        answer
    }
}

/// Whether a text can be the name of a zone.
fn is_zone(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    text.len() <= 64 && text.bytes().all(is_plain)
}

/// The language that a user has chosen, or that the browser prefers, of those that there are; the first else.
fn language(headers: &HeaderMap, languages: &[Language]) -> Language {
    let is_there = |language: &Language| languages.contains(language);
    let chosen = session::given(headers, LANGUAGE).find_map(Language::of).filter(is_there);
    chosen.or_else(|| preferred(headers).find(is_there)).or(languages.first().copied()).unwrap_or_default()
}

/// The languages that a browser prefers, the best first.
fn preferred(headers: &HeaderMap) -> impl Iterator<Item = Language> {
    let all = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut ranked: Vec<(u32, Language)> = Vec::new();
    for entry in all.split(',').take(32) {
        let (tag, quality) = entry.split_once(";q=").unwrap_or((entry, "1"));
        let code = tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
        let quality: f32 = quality.trim().parse().unwrap_or(0.0);
        if let Some(language) = Language::of(&code)
            && quality > 0.0
        {
            // In thousandths, as the header has it.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
            ranked.push(((quality.min(1.0) * 1_000.0) as u32, language));
        }
    }
    ranked.sort_by_key(|(quality, _)| std::cmp::Reverse(*quality));
    ranked.into_iter().map(|(_, language)| language)
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    #[test]
    fn the_language_is_that_of_the_user_then_of_the_browser_then_of_the_installation() {
        const BOTH: &[Language] = &[Language::English, Language::Italian];
        for (cookie, accepted, languages, expected) in [
            ("", "", BOTH, Language::English),
            ("", "it", BOTH, Language::Italian),
            ("", "de-DE, it-IT;q=0.8, en;q=0.7", BOTH, Language::Italian),
            ("", "en;q=0.2, it;q=0.9", BOTH, Language::Italian),
            ("", "it;q=0, en;q=0.1", BOTH, Language::English),
            ("", "fr;q=x,,;q=", BOTH, Language::English),
            ("crownlabs-lang=it", "en", BOTH, Language::Italian),
            ("crownlabs-lang=xx", "it", BOTH, Language::Italian),
            ("crownlabs-lang=it", "it", &[Language::English], Language::English),
            ("", "en", &[Language::Italian], Language::Italian),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_static(cookie));
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(accepted));
            assert_eq!(language(&headers, languages), expected, "{cookie:?} {accepted:?}");
        }
    }

    #[test]
    fn a_zone_is_no_path() {
        assert!(is_zone("Europe/Rome") && is_zone("Etc/GMT+1"));
        for text in ["../../etc/passwd", "a b", &"x".repeat(65)] {
            assert!(!is_zone(text), "{text}");
        }
    }
}
