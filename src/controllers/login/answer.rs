//! The responses in the protocols of the two gateways. The relay responds to browsers as Envoy does.
//!
//! | response | ingress-nginx | Envoy |
//! |---|---|---|
//! | the request passes | 200 | 200 |
//! | it does not | 403 | 403 |
//! | the browser has to log in | 401: ingress-nginx redirects to the dashboard | 302 to the dashboard |
//! | the same for a request that opens no page | 403, because 401 would redirect it | 401 |
//! | a code was exchanged | 401 with the cookie, which ingress-nginx adds to its redirect to the dashboard. The dashboard recognizes the code and redirects to the page | 302 to the page, with the cookie |

use http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::request::{Gateway, Original};
use crate::runtime::http_server::text;

/// The response to a request that passes.
pub fn allowed() -> Response<Bytes> {
    Response::new(Bytes::new())
}

/// The response to a request that does not pass.
pub fn denied() -> Response<Bytes> {
    text(StatusCode::FORBIDDEN, "You may not open this machine, or it does not exist.\n")
}

/// The response to a request without a login. `sign_in` is the page of the dashboard that logs in.
pub fn login(original: &Original<'_>, sign_in: &str) -> Response<Bytes> {
    match (original.gateway, original.is_navigation) {
        // NGINX redirects the browser.
        (Gateway::Nginx, true) | (Gateway::Envoy | Gateway::Relay, false) => bare(StatusCode::UNAUTHORIZED),
        (Gateway::Nginx, false) => denied(),
        (Gateway::Envoy | Gateway::Relay, true) => {
            let url = original.url_of(original.target);
            redirect(&format!("{sign_in}?rd={}", utf8_percent_encode(&url, NON_ALPHANUMERIC)))
        }
    }
}

/// The response to a request with a code for the page with this path; with a cookie if the code was exchanged.
pub fn exchanged(original: &Original<'_>, path: &str, cookie: Option<&str>) -> Response<Bytes> {
    let mut answer = match original.gateway {
        Gateway::Nginx => bare(StatusCode::UNAUTHORIZED),
        Gateway::Envoy | Gateway::Relay => redirect(&original.url_of(path)),
    };
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
        answer.headers_mut().insert(SET_COOKIE, cookie);
    }
    answer
}

/// A redirect that is not cached.
pub fn redirect(to: &str) -> Response<Bytes> {
    let Ok(to) = HeaderValue::try_from(to) else { return denied() };
    let mut answer = bare(StatusCode::FOUND);
    answer.headers_mut().insert(LOCATION, to);
    answer
}

fn bare(status: StatusCode) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
