//! The heads of requests and responses that the relay passes on. Each is written again from its parsed fields, without the
//! fields about one connection (RFC 9110, 7.6.1). The machine gets no cookie of the login, and sets none.

use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HeaderMap, HeaderName, HeaderValue, SET_COOKIE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Request, Uri, Version};

use crate::controllers::shared::machine_login::COOKIE as LOGIN;

/// The fields about one connection, in addition to the names in `Connection`.
const OF_CONNECTION: [&str; 8] = [
    "connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "keep-alive",
    "proxy-connection",
    "http2-settings",
];

/// Returns the words of `Connection`.
fn words(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether a message begins a `WebSocket`.
pub fn is_upgrade(headers: &HeaderMap) -> bool {
    words(headers).any(|word| word.eq_ignore_ascii_case("upgrade"))
        && headers.get_all(UPGRADE).iter().count() == 1
        && headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Whether a request asks for a `WebSocket`.
pub fn is_web_socket<B>(request: &Request<B>) -> bool {
    *request.method() == Method::GET && request.version() == Version::HTTP_11 && is_upgrade(request.headers())
}

/// Returns the request for the machine, with this path and query; `None` if it is not a valid target.
pub fn to_machine(request: Request<()>, target: &str, is_web_socket: bool) -> Option<Request<()>> {
    let target: Uri = target.parse().ok()?;
    let (mut head, ()) = request.into_parts();
    // The length of the body follows from its encoding.
    if head.headers.contains_key(TRANSFER_ENCODING) {
        head.headers.remove(CONTENT_LENGTH);
    }
    let mut headers = without_connection(&head.headers, is_web_socket);
    headers.remove(EXPECT);
    let cookies: Vec<HeaderValue> = headers.get_all(COOKIE).iter().filter_map(without_login).collect();
    headers.remove(COOKIE);
    for value in cookies {
        headers.append(COOKIE, value);
    }
    (head.uri, head.version, head.headers) = (target, Version::HTTP_11, headers);
    Some(Request::from_parts(head, ()))
}

/// Returns the fields of the machine's response for the browser.
pub fn to_browser(headers: &HeaderMap, is_web_socket: bool) -> HeaderMap {
    let mut kept = without_connection(headers, is_web_socket);
    if headers.contains_key(TRANSFER_ENCODING) {
        kept.remove(CONTENT_LENGTH);
    }
    let cookies: Vec<HeaderValue> =
        kept.get_all(SET_COOKIE).iter().filter(|value| is_own_cookie(value)).cloned().collect();
    kept.remove(SET_COOKIE);
    for value in cookies {
        kept.append(SET_COOKIE, value);
    }
    kept
}

/// Returns the fields without those about one connection, and with those about the new one.
fn without_connection(headers: &HeaderMap, is_web_socket: bool) -> HeaderMap {
    let named: Vec<String> = words(headers).map(str::to_ascii_lowercase).collect();
    let is_kept = |name: &HeaderName| {
        !OF_CONNECTION.contains(&name.as_str()) && !named.iter().any(|named| named == name.as_str())
    };
    let mut kept: HeaderMap = headers
        .iter()
        .filter(|(name, _)| is_kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if is_web_socket {
        kept.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        kept.insert(UPGRADE, HeaderValue::from_static("websocket"));
    } else {
        kept.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    kept
}

/// Returns a line of cookies without the cookies of the login; `None` if there are no others.
fn without_login(line: &HeaderValue) -> Option<HeaderValue> {
    let pairs = line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let kept: Vec<&[u8]> = pairs.filter(|pair| !pair.is_empty() && !is_login(pair)).collect();
    if kept.is_empty() { None } else { HeaderValue::from_bytes(&kept.join(&b"; "[..])).ok() }
}

/// Whether a pair of a name and a value has the name of the login's cookie.
fn is_login(pair: &[u8]) -> bool {
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(LOGIN.as_bytes())
}

/// Whether a machine may set a cookie: only for its own host, and not that of the login.
fn is_own_cookie(value: &HeaderValue) -> bool {
    let mut parts = value.as_bytes().split(|byte| *byte == b';');
    let is_of_login = parts.next().is_none_or(is_login);
    let is_domain = |part: &[u8]| {
        let name = part.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"domain")
    };
    !is_of_login && !parts.any(is_domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(field) {
            headers.append(name, value);
        }
        headers
    }

    /// Returns the fields as lines, in order.
    fn lines(headers: &HeaderMap) -> Vec<String> {
        let line =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().expect("text"));
        let mut lines: Vec<String> = headers.iter().map(line).collect();
        lines.sort();
        lines
    }

    fn request(fields: &[(&'static str, &'static str)]) -> Request<()> {
        let mut request = Request::get("/instance/u/vnc/a?b=c").body(()).expect("a request");
        *request.headers_mut() = headers(fields);
        request
    }

    fn sent(fields: &[(&'static str, &'static str)]) -> Vec<String> {
        let is_web_socket = is_web_socket(&request(fields));
        let sent = to_machine(request(fields), "/a?b=c", is_web_socket).expect("a request");
        assert_eq!(sent.uri(), "/a?b=c");
        lines(sent.headers())
    }

    #[test]
    fn fields_about_the_connection_are_not_passed_on() {
        let fields = [
            ("host", "x.labs.example.com"),
            ("connection", "keep-alive, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMA"),
            ("expect", "100-continue"),
            ("accept", "*/*"),
        ];
        assert_eq!(sent(&fields), ["accept: */*", "connection: close", "host: x.labs.example.com"]);
        let answer = headers(&[("connection", "x"), ("x", "1"), ("trailer", "y"), ("etag", "\"1\"")]);
        assert_eq!(lines(&to_browser(&answer, false)), ["connection: close", "etag: \"1\""]);
    }

    #[test]
    fn a_body_has_one_length() {
        let both = [("content-length", "5"), ("transfer-encoding", "chunked")];
        assert_eq!(sent(&both), ["connection: close"]);
        assert_eq!(sent(&both[..1]), ["connection: close", "content-length: 5"]);
        let received = |fields: &[(&'static str, &'static str)]| lines(&to_browser(&headers(fields), false));
        assert_eq!(received(&both), ["connection: close"]);
        assert_eq!(received(&both[..1]), ["connection: close", "content-length: 5"]);
    }

    #[test]
    fn a_web_socket_is_the_only_other_protocol() {
        let socket = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-key", "k"),
            ("sec-websocket-protocol", "binary"),
        ];
        let expected = [
            "connection: upgrade",
            "sec-websocket-key: k",
            "sec-websocket-protocol: binary",
            "upgrade: websocket",
        ];
        assert_eq!(sent(&socket), expected);
        let answer = headers(&[("connection", "upgrade"), ("upgrade", "websocket"), ("server", "s")]);
        let expected = ["connection: upgrade", "server: s", "upgrade: websocket"];
        assert_eq!(lines(&to_browser(&answer, true)), expected);
        let mut post = request(&socket);
        *post.method_mut() = Method::POST;
        let mut old = request(&socket);
        *old.version_mut() = Version::HTTP_10;
        assert!(!is_web_socket(&post) && !is_web_socket(&old));
        for other in [
            &[("connection", "upgrade")][..],
            &[("upgrade", "websocket")],
            &[("connection", "upgrade"), ("upgrade", "h2c")],
            &[("connection", "upgrade"), ("upgrade", "websocket"), ("upgrade", "h2c")],
        ] {
            assert!(!is_web_socket(&request(other)), "{other:?}");
        }
    }

    #[test]
    fn the_cookie_of_the_login_reaches_no_machine() {
        for (line, kept) in [
            ("__Host-crownlabs-machine=secret", &[][..]),
            ("a=1; __Host-crownlabs-machine=secret; b=2", &["cookie: a=1; b=2"]),
            ("a=1;__host-CROWNLABS-machine =secret;b=x=y", &["cookie: a=1; b=x=y"]),
            ("__Host-crownlabs-machine; a=1", &["cookie: a=1"]),
            ("a=__Host-crownlabs-machine=1", &["cookie: a=__Host-crownlabs-machine=1"]),
        ] {
            let expected: Vec<&str> = ["connection: close"].into_iter().chain(kept.iter().copied()).collect();
            assert_eq!(sent(&[("cookie", line)]), expected, "{line}");
        }
        let two = [("cookie", "__Host-crownlabs-machine=secret"), ("cookie", "a=1")];
        assert_eq!(sent(&two), ["connection: close", "cookie: a=1"]);
    }

    #[test]
    fn a_machine_sets_cookies_of_its_own_host_only() {
        let answer = headers(&[
            ("set-cookie", "a=1; Path=/; HttpOnly"),
            ("set-cookie", "b=2; DOMAIN=labs.example.com"),
            ("set-cookie", "c=3; domain =.labs.example.com; Path=/"),
            ("set-cookie", "__Host-crownlabs-machine=x; Path=/; Secure"),
            ("set-cookie", " __host-crownlabs-machine =x"),
            ("set-cookie", "domain=4"),
        ]);
        let expected = ["connection: close", "set-cookie: a=1; Path=/; HttpOnly", "set-cookie: domain=4"];
        assert_eq!(lines(&to_browser(&answer, false)), expected);
    }

    #[test]
    fn an_invalid_target_is_not_requested() {
        assert!(to_machine(request(&[]), "/a b", false).is_none());
        assert!(to_machine(request(&[]), "", false).is_none());
    }
}
