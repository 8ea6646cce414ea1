//! A request for a machine, as the gateway describes it.

use http::{HeaderMap, Method, Request};

use crate::controllers::shared::machine_host::{LOGIN_PATH, label_of};
use crate::controllers::shared::machine_login::{CODE, EXCHANGE};

/// The prefix of the paths that ingress-nginx requests, before the label of the machine that gets the original request.
/// This request is in headers.
const OF_NGINX: &str = "/auth/";
/// The prefix of the paths that Envoy requests, before the original path.
const OF_ENVOY: &str = "/authz";
/// The original request of ingress-nginx.
const ORIGINAL_URL: &str = "x-original-url";
const ORIGINAL_METHOD: &str = "x-original-method";
/// The host of the request of a browser, which Envoy repeats.
const HOST: &str = "host";
/// The origin of the page that sends a request.
const ORIGIN: &str = "origin";

/// Where the browser says that a request comes from (Fetch Metadata, <https://www.w3.org/TR/fetch-metadata>).
const SITE: &str = "sec-fetch-site";
const MODE: &str = "sec-fetch-mode";
const DEST: &str = "sec-fetch-dest";
/// The value of [`SITE`] for the origin itself. A form of a page without referrers has the `Origin` `null` nevertheless.
const SAME_ORIGIN: &str = "same-origin";

/// A gateway that asks whether a request may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gateway {
    /// ingress-nginx, which sends the browser to the login after a response with 401.
    Nginx,
    /// Envoy, which passes a response to the browser, except for 200.
    Envoy,
    /// None: the relay gets the requests of a peer from the browser.
    Relay,
}

/// The request of a browser for a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Original<'r> {
    /// The gateway that describes it.
    pub gateway: Gateway,
    /// The host, and the port if it is not the default.
    pub authority: &'r str,
    /// The label of the host.
    pub label: &'r str,
    /// The path and query.
    pub target: &'r str,
    /// Whether it opens a page in a window, which can be redirected to a login.
    pub is_navigation: bool,
    /// Whether another site sends it, and it does not open a page in a window.
    pub is_foreign: bool,
}

impl<'r> Original<'r> {
    /// Reads the request of a gateway; `None` if it is not about the host of a machine below `base`.
    pub fn read<B>(request: &'r Request<B>, base: &str) -> Option<Self> {
        let (headers, uri) = (request.headers(), request.uri());
        if let Some(named) = uri.path().strip_prefix(OF_NGINX) {
            let (_, rest) = only(headers, ORIGINAL_URL)?.split_once("://")?;
            let (authority, target) = rest.split_at(rest.find('/')?);
            let method = Method::from_bytes(only(headers, ORIGINAL_METHOD)?.as_bytes()).ok()?;
            // NGINX chooses the machine by the host in the request line, and writes the header `Host` into the URL.
            Self::new(Gateway::Nginx, (authority, target), headers, &method, base)
                .filter(|original| original.label == named)
        } else {
            let target = uri.path_and_query()?.as_str().strip_prefix(OF_ENVOY)?;
            Self::new(Gateway::Envoy, (only(headers, HOST)?, target), headers, request.method(), base)
        }
    }

    /// Reads a request that the relay gets; `None` if its host is not the host of a machine below `base`.
    pub fn of_relay<B>(request: &'r Request<B>, base: &str) -> Option<Self> {
        let (headers, target) = (request.headers(), request.uri().path_and_query()?.as_str());
        Self::new(Gateway::Relay, (only(headers, HOST)?, target), headers, request.method(), base)
    }

    fn new(
        gateway: Gateway,
        (authority, target): (&'r str, &'r str),
        headers: &HeaderMap,
        method: &Method,
        base: &str,
    ) -> Option<Self> {
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        let is_plain = target.starts_with('/') && port.bytes().all(|byte| byte.is_ascii_digit());
        let label = label_of(host, base).filter(|_| is_plain)?;
        let is_navigation = is_navigation(headers, method);
        let is_of_another = is_of_another_origin(headers, authority) || is_foreign(headers) && !is_navigation;
        let is_foreign = is_of_another && only(headers, SITE) != Some(SAME_ORIGIN);
        Some(Self { gateway, authority, label, target, is_navigation, is_foreign })
    }

    /// Whether the request is for the login itself. No machine gets it.
    pub fn is_of_login(&self) -> bool {
        let rest = self.target.strip_prefix(LOGIN_PATH);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }

