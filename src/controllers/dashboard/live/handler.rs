//! The handler of the streams of pages.

use axum::response::Response;
use http::StatusCode;

use super::address;
use super::stream::stream;
use crate::controllers::dashboard::http::context::Context;
use crate::controllers::dashboard::http::response::text;

/// Serves the stream of a page. A user gets its address, which is sealed, only with the page, so the stream needs no
/// token. The events do not contain the changes.
pub async fn events(context: Context) -> Response {
    if context.session.is_none() {
        return text(StatusCode::UNAUTHORIZED, "log in\n");
    }
    let Some((since, topics)) = address::parse(&context.keys, context.query.get("on")) else {
        return text(StatusCode::FORBIDDEN, "this is not the address of a page\n");
    };
    match context.app.broadcast.listen(topics, since) {
        Some(listener) => stream(listener),
        None => text(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n"),
    }
}
