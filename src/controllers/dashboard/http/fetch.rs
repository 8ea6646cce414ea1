//! Where a request comes from, as the browser says in its headers (Fetch Metadata, <https://www.w3.org/TR/fetch-metadata>).
//!
//! | request | answer |
//! |---|---|
//! | from a page of the dashboard, or by the user: the address bar, a bookmark | served; it counts as a visit, unless a script or a prefetch sends it |
//! | a window that another site opens or leads here, for example by a link | served; it does not count as a visit |
//! | anything else of another site: images, scripts, frames, prefetches | 403 |
//! | from a browser without these headers | served; it counts as a visit if `Origin` or `Referer` names the dashboard |

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{HeaderName, ORIGIN, REFERER};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::response::text;

/// The relation of the page that sends the request to the dashboard. Browsers of 2023 and later send it.
pub const SITE: &str = "sec-fetch-site";
const MODE: &str = "sec-fetch-mode";
const DEST: &str = "sec-fetch-dest";
/// The headers that mark a request for a page that the user may open later. The last two are of older browsers.
const PREFETCHES: [&str; 3] = ["sec-purpose", "purpose", "x-moz"];

/// Returns the value of a header; `None` if it is missing, or comes twice.
pub fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none()).map(HeaderValue::as_bytes)
}

/// Rejects requests of other sites, except for navigations of a window.
pub async fn reject_foreign(request: Request, next: Next) -> Response {
    if is_foreign(request.headers()) {
        return text(
            StatusCode::FORBIDDEN,
            "this request comes from another site: open the page in a window\n",
        );
    }
    next.run(request).await
}

/// Whether another site sends the request, and it is not a navigation of a window.
fn is_foreign(headers: &HeaderMap) -> bool {
    let is_navigation = only(headers, MODE) == Some(b"navigate") && only(headers, DEST) == Some(b"document");
    headers.contains_key(SITE) && !is_near(headers) && (!is_navigation || is_prefetch(headers))
}

/// Whether the request is a visit of the user to the dashboard at the origin `own`.
pub fn is_visit(headers: &HeaderMap, own: &str) -> bool {
    let is_sent_by_user = if headers.contains_key(SITE) { is_near(headers) } else { is_named(headers, own) };
    // A script opens a WebSocket, and may try again and again.
    let is_socket = only(headers, MODE) == Some(b"websocket");
    is_sent_by_user && !is_socket && !is_prefetch(headers)
}

/// Whether the browser says that the dashboard or the user sends the request.
fn is_near(headers: &HeaderMap) -> bool {
    matches!(only(headers, SITE), Some(b"same-origin" | b"none"))
}

fn is_prefetch(headers: &HeaderMap) -> bool {
    PREFETCHES
        .iter()
        .any(|name| headers.get_all(*name).iter().any(|value| value.as_bytes().starts_with(b"prefetch")))
}

/// Whether `Origin` or `Referer` names the dashboard.
fn is_named(headers: &HeaderMap, own: &str) -> bool {
    let is_own = |name: HeaderName| {
        let rest = only(headers, name.as_str()).and_then(|value| value.strip_prefix(own.as_bytes()));
        !own.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    is_own(ORIGIN) || is_own(REFERER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "https://labs.example.com";

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    /// The headers of Fetch Metadata.
    fn fetch(
        site: &'static str,
        mode: &'static str,
        dest: &'static str,
    ) -> Vec<(&'static str, &'static str)> {
        vec![(SITE, site), (MODE, mode), (DEST, dest)]
    }

    #[test]
    fn a_request_of_another_site_is_rejected_unless_it_navigates_a_window() {
        for (headers, is_rejected) in [
            (fetch("none", "navigate", "document"), false),
            (fetch("same-origin", "cors", "empty"), false),
            (fetch("same-origin", "no-cors", "image"), false),
            (fetch("cross-site", "navigate", "document"), false),
            (fetch("same-site", "navigate", "document"), false),
            (fetch("cross-site", "navigate", "iframe"), true),
            (fetch("same-site", "navigate", "object"), true),
            (fetch("same-site", "no-cors", "image"), true),
            (fetch("cross-site", "no-cors", "script"), true),
            (fetch("cross-site", "no-cors", "empty"), true),
            (fetch("cross-site", "cors", "empty"), true),
            (fetch("cross-site", "websocket", "empty"), true),
            (
                [fetch("cross-site", "navigate", "document"), vec![("sec-purpose", "prefetch;prerender")]]
                    .concat(),
                true,
            ),
            (
                [fetch("none", "navigate", "document"), vec![("sec-purpose", "prefetch;prerender")]].concat(),
                false,
            ),
            (vec![(SITE, "same-origin"), (SITE, "cross-site")], true),
            (vec![(SITE, "cross-site")], true),
            (vec![(SITE, "")], true),
            (vec![], false),
            (vec![("referer", "https://evil.example.com/")], false),
        ] {
            assert_eq!(is_foreign(&map(&headers)), is_rejected, "{headers:?}");
        }
    }

    #[test]
    fn only_the_user_and_pages_of_the_dashboard_count_as_visits() {
        for (headers, expected) in [
            (fetch("none", "navigate", "document"), true),
            (fetch("same-origin", "navigate", "document"), true),
            ([fetch("same-origin", "websocket", "empty"), vec![("origin", OWN)]].concat(), false),
            (fetch("cross-site", "navigate", "document"), false),
            (fetch("same-site", "navigate", "document"), false),
            (
                [fetch("none", "navigate", "document"), vec![("sec-purpose", "prefetch;prerender")]].concat(),
                false,
            ),
            ([fetch("same-origin", "no-cors", "empty"), vec![("purpose", "prefetch")]].concat(), false),
            ([fetch("same-origin", "no-cors", "empty"), vec![("x-moz", "prefetch")]].concat(), false),
            // The browser's word counts more than other headers.
            ([fetch("cross-site", "navigate", "document"), vec![("origin", OWN)]].concat(), false),
            (vec![], false),
            (vec![("origin", OWN)], true),
            (vec![("referer", "https://labs.example.com/courses")], true),
            (vec![("referer", OWN), ("purpose", "prefetch")], false),
            (vec![("referer", "https://labs.example.com.evil.example.com/")], false),
            (vec![("referer", "https://evil.example.com/https://labs.example.com/")], false),
            (vec![("origin", "https://machines.labs.example.com")], false),
            (vec![("referer", OWN), ("referer", OWN)], false),
        ] {
            assert_eq!(is_visit(&map(&headers), OWN), expected, "{headers:?}");
        }
        assert!(!is_visit(&map(&[("referer", "/x")]), ""), "without a configured origin");
    }
}
