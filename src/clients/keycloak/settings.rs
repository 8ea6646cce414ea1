//! The settings of a realm: the server, and the account for the token.

use std::fmt::{self, Display, Formatter};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::config::KeycloakConfig;

/// The URL before `/realms` and `/admin`, without a slash at its end. For servers before version 17, it includes
/// `/auth`.
pub(super) fn base(config: &KeycloakConfig) -> String {
    let old = if config.compatibility_mode { "/auth" } else { "" };
    format!("{}{old}", config.url.trim_end_matches('/'))
}

/// The client that holds the roles of Workspaces.
pub(super) fn roles_client(config: &KeycloakConfig) -> &str {
    if config.roles_client_id.is_empty() { &config.client_id } else { &config.roles_client_id }
}

/// The account that the token belongs to, with phrases for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// The service account of a client.
    Client(String),
    /// A user.
    User {
        /// The user name.
        name: String,
        /// The client that the user logs in with.
        client: String,
        /// The client with the roles for managing the realm. The realm `master` has such a client for each realm.
        rights: String,
    },
}

impl Account {
    /// The account of a configuration.
    pub(super) fn of(config: &KeycloakConfig) -> Self {
        let client = config.client_id.clone();
        if config.username.is_empty() {
            return Self::Client(client);
        }
        let (name, realm) = (config.username.clone(), &config.realm);
        let is_own = login_realm(config) == realm;
        let rights = if is_own { "realm-management".to_owned() } else { format!("{realm}-realm") };
        Self::User { name, client, rights }
    }

    /// The settings to check if the account is rejected.
    pub(super) fn to_check(&self) -> String {
        match self {
            Self::Client(_) => {
                "integrations.keycloak.clientId, the content of integrations.keycloak.clientSecretFile, and that the client has a \
                 service account"
                    .to_owned()
            }
            Self::User { client, .. } => format!(
                "username, the content of passwordFile and loginRealm in integrations.keycloak, and that the client {client} \
                 allows direct access grants"
            ),
        }
    }

    /// The advice to assign a missing role to the account.
    pub(super) fn lacks(&self, role: &str) -> String {
        match self {
            Self::Client(_) => {
                format!("give its service account the role {role} of the client realm-management")
            }
            Self::User { rights, .. } => format!("give this user the role {role} of the client {rights}"),
        }
    }
}

impl Display for Account {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(client) => write!(formatter, "the client {client}"),
            Self::User { name, .. } => write!(formatter, "the user {name}"),
        }
    }
}

/// The realm that issues the token.
pub(super) fn login_realm(config: &KeycloakConfig) -> &str {
    if config.login_realm.is_empty() { &config.realm } else { &config.login_realm }
}

/// The unreserved characters of RFC 3986, §2.3, stay as they are.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes a text as a segment of a path, or as one of the two halves of HTTP Basic credentials.
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
    fn urls_of_old_servers_include_auth() {
        for (url, base) in [("https://a.b:8443/kc/", "https://a.b:8443/kc"), ("http://k//", "http://k")] {
            assert_eq!(super::base(&config(url, false)), base);
            assert_eq!(super::base(&config(url, true)), format!("{base}/auth"));
        }
    }

    #[test]
    fn names_are_encoded_as_one_segment_of_a_url() {
        assert_eq!(encoded("../a b?#&=ü"), "..%2Fa%20b%3F%23%26%3D%C3%BC");
    }

    #[test]
    fn the_roles_belong_to_the_own_client_by_default() {
        let ours = KeycloakConfig { client_id: "operator".to_owned(), ..KeycloakConfig::default() };
        assert_eq!(roles_client(&ours), "operator");
        assert_eq!(roles_client(&KeycloakConfig { roles_client_id: "api".to_owned(), ..ours }), "api");
    }
}
