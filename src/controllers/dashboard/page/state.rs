//! Pages that say what is wrong, and what to do: one thing.

use jiff::Timestamp;
use maud::{Markup, html};

use super::layout;
use super::links;
use super::time;
use super::view::View;
use super::words::Said;
use crate::api::shown::message;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The user has no Tenant.
    NoTenant,
    /// The Tenant's address, which is not confirmed.
    Unconfirmed(String),
    /// The personal namespace is not there yet.
    NoNamespace,
    /// The Tenant is in no course.
    NoCourse,
    /// There is no such page or object.
    NotFound,
    /// The API server has refused it, in these words.
    Refused(String),
    /// An object has changed since the page was loaded.
    Changed,
    /// The API server does not answer since then, and nothing that can be shown is known.
    Away(Timestamp),
    /// The API server does not accept the tokens of this issuer.
    IssuerRefused(String),
    /// Keycloak does not answer.
    LoginAway,
    /// The login was not accepted, for this reason.
    LoginFailed(String),
    /// The session is over.
    SessionOver,
    /// The user has logged out.
    LoggedOut,
    /// Something sends too many requests: it can be tried again after so many seconds.
    TooMany(u64),
    /// A request that would change something comes from another page.
    NotHere,
    /// The page could not be made, for this reason.
    Broken(String),
}

impl State {
    /// The status code of the answer.
    pub const fn code(&self) -> u16 {
        match self {
            Self::NoTenant | Self::Unconfirmed(_) | Self::NoNamespace | Self::NoCourse | Self::LoggedOut => {
                200
            }
            Self::SessionOver | Self::LoginFailed(_) => 401,
            Self::Refused(_) | Self::NotHere => 403,
            Self::NotFound => 404,
            Self::Changed => 409,
            Self::TooMany(_) => 429,
            Self::Broken(_) => 500,
            Self::IssuerRefused(_) => 502,
            Self::Away(_) | Self::LoginAway => 503,
        }
    }

    /// Where its action leads to.
    fn leads_to(&self, view: &View<'_>) -> String {
        match self {
            Self::NoCourse => "/courses".to_owned(),
            Self::NotFound | Self::Refused(_) | Self::NotHere => "/".to_owned(),
            Self::LoggedOut => "/login".to_owned(),
            Self::SessionOver | Self::LoginFailed(_) => links::login_at(view.path),
            _ => view.path.to_owned(),
        }
    }

    /// What it is in words, and what stands for `{}` in them.
    fn said(&self, view: &View<'_>) -> (Said, String) {
        let words = view.words();
        let states = &words.states;
        let plain = |said| (said, String::new());
        match self {
            Self::NoTenant => plain(states.no_tenant),
            Self::Unconfirmed(address) => (states.unconfirmed, address.clone()),
            Self::NoNamespace => plain(states.no_namespace),
            Self::NoCourse => plain(states.no_course),
            Self::NotFound => plain(states.not_found),
            Self::Refused(_) => plain(states.refused),
            Self::Changed => plain(states.changed),
            Self::Away(since) => (states.away, time::relative(view, *since)),
            Self::IssuerRefused(issuer) => (states.issuer_refused, issuer.clone()),
            Self::LoginAway => plain(states.login_away),
            Self::LoginFailed(_) => plain(states.login_failed),
            Self::SessionOver => plain(states.session_over),
            Self::LoggedOut => plain(states.logged_out),
            Self::TooMany(seconds) => (states.too_many, (words.duration)('s', *seconds)),
            Self::NotHere => plain(states.not_here),
            Self::Broken(_) => plain(states.broken),
        }
    }

    /// What a server has said about it.
    fn details(&self) -> Option<&str> {
        match self {
            Self::Refused(text) | Self::LoginFailed(text) | Self::Broken(text) => Some(text),
            _ => None,
        }
    }
}

/// The page that says what is wrong.
pub fn state(view: &View<'_>, state: &State) -> Markup {
    let words = view.words();
    let (Said { heading, happened, next, action }, what) = state.said(view);
    let [happened, next] = [happened, next].map(|text| message(&text.replace("{}", &what)));
    let announced = html! { (heading) };
    let content = html! {
        div.state {
            h1 { (heading) }
            p { (happened) }
            p { (next) }
            @if let Some(details) = state.details() {
                p.said { span.soft { (words.details) ": " } (message(details)) }
            }
            p { a.button.main href=(state.leads_to(view)) { (action) } }
        }
    };
    layout::page(view, heading, &announced, &content)
}