    /// Returns the code that the request exchanges; `None` for any other request.
    pub fn code(&self) -> Option<String> {
        let query = self.target.strip_prefix(EXCHANGE)?.strip_prefix('?')?;
        let mut fields = form_urlencoded::parse(query.as_bytes());
        fields.find(|(name, _)| name == CODE).map(|(_, code)| code.into_owned())
    }

    /// Returns the URL of a path of the host.
    pub fn url_of(&self, target: &str) -> String {
        format!("https://{}{target}", self.authority)
    }
}

/// Returns the value of a header; `None` if it is missing, is not text, or comes twice.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())?.to_str().ok()
}

/// Whether a header is missing, or has a value.
fn is_at_most(headers: &HeaderMap, name: &str, value: &str) -> bool {
    !headers.contains_key(name) || only(headers, name) == Some(value)
}

fn is_navigation(headers: &HeaderMap, method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
        && is_at_most(headers, MODE, "navigate")
        && is_at_most(headers, DEST, "document")
}

/// Whether the page that sends the request is of another origin, as far as the browser tells. Machines have the same
/// site, so their cookies do not protect them from each other, and `WebSockets` are not subject to CORS.
fn is_of_another_origin(headers: &HeaderMap, authority: &str) -> bool {
    let is_own = |value: &str| value.strip_prefix("https://") == Some(authority);
    headers.contains_key(ORIGIN) && !only(headers, ORIGIN).is_some_and(is_own)
}

