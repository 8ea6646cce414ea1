//! The context of a request: the properties of the browser that a response depends on, such as language, time zone and
//! cookies.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::Response;
use derive_more::Deref;
use http::header::{ACCEPT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERER, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::Markup;

use super::assets;
use super::fetch::is_visit;
use super::fields::Fields;
use super::headers::{console_policy, page_policy, terminal_policy};
use super::response::{see_other, text, with_cookie, with_refresh};
use crate::config::Language;
use crate::controllers::dashboard::action::result::Outcome;
use crate::controllers::dashboard::app::App;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::session::{self, Favourites, Flash, Keys, Session};
use crate::controllers::dashboard::texts::{Problem, texts};
use crate::controllers::dashboard::ui::state::{State, state};
use crate::controllers::dashboard::ui::view::{Live, Notice, View};
use crate::runtime::clock;

/// The minimum number of seconds before a page retries.
pub const RETRY: u64 = 5;
/// The same for an error page while the API server does not respond: its response comes at once, and the page is right
/// within ten seconds after the end of the outage.
const RETRY_AWAY: u64 = 3;
/// The same for a page with old content, which the stream updates, and while the issuer does not respond, for which
/// each page waits.
pub const RETRY_LATER: u64 = 15;
/// The cookie with the language that the user has chosen.
const LANGUAGE: &str = "__Host-crownlabs-lang";
/// The cookie with the time zone of the browser, which a script writes.
const ZONE: &str = "__Host-crownlabs-zone";

/// The context of a request. The extractors of a request share it.
#[derive(Clone, Deref)]
pub struct Context(Arc<Data>);

/// The content of a [`Context`].
pub struct Data {
    /// The path of the request.
    pub path: String,
    /// The query.
    pub query: Fields,
    /// The path of the page that sent the request.
    pub referer: Option<String>,
    /// Whether the script of an open page sent the request, to update a part of that page.
    pub is_by_script: bool,
    /// Whether the user visits the dashboard with the request: neither a script nor another site sends it.
    pub is_visit: bool,
    /// The session of the browser.
    pub session: Option<Session>,
    /// The flash message for the path of the request.
    pub flash: Option<Flash>,
    /// Whether the browser still has the flash message of another page, which has shown it.
    pub has_other_flash: bool,
    /// The maximum length of a flash message, with its name.
    pub room_for_flash: usize,
    /// The favourite Templates.
    pub favourites: Favourites,
    /// The keys that seal cookies.
    pub keys: Arc<Keys>,
    /// The time of the request.
    pub now: Timestamp,
    /// The language of the response.
    pub language: Language,
    zone: TimeZone,
    nonce: String,
    fresh: String,
    /// The state of the dashboard.
    pub app: Arc<App>,
}

impl FromRequestParts<Arc<App>> for Context {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        if let Some(context) = parts.extensions.get::<Self>() {
            return Ok(context.clone());
        }
        let context = Self::new(parts, app).ok_or_else(|| {
            text(StatusCode::SERVICE_UNAVAILABLE, "the session key or a random number is missing\n")
        })?;
        parts.extensions.insert(context.clone());
        Ok(context)
    }
}

impl Context {
    /// Reads a request; `None` without session keys or random numbers.
    fn new(parts: &Parts, app: &Arc<App>) -> Option<Self> {
        let (headers, path) = (&parts.headers, parts.uri.path());
        let (keys, now) = (app.keys.borrow().clone()?, clock::now());
        let zone = session::given(headers, ZONE).next().filter(|zone| is_zone(zone));
        let is_by_script = headers.contains_key("hx-request");
        let referer = headers.get(REFERER).and_then(|value| value.to_str().ok()?.parse::<Uri>().ok());
        Some(Self(Arc::new(Data {
            path: path.to_owned(),
            query: Fields::parse(parts.uri.query().unwrap_or_default().as_bytes()),
            referer: referer.map(|referer| referer.path().to_owned()),
            is_by_script,
            is_visit: !is_by_script && is_visit(headers, &app.config.public_url),
            session: Session::read(headers, &keys),
            flash: Flash::read(headers, &keys, now, path),
            has_other_flash: Flash::is_left(headers, &keys, now, path),
            room_for_flash: session::room_for_flash(headers),
            favourites: Favourites::read(headers),
            keys,
            now,
            language: language(headers, &app.config.languages),
            zone: zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or(TimeZone::UTC),
            nonce: session::nonce()?,
            fresh: session::suffix()?,
            app: Arc::clone(app),
        })))
    }
}

