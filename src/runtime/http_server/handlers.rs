//! Handlers and responses of servers with a few paths.

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;

use futures::FutureExt;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Bytes;

use super::{Body, Handler};
use crate::api::shown;

/// Returns a response with this content type. Control characters in JSON and plain text are escaped, so text written by
/// other users cannot affect a terminal that shows it.
pub fn response(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let body = body.into();
    let escaped = match (content_type, std::str::from_utf8(&body)) {
        ("application/json", Ok(text)) => shown::escaped_json(text),
        (text_type, Ok(text)) if text_type.starts_with("text/plain") => shown::escaped_lines(text),
        _ => Cow::Borrowed(""),
    };
    let body = match escaped {
        Cow::Owned(text) => Bytes::from(text),
        Cow::Borrowed(_) => body,
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Returns a plain text response.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Bytes> {
    response(status, "text/plain; charset=utf-8", body)
}

/// Wraps a function that returns its response at once.
pub fn immediate(handle: impl Fn(&Request<Bytes>) -> Response<Bytes> + Send + Sync + 'static) -> Handler {
    Arc::new(move |request| ready(handle(&request).map(Body::from)).boxed())
}

/// Returns a handler for GET and HEAD. `page` returns the response for a path, or `None` if it does not exist (404).
pub fn read_only(page: impl Fn(&str) -> Option<Response<Bytes>> + Send + Sync + 'static) -> Handler {
    immediate(move |request| {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            page(request.uri().path()).unwrap_or_else(|| text(StatusCode::NOT_FOUND, "no such page\n"))
        } else {
            text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n")
        }
    })
}