fn is_foreign(headers: &HeaderMap) -> bool {
    headers.contains_key(SITE) && !matches!(only(headers, SITE), Some(SAME_ORIGIN | "none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "labs.example.com";
    const HOST_NAME: &str = "abcdefghijklmnopqrstuvwxyz.labs.example.com";

    fn request(path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request")
    }

    fn of_nginx(url: &str, method: &str, headers: &[(&str, &str)]) -> Request<()> {
        let more = [&[(ORIGINAL_URL, url), (ORIGINAL_METHOD, method)][..], headers].concat();
        request("/auth/abcdefghijklmnopqrstuvwxyz", &more)
    }

    #[test]
    fn both_gateways_describe_the_same_request() {
        let target = "/instance/1/app/?a=b";
        let url = format!("https://{HOST_NAME}:8443{target}");
        let authority = format!("{HOST_NAME}:8443");
        let nginx = of_nginx(&url, "GET", &[]);
        let envoy = request(&format!("/authz{target}"), &[("host", authority.as_str())]);
        for (request, gateway) in [(&nginx, Gateway::Nginx), (&envoy, Gateway::Envoy)] {
            let original = Original::read(request, BASE).expect("a machine");
            let expected = Original {
                gateway,
                authority: &authority,
                label: "abcdefghijklmnopqrstuvwxyz",
                target,
                is_navigation: true,
                is_foreign: false,
            };
            assert_eq!(original, expected);
            assert_eq!(original.url_of("/x"), format!("https://{authority}/x"));
        }
    }

    #[test]
    fn the_relay_reads_the_request_of_a_browser() {
        let target = "/auth?a=b";
        let of_host =
            |host: &'static str| request(target, &[("host", host), (ORIGINAL_URL, "https://other/")]);
        let found = of_host("abcdefghijklmnopqrstuvwxyz.labs.example.com:8443");
        let original = Original::of_relay(&found, BASE).expect("a machine");
        assert_eq!((original.gateway, original.target), (Gateway::Relay, target));
        assert_eq!(original.url_of("/"), format!("https://{HOST_NAME}:8443/"));
        assert!(original.is_navigation && !original.is_foreign);
        assert_eq!(Original::of_relay(&of_host("exam.labs.example.com"), BASE), None);
        assert_eq!(Original::of_relay(&request(target, &[]), BASE), None, "without a host");
    }

    #[test]
    fn a_request_for_any_other_host_is_not_read() {
        for url in [
            "",
            "https://",
            &format!("https://{HOST_NAME}"),
            "https://labs.example.com/",
            "https://exam.labs.example.com/",
            &format!("https://x.{HOST_NAME}/"),
            &format!("https://{HOST_NAME}.example.org/"),
            &format!("https://{}/", HOST_NAME.to_uppercase()),
            &format!("https://user@{HOST_NAME}/"),
            &format!("https://{HOST_NAME}:a@example.org/"),
        ] {
            assert_eq!(Original::read(&of_nginx(url, "GET", &[]), BASE), None, "{url}");
        }
        let twice = format!("https://{HOST_NAME}/");
        let twice = of_nginx(&twice, "GET", &[(ORIGINAL_URL, "https://other/")]);
        assert_eq!(Original::read(&twice, BASE), None, "two URLs");
        // A client can name a machine in the request line and another one in `Host`.
        let url = format!("https://{HOST_NAME}/");
        let headers = [(ORIGINAL_URL, &*url), (ORIGINAL_METHOD, "GET")];
        for path in ["/auth", "/auth/", "/auth/zyxwvutsrqponmlkjihgfedcba"] {
            assert_eq!(Original::read(&request(path, &headers), BASE), None, "{path}");
        }
        for (path, headers) in [
            ("/authz/x", &[][..]),
            ("/authz/x", &[("host", "labs.example.com")]),
            ("/authz", &[("host", HOST_NAME)]),
            ("/authzx", &[("host", HOST_NAME)]),
            ("/x", &[("host", HOST_NAME)]),
        ] {
            assert_eq!(Original::read(&request(path, headers), BASE), None, "{path} {headers:?}");
        }
    }

    #[test]
    fn only_a_page_in_a_window_can_be_redirected_and_opened_by_another_site() {
        let origin = format!("https://{HOST_NAME}");
        let sibling = "https://zyxwvutsrqponmlkjihgfedcba.labs.example.com";
        let window = [(MODE, "navigate"), (DEST, "document")];
        let script = [(MODE, "cors"), (DEST, "empty")];
        let socket = [(MODE, "websocket"), (DEST, "websocket")];
        let frame = [(MODE, "navigate"), (DEST, "iframe")];
        for (method, kind, more, is_navigation, is_foreign) in [
            ("GET", &window[..], &[(SITE, "none")][..], true, false),
            ("GET", &window, &[(SITE, "same-site")], true, false),
            ("GET", &window, &[(SITE, "cross-site")], true, false),
            ("HEAD", &window, &[(SITE, "cross-site")], true, false),
            ("POST", &window, &[(SITE, "same-origin"), ("origin", &*origin)], false, false),
            ("POST", &window, &[(SITE, "same-origin"), ("origin", "null")], false, false),
            ("POST", &window, &[(SITE, "cross-site"), ("origin", "null")], false, true),
            ("POST", &window, &[(SITE, "same-site"), ("origin", sibling)], false, true),
            ("GET", &frame, &[(SITE, "same-origin")], false, false),
            ("GET", &frame, &[(SITE, "same-site")], false, true),
            ("GET", &script, &[(SITE, "same-origin")], false, false),
            ("GET", &script, &[(SITE, "same-site"), ("origin", sibling)], false, true),
            ("GET", &script, &[(SITE, "same-site")], false, true),
            ("GET", &socket, &[(SITE, "same-origin"), ("origin", &*origin)], false, false),
            ("GET", &socket, &[(SITE, "same-site"), ("origin", sibling)], false, true),
            // A browser without these headers, or with a part of them.
            ("GET", &[], &[], true, false),
            ("GET", &[], &[("origin", &*origin)], true, false),
            ("GET", &[], &[("origin", sibling)], true, true),
            ("GET", &[], &[("origin", "null")], true, true),
            ("POST", &[], &[], false, false),
            ("GET", &window, &[(SITE, "same-origin"), (SITE, "none")], true, false),
            ("GET", &script, &[(SITE, "same-origin"), (SITE, "none")], false, true),
        ] {
            let headers = [kind, more].concat();
            let request = of_nginx(&format!("{origin}/"), method, &headers);
            let original = Original::read(&request, BASE).expect("a machine");
            let found = (original.is_navigation, original.is_foreign);
            assert_eq!(found, (is_navigation, is_foreign), "{method} {headers:?}");
        }
    }

    #[test]
    fn the_login_has_a_path_of_its_own() {
        for (target, is_of_login, code) in [
            ("/_crownlabs/login?code=a-b_c", true, Some("a-b_c")),
            ("/_crownlabs/login?x=1&code=a&code=b", true, Some("a")),
            ("/_crownlabs/login?code=", true, Some("")),
            ("/_crownlabs/login", true, None),
            ("/_crownlabs/login/?code=a", true, None),
            ("/_crownlabs/other?code=a", true, None),
            ("/_crownlabs", true, None),
            ("/_crownlabs?code=a", true, None),
            ("/_crownlabsx", false, None),
            ("/x?/_crownlabs/login?code=a", false, None),
        ] {
            let request = of_nginx(&format!("https://{HOST_NAME}{target}"), "GET", &[]);
            let original = Original::read(&request, BASE).expect("a machine");
            assert_eq!((original.is_of_login(), original.code().as_deref()), (is_of_login, code), "{target}");
        }
    }
}
