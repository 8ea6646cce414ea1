//! The user of a request.

pub mod ended;
pub mod users;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::Response;
use http::request::Parts;
use jiff::Timestamp;
use tracing::warn;

use self::users::{NoUser, User};
use super::app::App;
use super::http::context::{Context, RETRY};
use super::http::response::{see_other, with_cookie};
use super::paths;
use super::session::Session;
use super::ui::links::login_at;
use super::ui::state::State;
use crate::runtime::error::ApiError;

/// The message for a student when an administrator has to correct the set-up of the login.
const NOT_SET_UP: &str =
    "the login is not set up correctly; ask an administrator to look at the log of the dashboard";

/// The user of a request, as an extractor. A request without a user is redirected to the login.
pub struct CurrentUser {
    /// The user.
    pub user: Arc<User>,
    /// The context of the request.
    pub context: Context,
    /// The new cookie of the session.
    cookie: Option<String>,
}

impl FromRequestParts<Arc<App>> for CurrentUser {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let context = Context::from_request_parts(parts, app).await?;
        let Some(session) = &context.session else { return Err(to_login(&context)) };
        // Neither an open page nor another site keeps an unused session alive.
        if !context.is_visit && !session.is_used(context.now) {
            return Err(to_login(&context));
        }
        match app.users.of(session).await {
            Ok(found) => {
                let visited = session.visit(context.now).filter(|_| context.is_visit);
                let is_new = visited.is_some() || found.next.is_some();
                let session = visited.unwrap_or_else(|| session.clone());
                let refresh_token = found.next.unwrap_or_else(|| session.refresh_token.clone());
                let cookie = is_new.then(|| Session { refresh_token, ..session }.seal(&context.keys));
                Ok(Self { user: found.user, context, cookie: cookie.flatten() })
            }
            Err(NoUser::Ended(_) | NoUser::LoggedOut) => {
                Err(with_cookie(to_login(&context), &Session::ended()))
            }
            Err(no_user) => Err(without_user(&context, &no_user)),
        }
    }
}

impl CurrentUser {
    /// Adds the new cookie of the session to a response.
    pub fn answer(&self, answer: Response) -> Response {
        match &self.cookie {
            Some(cookie) => with_cookie(answer, cookie),
            None => answer,
        }
    }
}

/// Returns the response to a request without a session.
fn to_login(context: &Context) -> Response {
    if context.is_by_script {
        return context.state("", &State::SessionOver);
    }
    let page = match context.path.as_str() {
        paths::MACHINE_LOGIN => paths::machine_login(context.query.get("rd")),
        path => path.to_owned(),
    };
    see_other(&login_at(if paths::is_page(&page) { &page } else { paths::HOME }))
}

/// Returns the response when the user cannot be determined.
pub fn without_user(context: &Context, no_user: &NoUser) -> Response {
    let state = match no_user {
        NoUser::Ended(_) | NoUser::LoggedOut => return context.state("", &State::SessionOver),
        NoUser::IssuerAway(_) => State::LoginAway,
        // The details are for administrators, and in the log.
        NoUser::NotSetUp(_) => State::LoginFailed(NOT_SET_UP.to_owned()),
        NoUser::Refused(_) => State::IssuerRefused(context.app.config.issuer_url.clone()),
        NoUser::ApiAway(error) => unread(error, context.now),
    };
    warn!(error = %no_user, "a user of the dashboard has no token");
    context.state("", &state)
}

/// Returns the page that replaces a page if its objects cannot be read.
pub fn unread(error: &ApiError, now: Timestamp) -> State {
    match error {
        ApiError::NotFound(_) => State::NotFound,
        ApiError::Forbidden(why) | ApiError::QuotaExceeded(why) | ApiError::Invalid(why) => {
            State::Refused(why.clone())
        }
        ApiError::Conflict(_) | ApiError::AlreadyExists(_) | ApiError::Stale(_) => State::Changed,
        ApiError::Transient { retry_after: Some(after), .. } => State::TooMany(after.as_secs().max(RETRY)),
        ApiError::TooLong(why) => State::Broken(why.clone()),
        _ => State::Away(now),
    }
}
