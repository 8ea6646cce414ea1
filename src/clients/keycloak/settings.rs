//! The settings of a realm: the server, and whose token the calls carry.

use std::fmt::{self, Display, Formatter};

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

/// Whose token the calls carry, in the words of errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// The service account of a client.
    Client(String),
    /// A user.
    User {
        /// The user name.
        name: String,
        /// The client by which this user logs in.
        client: String,
        /// The client with the roles that allow to manage the realm. In the realm `master`, each realm has one.
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

    /// What to check if it is not accepted.
    pub(super) fn to_check(&self) -> String {
        match self {
            Self::Client(_) => {
                "clientId, the content of clientSecretFile, and that the client has a service account"
                    .to_owned()
            }
            Self::User { client, .. } => format!(
                "username, the content of passwordFile, loginRealm, and that the client {client} allows direct access grants"
            ),
        }
    }

    /// Who is to be given which role if one is missing.
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

/// The realm in which the token is asked for.
pub(super) fn login_realm(config: &KeycloakConfig) -> &str {
    if config.login_realm.is_empty() { &config.realm } else { &config.login_realm }
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
