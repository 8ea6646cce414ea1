//! The security headers of responses.

use std::time::Duration;

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response};

/// The headers of every response.
const ALWAYS: [(HeaderName, &str); 5] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// Adds the security headers to a response. Pages have already set their own policy.
pub fn protect<B>(mut answer: Response<B>) -> Response<B> {
    let headers = answer.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'"));
    answer
}

/// Makes browsers open this host, without its subdomains, only through HTTPS for this time. Zero makes them forget it.
pub fn secured<B>(mut answer: Response<B>, max_age: Duration) -> Response<B> {
    if let Ok(value) = HeaderValue::try_from(format!("max-age={}", max_age.as_secs())) {
        answer.headers_mut().insert(STRICT_TRANSPORT_SECURITY, value);
    }
    answer
}

/// Returns the policy of a page: its scripts have this nonce, and its forms go to the dashboard, which may redirect to the issuer.
pub fn page_policy(nonce: &str, issuer: &str) -> HeaderValue {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action \
         'self' {issuer}; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types htmx"
    );
    // A nonce is of base64, and an issuer is an origin.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// Returns the policy of the page of a terminal. xterm.js adds elements with styles, which get the nonce of the page, and
/// writes the colors of the output into attributes. Older browsers do not count a WebSocket of the same host (`own`) as
/// the same origin.
pub fn terminal_policy(nonce: &str, issuer: &str, own: &str) -> HeaderValue {
    let host = own.strip_prefix("https").unwrap_or_default();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; \
         img-src 'self'; connect-src 'self' wss{host}; form-action 'self' {issuer}; frame-ancestors 'none'; \
         base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    // As above, and the origin of the dashboard is an origin, too.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// Returns the policy of the page of a console. noVNC shows the pictures and the cursor of a machine as `data:` URLs. The
/// WebSocket is as that of a terminal.
pub fn console_policy(nonce: &str, issuer: &str, own: &str) -> HeaderValue {
    let host = own.strip_prefix("https").unwrap_or_default();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; connect-src 'self' wss{host}; \
         form-action 'self' {issuer}; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_neither_cached_nor_framed_and_pages_load_only_their_own_scripts() {
        let answer = protect(Response::new(()));
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let mut page = Response::new(());
        page.headers_mut()
            .insert(CONTENT_SECURITY_POLICY, page_policy("bm9uY2U", "https://auth.example.com"));
        let page = protect(page);
        let policy = page.headers()["content-security-policy"].to_str().expect("text");
        for part in [
            "default-src 'none';",
            "script-src 'nonce-bm9uY2U';",
            "form-action 'self' https://auth.example.com;",
            "frame-ancestors 'none';",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn a_terminal_may_write_styles_and_runs_no_other_scripts() {
        let policy = terminal_policy("bm9uY2U", "https://auth.example.com", "https://labs.example.com");
        let policy = policy.to_str().expect("text");
        for part in [
            "default-src 'none';",
            "script-src 'nonce-bm9uY2U';",
            "style-src 'self' 'nonce-bm9uY2U';",
            "connect-src 'self' wss://labs.example.com;",
            "form-action 'self' https://auth.example.com;",
            "trusted-types 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert_eq!(policy.matches("unsafe").count(), 1, "the attributes: {policy}");
    }

    #[test]
    fn browsers_use_https_for_the_configured_time() {
        for (seconds, expected) in [(15_552_000, "max-age=15552000"), (0, "max-age=0")] {
            let answer = secured(Response::new(()), Duration::from_secs(seconds));
            assert_eq!(answer.headers()["strict-transport-security"], expected);
        }
    }

    #[test]
    fn a_console_may_show_pictures_of_a_machine_and_nothing_else() {
        let policy = console_policy("bm9uY2U", "https://auth.example.com", "https://labs.example.com");
        let policy = policy.to_str().expect("text");
        for part in [
            "default-src 'none';",
            "script-src 'nonce-bm9uY2U';",
            "style-src 'self';",
            "img-src 'self' data:;",
            "connect-src 'self' wss://labs.example.com;",
            "trusted-types 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