impl Data {
    /// Returns the response that stores the language of `?lang=` in a cookie, if the query has it.
    pub fn chosen_language(&self) -> Option<Response> {
        let language = Language::of(self.query.get("lang"))?;
        let cookie = session::plain(LANGUAGE, language.code());
        Some(with_cookie(see_other(&self.path), &cookie))
    }

    /// Returns the view of a page at this path.
    pub fn view<'v>(&'v self, path: &'v str, scripts: &'v [&'v str]) -> View<'v> {
        View {
            language: self.language,
            languages: &self.app.config.languages,
            zone: &self.zone,
            now: self.now,
            nonce: &self.nonce,
            path,
            query: "",
            search: "",
            user: "",
            is_administrator: false,
            has_files: self.app.settings.drive_template.is_some(),
            brand: &self.app.brand,
            help: &self.app.config.help_url,
            style: assets::style(),
            scripts,
            events: "",
            live: Live::Never,
            fresh: &self.fresh,
            favourites: &self.favourites,
            notice: None,
            typed: None,
            old: None,
        }
    }

    /// Returns the response with a page.
    pub fn page(&self, code: StatusCode, page: Markup) -> Response {
        let mut page = page.into_string();
        // The page stays in memory while a slow browser reads it.
        page.shrink_to_fit();
        let mut answer = Response::new(page.into());
        *answer.status_mut() = code;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, page_policy(&self.nonce, self.app.issuer_origin()));
        answer
    }

    /// Returns the response with the page of a terminal.
    pub fn terminal(&self, page: Markup) -> Response {
        let mut answer = self.page(StatusCode::OK, page);
        let own = &self.app.config.public_url;
        let policy = terminal_policy(&self.nonce, self.app.issuer_origin(), own);
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        answer
    }

    /// Returns the response with the page of a console.
    pub fn console(&self, page: Markup) -> Response {
        let mut answer = self.page(StatusCode::OK, page);
        let own = &self.app.config.public_url;
        let policy = console_policy(&self.nonce, self.app.issuer_origin(), own);
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        answer
    }

    /// Returns the notice about the last form, which is shown above the page; `None` for an action that is unknown to
    /// this version.
    pub fn notice(&self) -> Option<Notice> {
        let flash = self.flash.as_ref()?;
        let texts = texts(self.language);
        let (problem, denied) = match &flash.outcome {
            Outcome::Done(action) => return Some(Notice::Done(texts.actions.get(action)?.done.clone())),
            Outcome::Failed(problem) => (*problem, String::new()),
            Outcome::Denied(causes) => (Problem::Refused, texts.denied(causes)),
        };
        let sentence = texts.problems.of(problem).as_str();
        let lost = if flash.is_lost { texts.lost.as_str() } else { "" };
        let parts = [sentence, &denied, &flash.message, lost].into_iter().filter(|part| !part.is_empty());
        Some(Notice::Failed(parts.collect::<Vec<_>>().join(" ")))
    }

    /// Returns the number of seconds after which a page loads again during an outage: from `least` to twice as many, so that
    /// not all pages do so at the same time.
    pub fn retry_in(&self, least: u64) -> u64 {
        // The nonce is random.
        least + self.nonce.bytes().map(u64::from).sum::<u64>() % (least + 1)
    }

