//! The format of responses: JSON, text, and the pages for the browsers of students.

use http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFRESH, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::Bytes;
use serde::Serialize;

use super::pace::TooMany;
use super::view::ErrorView;
use crate::runtime::http_server::{response, text};
use crate::runtime::plan::to_value;

/// A page needs only its own style.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'";
/// The delay in seconds before a browser reloads the page of an Instance that is not ready. The page itself reloads one
/// second later, for browsers that ignore the header.
const REFRESH_SECONDS: &str = "5";

/// Adds a header to a response.
fn with(mut response: Response<Bytes>, name: HeaderName, value: HeaderValue) -> Response<Bytes> {
    response.headers_mut().insert(name, value);
    response
}

/// Marks a response as not cacheable and forbids content sniffing.
fn fresh(response: Response<Bytes>) -> Response<Bytes> {
    let response = with(response, CACHE_CONTROL, HeaderValue::from_static("no-store"));
    with(response, X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
}

/// A JSON response with a newline at the end.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response<Bytes> {
    fresh(response(status, "application/json", format!("{}\n", to_value(value))))
}

/// A plain-text response.
pub fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<Bytes> {
    fresh(text(status, body))
}

/// The response to a method that the path does not support.
pub fn no_such_method(methods: &'static str) -> Response<Bytes> {
    let response =
        plain(StatusCode::METHOD_NOT_ALLOWED, format!("Method not allowed: this path has {methods}"));
    with(response, ALLOW, HeaderValue::from_static(methods))
}

/// The response to a body that is not JSON.
pub fn unsupported_type() -> Response<Bytes> {
    let message = "Unsupported media type: send JSON, with Content-Type: application/json";
    let response = plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    with(response, ACCEPT, HeaderValue::from_static("application/json"))
}

/// The response to a request above the rate limit.
pub fn too_many(TooMany { retry_after }: TooMany) -> Response<Bytes> {
    let response = plain(StatusCode::TOO_MANY_REQUESTS, "Too many requests");
    with(response, RETRY_AFTER, HeaderValue::from(retry_after))
}

/// An error about one Instance: a page for browsers, JSON for other clients.
pub fn error(status: StatusCode, text: &'static str, for_browser: bool) -> Response<Bytes> {
    let code = status.as_u16();
    if !for_browser {
        return json(status, &ErrorView { code, text });
    }
    let body = format!("<h1>{code}</h1>\n<p>{text}</p>\n");
    html(status, &format!("{code}"), "", &body)
}

/// The page of an Instance that is not ready yet. It reloads itself.
pub fn starting() -> Response<Bytes> {
    let body = "<h1>Your machine is starting</h1>\n<p>This page reloads until it is ready.</p>\n\
                <form><button>Reload</button></form>\n";
    let page = html(StatusCode::CREATED, "Starting", "<meta http-equiv=\"refresh\" content=\"6\">\n", body);
    with(page, REFRESH, HeaderValue::from_static(REFRESH_SECONDS))
}

/// Redirects a browser to the desktop of an Instance; `None` if the URL cannot be the URL of a desktop.
pub fn redirect(url: &str) -> Option<Response<Bytes>> {
    let is_url = url.starts_with("https://") || url.starts_with("http://");
    let location = HeaderValue::from_str(url).ok().filter(|_| is_url)?;
    Some(with(plain(StatusCode::FOUND, ""), LOCATION, location))
}

/// An HTML page. It contains no text that a client has sent.
fn html(status: StatusCode, title: &str, head: &str, body: &str) -> Response<Bytes> {
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n{head}<title>{title}</title>\n\
         <style>body {{ font: 1.2em sans-serif; margin: 15vh auto; max-width: 30em; text-align: center }} \
         button {{ font: inherit; padding: .4em 1.2em }}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    );
    let response = fresh(response(status, "text/html; charset=utf-8", page));
    with(response, CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_led_to_urls_of_desktops_alone() {
        let location = |url: &str| {
            redirect(url).map(|response| response.headers()[LOCATION].to_str().expect("text").to_owned())
        };
        let url = "https://labs.example.org/instance/1/";
        assert_eq!(location(url).as_deref(), Some(url));
        for url in [
            "",
            "javascript:alert(1)",
            "//evil.example",
            "/api/instances/",
            "https://a\r\nSet-Cookie: b",
            "data:,",
        ] {
            assert_eq!(location(url), None, "{url:?}");
        }
    }

    #[test]
    fn a_page_loads_itself_again_and_an_error_has_its_form() {
        let page = starting();
        assert_eq!((page.status().as_u16(), &page.headers()[REFRESH]), (201, &HeaderValue::from_static("5")));
        let of = |for_browser| {
            let response = error(StatusCode::GONE, "The requested Instance is not running.", for_browser);
            let body = String::from_utf8(response.body().to_vec()).expect("text");
            (
                response.status().as_u16(),
                response.headers()["content-type"].to_str().expect("text").to_owned(),
                body,
            )
        };
        let (status, kind, body) = of(true);
        assert_eq!((status, &*kind), (410, "text/html; charset=utf-8"));
        assert!(body.contains("410") && body.contains("The requested Instance is not running."), "{body}");
        let json = "{\"code\":410,\"text\":\"The requested Instance is not running.\"}\n";
        assert_eq!(of(false), (410, "application/json".to_owned(), json.to_owned()));
    }
}
