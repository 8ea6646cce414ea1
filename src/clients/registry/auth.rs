//! The login at a registry: with user and password (RFC 7617), or with tokens of a service that a challenge names
//! (RFC 6750, and the token authentication of the distribution project).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue};
use http_auth::parse_challenges;
use reqwest::Url;
use serde::Deserialize;

/// The limit for a parameter of a challenge, in bytes.
const LONGEST_PARAMETER: usize = 1_024;

/// The value of `Authorization` for a user with a password.
pub(super) fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    sensitive(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

/// The service that issues tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenService {
    /// Its URL.
    pub realm: Url,
    /// The name of the registry at the service.
    pub service: Option<String>,
}

/// A `Bearer` challenge of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The service that issues the token.
    pub tokens: TokenService,
    /// The scope of the token, if the challenge has one.
    pub scope: Option<String>,
}

/// Returns the `Bearer` challenge of a response; `None` if it has none with a URL.
pub(super) fn bearer(headers: &HeaderMap) -> Option<Challenge> {
    let values = headers.get_all(WWW_AUTHENTICATE).into_iter().filter_map(|value| value.to_str().ok());
    let mut challenges = values.filter_map(|value| parse_challenges(value).ok()).flatten();
    challenges.find_map(|challenge| {
        if !challenge.scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameter = |wanted: &str| {
            let found = challenge.params.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            let value = found.map(|(_, value)| value.to_unescaped());
            value.filter(|value| (1..=LONGEST_PARAMETER).contains(&value.len()))
        };
        let realm = parameter("realm")?.parse().ok()?;
        let tokens = TokenService { realm, service: parameter("service") };
        Some(Challenge { tokens, scope: parameter("scope") })
    })
}

/// The response of a token service. It has no `Debug`, because it is a secret.
#[derive(Deserialize)]
struct Grant {
    token: Option<String>,
    access_token: Option<String>,
}

/// The value of `Authorization` with the token in a response; `None` if the response contains no valid token.
pub(super) fn granted(body: &[u8]) -> Option<HeaderValue> {
    let grant: Grant = serde_json::from_slice(body).ok()?;
    let token = grant.token.or(grant.access_token).filter(|token| !token.is_empty())?;
    sensitive(&format!("Bearer {token}"))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_of_a_token_service_is_found() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
            }
            bearer(&headers).map(|found| {
                let service = found.tokens.service.unwrap_or_default();
                format!("{} {service} {}", found.tokens.realm, found.scope.unwrap_or_default())
            })
        };
        let full = r#"Bearer realm="https://a.example/token",service="r",scope="registry:catalog:*""#;
        let long = format!(r#"Bearer realm="https://a.example/{}""#, "x".repeat(LONGEST_PARAMETER));
        for (values, expected) in [
            (&[full][..], Some("https://a.example/token r registry:catalog:*")),
            (&[r#"Basic realm="x", bearer REALM="http://b/""#], Some("http://b/  ")),
            (&[r#"Basic realm="x""#, full], Some("https://a.example/token r registry:catalog:*")),
            (&[r#"Basic realm="x""#], None),
            (&[r#"Bearer realm="no url""#], None),
            (&[r#"Bearer service="r""#], None),
            (&[&long], None),
            (&["Bearer realm="], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(read(values).as_deref(), expected, "{values:?}");
        }
    }

    #[test]
    fn a_token_is_read_under_both_names() {
        for (body, expected) in [
            (r#"{"token": "a"}"#, Some("Bearer a")),
            (r#"{"access_token": "b", "expires_in": 60}"#, Some("Bearer b")),
            (r#"{"token": "a", "access_token": "b"}"#, Some("Bearer a")),
            (r#"{"token": ""}"#, None),
            (r#"{"token": "a\nX: b"}"#, None),
            ("{}", None),
            ("[]", None),
            ("", None),
        ] {
            let header = granted(body.as_bytes());
            assert!(header.as_ref().is_none_or(HeaderValue::is_sensitive));
            assert_eq!(header.as_ref().and_then(|header| header.to_str().ok()), expected, "{body}");
        }
        let header = basic("ada", "s3cret").unwrap();
        assert_eq!(header.to_str().unwrap(), "Basic YWRhOnMzY3JldA==");
    }
}
