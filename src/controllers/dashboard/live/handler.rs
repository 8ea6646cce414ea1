//! The handler of the streams of pages.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;

use super::address;
use super::stream::stream;
use crate::controllers::dashboard::http::context::Context;
use crate::controllers::dashboard::http::response::text;
use crate::controllers::dashboard::user::CurrentUser;

/// Serves the stream of a page. A user gets its address, which is sealed, only with the page. The session must still
/// exist. The events do not contain the changes.
pub async fn events(context: Context, user: Result<CurrentUser, Response>) -> Response {
    let over = || text(StatusCode::UNAUTHORIZED, "log in\n");
    let Some(session) = &context.session else { return over() };
    let Some((since, topics)) = address::parse(&context.keys, context.query.get("on")) else {
        return text(StatusCode::FORBIDDEN, "this is not the address of a page\n");
    };
    let user = match user {
        Ok(user) => user,
        // It would be redirected to the login.
        Err(rejection) if rejection.status() == StatusCode::SEE_OTHER => return over(),
        Err(rejection) => return rejection,
    };
    let (app, name, id) = (Arc::clone(&context.app), user.user.name.clone(), session.id.clone());
    let has_ended = move || app.users.has_ended(&name, &id);
    match context.app.broadcast.listen(topics, since) {
        Some(listener) => user.answer(stream(listener, context.app.users.client.silence(), has_ended)),
        None => text(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n"),
    }
}
