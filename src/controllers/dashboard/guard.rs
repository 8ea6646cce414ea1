//! What keeps pages of others out: which requests may change something, and what browsers may do with the answers.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response};

/// By which browsers say where a request comes from; all of 2023 and later do.
const FETCH_SITE: &str = "sec-fetch-site";

/// Whether a request that changes something comes from a page of the dashboard itself, whose origin is `own`. A browser that does not
/// say from where it comes names the origin of the page.
pub fn is_from_own_page(headers: &HeaderMap, own: &str) -> bool {
    let only = |name: &str| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none()).map(HeaderValue::as_bytes)
    };
    if headers.contains_key(FETCH_SITE) {
        return only(FETCH_SITE) == Some(b"same-origin");
    }
    only(ORIGIN.as_str()) == Some(own.as_bytes())
}

/// The headers that every answer has.
const ALWAYS: [(HeaderName, &str); 5] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// Adds to an answer what browsers have to keep to. Whoever answers with a page has named its policy already.
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

/// The policy of a page: its scripts have this nonce, and its forms go to the dashboard and, by way of it, to the issuer.
pub fn policy(nonce: &str, issuer: &str) -> HeaderValue {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action \
         'self' {issuer}; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types htmx"
    );
    // A nonce is of base64, and an issuer is an origin.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "https://labs.example.com";

    fn is_own(headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        is_from_own_page(&map, OWN)
    }

    #[test]
    fn only_a_page_of_the_dashboard_changes_something() {
        for (headers, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", OWN)], true),
            (&[("origin", OWN)], true),
            (&[], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", OWN)], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "")], false),
            (&[("origin", "null")], false),
            (&[("origin", "https://machine.labs.example.com")], false),
            (&[("origin", "http://labs.example.com")], false),
            (&[("origin", "https://labs.example.com:8443")], false),
            (&[("origin", OWN), ("origin", "https://evil.example.com")], false),
        ] {
            assert_eq!(is_own(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn no_answer_is_kept_or_framed_and_a_page_may_load_what_is_its_own() {
        let answer = protect(Response::new(()));
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let mut page = Response::new(());
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy("bm9uY2U", "https://auth.example.com"));
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
}