    /// Returns the response with the page for a state. Its link leads to the requested page, or to the `return` page of
    /// the login. The flash message is shown to its user, and kept for the requested page. An open page that gets
    /// it as an update continues to update.
    pub fn state(&self, user: &str, of: &State) -> Response {
        let places = [self.path.as_str(), self.query.get("return")];
        let path = places.into_iter().find(|place| paths::is_page(place)).unwrap_or(paths::HOME);
        let notice = self.notice().filter(|_| !user.is_empty());
        let live = if self.is_by_script { Live::On } else { Live::Never };
        let view = View { user, live, notice: notice.as_ref(), ..self.view(path, &[]) };
        let code = StatusCode::from_u16(of.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = self.page(code, state(&view, of));
        let (after, refresh) = match of {
            State::TooMany(seconds) => (*seconds, *seconds),
            State::Away(_) => (RETRY, self.retry_in(RETRY_AWAY)),
            State::LoginAway => (RETRY, self.retry_in(RETRY_LATER)),
            _ => return answer,
        };
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after));
        with_refresh(answer, refresh, path)
    }
}

/// Whether a text can be the name of a time zone.
fn is_zone(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    text.len() <= 64 && text.bytes().all(is_plain)
}

/// Returns the language that the user has chosen, or that the browser prefers, or the first language of the
/// configuration.
fn language(headers: &HeaderMap, languages: &[Language]) -> Language {
    let is_offered = |language: &Language| languages.contains(language);
    let chosen = session::given(headers, LANGUAGE).find_map(Language::of).filter(is_offered);
    let wanted = chosen.or_else(|| preferred(headers).find(is_offered));
    wanted.or(languages.first().copied()).unwrap_or(Language::ENGLISH)
}

/// Returns the languages of `Accept-Language`, the preferred one first.
fn preferred(headers: &HeaderMap) -> impl Iterator<Item = Language> {
    let all = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let ranked = all.split(',').take(32).filter_map(|entry| {
        let (tag, quality) = entry.split_once(";q=").unwrap_or((entry, "1"));
        let code = tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
        let quality = quality.trim().parse::<f32>().ok().filter(|quality| *quality > 0.0)?;
        Some((quality.min(1.0), Language::of(&code)?))
    });
    let mut ranked: Vec<(f32, Language)> = ranked.collect();
    ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    ranked.into_iter().map(|(_, language)| language)
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    #[test]
    fn a_chosen_language_wins_over_the_browser_and_the_browser_over_the_configuration() {
        let (english, italian) = (Language::ENGLISH, Language::of("it").expect("Italian"));
        let both = &[english, italian];
        let cases: [(&'static str, &'static str, &[Language], Language); 11] = [
            ("", "", both, english),
            ("", "it", both, italian),
            ("", "de-DE, it-IT;q=0.8, en;q=0.7", both, italian),
            ("", "en;q=0.2, it;q=0.9", both, italian),
            ("", "it;q=0, en;q=0.1", both, english),
            ("", "fr;q=x,,;q=", both, english),
            ("__Host-crownlabs-lang=it", "en", both, italian),
            ("__Host-crownlabs-lang=xx", "it", both, italian),
            ("__Host-crownlabs-lang=it", "it", &[english], english),
            // Another host of the same domain can set this name.
            ("crownlabs-lang=it", "en", both, english),
            ("", "en", &[italian], italian),
        ];
        for (cookie, accepted, languages, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_static(cookie));
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(accepted));
            assert_eq!(language(&headers, languages), expected, "{cookie:?} {accepted:?}");
        }
    }

    #[test]
    fn a_zone_with_other_characters_is_ignored() {
        assert!(is_zone("Europe/Rome") && is_zone("Etc/GMT+1"));
        for text in ["../../etc/passwd", "a b", &"x".repeat(65)] {
            assert!(!is_zone(text), "{text}");
        }
    }
}
