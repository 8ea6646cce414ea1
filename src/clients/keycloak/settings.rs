//! The settings of a realm: the server, and the client whose service account we use.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::config::KeycloakConfig;

/// The URL before `/realms` and `/admin`, without a slash at its end. `/auth` stands in it for servers before version 17.
pub(super) fn base(config: &KeycloakConfig) -> String {
    let old = if config.compatibility_mode { "/auth" } else { "" };
    format!("{}{old}", config.url.trim_end_matches('/'))
}

/// The client that holds the roles of Workspaces.
pub(super) fn roles_client(config: &KeycloakConfig) -> &str {
    if config.roles_client_id.is_empty() { &config.client_id } else { &config.roles_client_id }
}

/// The unreserved characters of RFC 3986, §2.3, stay as they are.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as a segment of a path, or as one of the two halves of HTTP Basic credentials.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, compatibility_mode: bool) -> KeycloakConfig {
        KeycloakConfig { url: url.to_owned(), compatibility_mode, ..KeycloakConfig::default() }
    }

    #[test]
    fn old_servers_have_auth_before_everything() {
        for (url, base) in [("https://a.b:8443/kc/", "https://a.b:8443/kc"), ("http://k//", "http://k")] {
            assert_eq!(super::base(&config(url, false)), base);
            assert_eq!(super::base(&config(url, true)), format!("{base}/auth"));
        }
    }

    #[test]
    fn names_cannot_leave_their_place_in_a_url() {
        assert_eq!(encoded("../a b?#&=ü"), "..%2Fa%20b%3F%23%26%3D%C3%BC");
    }

    #[test]
    fn the_roles_are_our_own_unless_another_client_is_named() {
        let ours = KeycloakConfig { client_id: "operator".to_owned(), ..KeycloakConfig::default() };
        assert_eq!(roles_client(&ours), "operator");
        assert_eq!(roles_client(&KeycloakConfig { roles_client_id: "api".to_owned(), ..ours }), "api");
    }
}
