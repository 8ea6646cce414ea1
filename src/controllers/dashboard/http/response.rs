//! Responses without a page.

use axum::response::Response;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};

use crate::runtime::http_server;

/// Returns a response in plain text.
pub fn text(status: StatusCode, text: &'static str) -> Response {
    http_server::text(status, text).map(Into::into)
}

/// Returns a response that redirects the browser to a place, with the method GET.
pub fn see_other(place: &str) -> Response {
    let mut answer = Response::default();
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let place = HeaderValue::try_from(place).unwrap_or(HeaderValue::from_static("/"));
    answer.headers_mut().insert(LOCATION, place);
    answer
}

/// Makes the browser load a page after a number of seconds, also without scripts. Paths of pages are plain
/// text.
pub fn with_refresh(mut answer: Response, seconds: u64, path: &str) -> Response {
    if let Ok(refresh) = HeaderValue::try_from(format!("{seconds}; url={path}")) {
        answer.headers_mut().insert("refresh", refresh);
    }
    answer
}

/// Returns a response with a CSV table, which the browser saves as a file with this name, of plain characters.
pub fn csv_file(name: &str, table: String) -> Response {
    let mut answer = Response::new(table.into());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
    headers.insert(CONTENT_DISPOSITION, disposition.unwrap_or(HeaderValue::from_static("attachment")));
    answer
}

/// Adds a cookie to a response.
pub fn with_cookie(mut answer: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}
