//! The settings of a realm: the server, and the client whose service account we use.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::config::KeycloakConfig;

/// The settings of a realm. The secret is not in it, only its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The URL of the server.
    pub url: String,
    /// The realm of the users.
    pub realm: String,
    /// The client whose service account we use.
    pub client_id: String,
    /// The file with its secret.
    pub client_secret_file: PathBuf,
    /// The client that holds the roles of Workspaces.
    pub roles_client_id: String,
    /// Whether `/auth` stands before `/realms` and `/admin` (servers before version 17).
    pub compatibility_mode: bool,
    /// The certificates of the authorities; `None` for those of the platform.
    pub ca_file: Option<PathBuf>,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl From<&KeycloakConfig> for Settings {
    fn from(config: &KeycloakConfig) -> Self {
        let roles_client =
            if config.roles_client_id.is_empty() { &config.client_id } else { &config.roles_client_id };
        Self {
            url: config.url.clone(),
            realm: config.realm.clone(),
            client_id: config.client_id.clone(),
            client_secret_file: PathBuf::from(&config.client_secret_file),
            roles_client_id: roles_client.clone(),
            compatibility_mode: config.compatibility_mode,
            ca_file: (!config.ca_file.is_empty()).then(|| PathBuf::from(&config.ca_file)),
            timeout: config.timeout.get(),
        }
    }
}

impl Settings {
    /// The URL before `/realms` and `/admin`, without a slash at its end.
    pub(super) fn base(&self) -> String {
        let old = if self.compatibility_mode { "/auth" } else { "" };
        format!("{}{old}", self.url.trim_end_matches('/'))
    }
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

    fn settings(url: &str, realm: &str, compatibility_mode: bool) -> Settings {
        let config = KeycloakConfig {
            url: url.to_owned(),
            realm: realm.to_owned(),
            client_id: "operator".to_owned(),
            compatibility_mode,
            ..KeycloakConfig::default()
        };
        Settings::from(&config)
    }

    #[test]
    fn old_servers_have_auth_before_everything() {
        for (url, base) in [("https://a.b:8443/kc/", "https://a.b:8443/kc"), ("http://k//", "http://k")] {
            assert_eq!(settings(url, "r", false).base(), base);
            assert_eq!(settings(url, "r", true).base(), format!("{base}/auth"));
        }
    }

    #[test]
    fn names_cannot_leave_their_place_in_a_url() {
        assert_eq!(encoded("../a b?#&=ü"), "..%2Fa%20b%3F%23%26%3D%C3%BC");
    }

    #[test]
    fn the_roles_are_our_own_unless_another_client_is_named() {
        assert_eq!(settings("http://k", "r", false).roles_client_id, "operator");
        let other = KeycloakConfig { roles_client_id: "api".to_owned(), ..KeycloakConfig::default() };
        assert_eq!(Settings::from(&other).roles_client_id, "api");
        assert_eq!(Settings::from(&other).ca_file, None);
    }
}
