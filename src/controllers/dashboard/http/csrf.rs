//! The check against cross-site request forgery: only forms of the dashboard itself change something.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::Response;
use http::HeaderMap;
use http::header::ORIGIN;
use http::request::Parts;

use super::context::Context;
use super::fetch::{SITE, only};
use crate::controllers::dashboard::app::App;
use crate::controllers::dashboard::ui::state::State;

/// A request that comes from a page of the dashboard.
pub struct SameOrigin;

impl FromRequestParts<Arc<App>> for SameOrigin {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        if is_same_origin(&parts.headers, &app.config.public_url) {
            return Ok(Self);
        }
        let context = Context::from_request_parts(parts, app).await?;
        Err(context.state("", &State::NotHere))
    }
}

/// Whether a request comes from a page of the origin `own`. Older browsers send the origin of the page instead of the relation.
fn is_same_origin(headers: &HeaderMap, own: &str) -> bool {
    if headers.contains_key(SITE) {
        return only(headers, SITE) == Some(b"same-origin");
    }
    only(headers, ORIGIN.as_str()) == Some(own.as_bytes())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const OWN: &str = "https://labs.example.com";

    fn is_own(headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        is_same_origin(&map, OWN)
    }

    #[test]
    fn requests_from_other_origins_are_rejected() {
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
}
