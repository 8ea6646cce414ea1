//! Pages that replace the requested page, for example after an error. Each has one link to the next step.

use jiff::Timestamp;
use maud::{Markup, html};

use super::view::View;
use super::{layout, links, time};
use crate::api::shown::message;
use crate::controllers::dashboard::session::Logout;
use crate::controllers::dashboard::texts::{StateTexts, Texts};

/// The reason for such a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The user has no Tenant.
    NoTenant,
    /// The Tenant's address, which is not confirmed.
    Unconfirmed(String),
    /// The personal namespace does not exist yet.
    NoNamespace,
    /// The Tenant is in no course.
    NoCourse,
    /// The page or object does not exist.
    NotFound,
    /// The Template or the course of a link does not exist.
    NoTemplate,
    /// The user is in the course of a link, and cannot see its Templates yet.
    CourseWaits,
    /// The API server rejected the request with this message.
    Refused(String),
    /// An object has changed since the page was loaded.
    Changed,
    /// The API server did not respond at this time, and no earlier content is cached.
    Away(Timestamp),
    /// The API server does not accept the tokens of this issuer.
    IssuerRefused(String),
    /// The issuer does not respond.
    LoginAway,
    /// The login failed for this reason.
    LoginFailed(String),
    /// The address that a login to a machine leads to is not the address of a machine.
    NoMachine,
    /// The browser came back from a machine without its login several times. This page logs in again.
    NoCookie(String),
    /// The session expired.
    SessionOver,
    /// The user has logged out, which has ended this.
    LoggedOut(Logout),
    /// There are too many requests. The page can be requested again after this number of seconds.
    TooMany(u64),
    /// A form was sent by a page of another origin.
    NotHere,
    /// The page could not be created for this reason.
    Broken(String),
}

impl State {
    /// Returns the status code of the response.
    pub const fn code(&self) -> u16 {
        match self {
            Self::NoTenant
            | Self::Unconfirmed(_)
            | Self::NoNamespace
            | Self::NoCourse
            | Self::CourseWaits
            | Self::LoggedOut(_) => 200,
            Self::SessionOver | Self::LoginFailed(_) => 401,
            Self::Refused(_) | Self::NotHere | Self::NoCookie(_) => 403,
            Self::NotFound | Self::NoTemplate | Self::NoMachine => 404,
            Self::Changed => 409,
            Self::TooMany(_) => 429,
            Self::Broken(_) => 500,
            Self::IssuerRefused(_) => 502,
            Self::Away(_) | Self::LoginAway => 503,
        }
    }

    /// Returns the target of its link.
    fn leads_to(&self, view: &View<'_>) -> String {
        match self {
            Self::NoCourse => "/courses".to_owned(),
            Self::NotFound | Self::NoTemplate | Self::NoMachine | Self::Refused(_) | Self::NotHere => {
                "/".to_owned()
            }
            Self::NoCookie(page) => page.clone(),
            Self::LoggedOut(_) => "/login".to_owned(),
            Self::SessionOver | Self::LoginFailed(_) => links::login_at(view.path),
            _ => view.path.to_owned(),
        }
    }

    /// Returns the texts, and the name and value of their placeholder.
    fn texts(&self, view: &View<'_>) -> (&'static StateTexts, (&'static str, String)) {
        let texts = view.texts();
        let states = &texts.states;
        let plain = |texts| (texts, ("", String::new()));
        match self {
            Self::NoTenant => plain(&states.no_tenant),
            Self::Unconfirmed(address) => (&states.unconfirmed, ("address", address.clone())),
            Self::NoNamespace => plain(&states.no_namespace),
            Self::NoCourse => plain(&states.no_course),
            Self::NotFound => plain(&states.not_found),
            Self::NoTemplate => plain(&states.no_template),
            Self::CourseWaits => plain(&states.course_waits),
            Self::Refused(_) => plain(&states.refused),
            Self::Changed => plain(&states.changed),
            Self::Away(since) => (&states.away, ("time", time::relative(view, *since))),
            Self::IssuerRefused(issuer) => (&states.issuer_refused, ("issuer", issuer.clone())),
            Self::LoginAway => plain(&states.login_away),
            Self::LoginFailed(_) => plain(&states.login_failed),
            Self::NoMachine => plain(&states.no_machine),
            Self::NoCookie(_) => plain(&states.no_cookie),
            Self::SessionOver => plain(&states.session_over),
            Self::LoggedOut(Logout { is_at_issuer: true, .. }) => plain(&states.logged_out),
            Self::LoggedOut(_) => plain(&states.logged_out_here),
            Self::TooMany(seconds) => (&states.too_many, ("time", texts.seconds.of(&seconds.to_string()))),
            Self::NotHere => plain(&states.not_here),
            Self::Broken(_) => plain(&states.broken),
        }
    }

    /// Returns further sentences about it.
    fn notes(&self, texts: &'static Texts) -> Vec<&'static str> {
        let Self::LoggedOut(logout) = self else { return Vec::new() };
        let late = (!logout.is_everywhere).then_some(texts.logout_late.as_str());
        late.into_iter().chain([texts.desktops_stay.as_str()]).collect()
    }

    /// Returns the message of a server about it.
    fn details(&self) -> Option<&str> {
        match self {
            Self::Refused(text) | Self::LoginFailed(text) | Self::Broken(text) => Some(text),
            _ => None,
        }
    }
}

/// Renders the page.
pub fn state(view: &View<'_>, state: &State) -> Markup {
    let texts = view.texts();
    let (StateTexts { heading, happened, next, action }, (name, value)) = state.texts(view);
    let [happened, next] = [happened, next].map(|text| message(&text.fill(&[(name, &value)])));
    let announced = html! { (heading) };
    let content = html! {
        div.state {
            h1 { (heading) }
            p { (happened) }
            p { (next) }
            @for note in state.notes(texts) { p { (note) } }
            @if let Some(details) = state.details() {
                p.said { span.soft { (texts.details) ": " } (message(details)) }
            }
            p { a.button.main href=(state.leads_to(view)) { (action) } }
        }
    };
    layout::page(view, heading, &announced, &content)
}
