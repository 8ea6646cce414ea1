//! The parts of the handlers that all pages share: the request, the limited read, and the response.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use jiff::Timestamp;
use maud::Markup;

use super::action::entry::Right;
use super::action::result::Outcome;
use super::app::{App, permit};
use super::http::assets;
use super::http::context::{Context, RETRY, RETRY_LATER};
use super::http::response::{with_cookie, with_refresh};
use super::live::address::address;
use super::session::Flash;
use super::student::read::{Own, Reads};
use super::student::{Settings, Student, title};
use super::texts::texts;
use super::ui::state::State;
use super::ui::view::{Live, Notice, Typed, View};
use super::user::{CurrentUser, unread};
use crate::api::workspace::WorkspaceKind;
use crate::runtime::error::ApiError;

/// Why the content of a page could not be read.
#[derive(Debug)]
pub enum Unread {
    /// Other pages were read for too long.
    Busy,
    /// The error of the API server.
    Api(ApiError),
}

impl Unread {
    /// Returns the page that replaces the requested page.
    pub fn state(&self, now: Timestamp) -> State {
        match self {
            Self::Busy => State::TooMany(RETRY),
            Self::Api(error) => unread(error, now),
        }
    }

    /// Whether the last content of the page can be shown instead.
    pub fn is_away(&self, now: Timestamp) -> bool {
        matches!(self, Self::Busy) || matches!(self.state(now), State::Away(_))
    }
}

/// The request for a page, as an extractor.
pub struct PageRequest {
    /// The user.
    pub user: CurrentUser,
    /// The state of the dashboard.
    pub app: Arc<App>,
}

impl FromRequestParts<Arc<App>> for PageRequest {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let context = Context::from_request_parts(parts, app).await?;
        if let Some(answer) = context.chosen_language() {
            return Err(answer);
        }
        Ok(Self { user: CurrentUser::from_request_parts(parts, app).await?, app: Arc::clone(app) })
    }
}

/// Returns the notice about a new machine, with its title; `None` for other notices.
fn named(context: &Context, flash: &Flash, own: &Own) -> Option<Notice> {
    let Outcome::Done(action) = &flash.outcome else { return None };
    let text = texts(context.language).actions.get(action)?.named.as_ref()?;
    let instance = own.known.instances.iter().find(|instance| instance.name() == flash.message)?;
    Some(Notice::Done(text.fill(&[("name", title(instance))])))
}

/// Whether a user may create courses. The rights in the whole cluster are among those in each namespace. This decides
/// only whether pages have a link: on the pages behind it, the API server decides.
fn is_administrator(own: &Own) -> bool {
    let Right { verb, group, resource } = Right::to::<WorkspaceKind>("create");
    own.rules.rules.allow(verb, group, resource, "")
}

impl PageRequest {
    /// Reads the content of the page. A semaphore limits the number of concurrent reads.
    ///
    /// # Errors
    /// See [`Unread`].
    pub async fn read<C>(
        &self,
        read: impl AsyncFnOnce(Reads<'_>) -> Result<C, ApiError>,
    ) -> Result<C, Unread> {
        let Self { user, app } = self;
        let semaphore = if user.context.is_by_script { &app.open } else { &app.opened };
        let Some(_permit) = permit(semaphore).await else { return Err(Unread::Busy) };
        // Boxed after the permit, so that a waiting page does not hold the future of its reads.
        Box::pin(read(Reads { users: &app.users, user: &user.user })).await.map_err(Unread::Api)
    }

    /// Returns the response for content that could not be read.
    pub fn failed(&self, error: &Unread) -> Response {
        let context = &self.user.context;
        self.user.answer(context.state(&self.user.user.name, &error.state(context.now)))
    }

    /// Returns the response with a page. `old` is the time of the content, if the API server does not respond now:
    /// the browser then loads the page again soon.
    pub fn answer(
        &self,
        own: &Own,
        settings: &Settings,
        old: Option<Timestamp>,
        render: impl FnOnce(&View<'_>, &Student<'_>) -> Markup,
    ) -> Response {
        let Self { user, app } = self;
        let context = &user.context;
        let flash = context.flash.as_ref();
        let notice = flash.and_then(|flash| named(context, flash, own)).or_else(|| context.notice());
        let form = flash.and_then(|flash| flash.fields.split_first());
        let wrong = flash.and_then(|flash| flash.outcome.wrong_field());
        let events = address(&context.keys, app.broadcast.since(context.now), &own.topics);
        let scripts = assets::scripts();
        let query = context.query.encoded();
        let view = View {
            user: &user.user.name,
            query: &query,
            is_administrator: is_administrator(own),
            search: Some(context.query.get("q").trim()).filter(|text| text.len() <= 100).unwrap_or_default(),
            events: &events,
            live: self.live(),
            notice: notice.as_ref(),
            typed: form.map(|((action, _), values)| Typed { action, values, wrong }),
            old,
            ..context.view(&context.path, &scripts)
        };
        let student = Student::new(&own.known, settings, &own.rules, old);
        let mut answer = context.page(StatusCode::OK, render(&view, &student));
        if old.is_some() {
            answer = with_refresh(answer, context.retry_in(RETRY_LATER), &view.own_path());
        }
        // A live update and a page with old content keep the flash message for the next page.
        let cookie = match flash {
            _ if context.is_by_script || old.is_some() => None,
            Some(flash) => flash.shown(&context.keys, context.now, context.room_for_flash),
            None => context.has_other_flash.then(Flash::ended),
        };
        user.answer(match cookie {
            Some(cookie) => with_cookie(answer, &cookie),
            None => answer,
        })
    }

    /// Returns the response with a page that does not update, such as the answer to a form that has no page of its own.
    pub fn answer_form(&self, render: impl FnOnce(&View<'_>) -> Markup) -> Response {
        self.user.answer(self.user.context.page(StatusCode::OK, self.still(render)))
    }

    /// Returns the response with the page of a terminal, which does not update: an update would replace the terminal.
    pub fn answer_terminal(&self, render: impl FnOnce(&View<'_>) -> Markup) -> Response {
        self.user.answer(self.user.context.terminal(self.still(render)))
    }

    /// Returns the response with the page of a console, which does not update either.
    pub fn answer_console(&self, render: impl FnOnce(&View<'_>) -> Markup) -> Response {
        self.user.answer(self.user.context.console(self.still(render)))
    }

    /// Renders a page that does not update.
    fn still(&self, render: impl FnOnce(&View<'_>) -> Markup) -> Markup {
        let (user, context) = (&self.user, &self.user.context);
        let scripts = assets::scripts();
        // The other scripts make a page live.
        let first = scripts.get(..1).unwrap_or_default();
        render(&View { user: &user.user.name, ..context.view(&context.path, first) })
    }

    /// Returns whether the page can be live. A request by a script comes from a page that already is.
    fn live(&self) -> Live {
        match assets::are_pages_live() {
            false => Live::Absent,
            true if self.app.broadcast.is_full() && !self.user.context.is_by_script => Live::Full,
            true => Live::On,
        }
    }
}
