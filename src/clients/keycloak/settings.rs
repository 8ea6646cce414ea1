//! Where Keycloak is, and who we are there.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::config::KeycloakConfig;

/// How to reach a realm. The secret is not in it, only its file.
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

/// The unreserved characters of RFC 3986, §2.3, stay as they are.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as a segment of a path or a value of a query or form.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The URLs of a realm (05 §10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoints {
    /// Where tokens come from.
    pub token: String,
    /// Before `/users` and `/clients`.
    admin: String,
}

impl Endpoints {
    pub(super) fn of(settings: &Settings) -> Self {
        let base = settings.url.trim_end_matches('/');
        let old = if settings.compatibility_mode { "/auth" } else { "" };
        let realm = encoded(&settings.realm);
        Self {
            token: format!("{base}{old}/realms/{realm}/protocol/openid-connect/token"),
            admin: format!("{base}{old}/admin/realms/{realm}"),
        }
    }

    /// `GET` for the user of exactly that name.
    pub(super) fn users_named(&self, username: &str) -> String {
        format!("{}/users?username={}&exact=true&briefRepresentation=false", self.admin, encoded(username))
    }

    pub(super) fn users(&self) -> String {
        format!("{}/users", self.admin)
    }

    pub(super) fn user(&self, id: &str) -> String {
        format!("{}/users/{}", self.admin, encoded(id))
    }

    pub(super) fn action_mail(&self, id: &str, lifespan: Duration) -> String {
        format!("{}/execute-actions-email?lifespan={}", self.user(id), lifespan.as_secs())
    }

    pub(super) fn clients_named(&self, client_id: &str) -> String {
        format!("{}/clients?clientId={}", self.admin, encoded(client_id))
    }

    pub(super) fn roles(&self, client: &str) -> String {
        format!("{}/clients/{}/roles", self.admin, encoded(client))
    }

    pub(super) fn role(&self, client: &str, name: &str) -> String {
        format!("{}/{}", self.roles(client), encoded(name))
    }

    pub(super) fn roles_of(&self, user: &str, client: &str) -> String {
        format!("{}/role-mappings/clients/{}", self.user(user), encoded(client))
    }
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
    fn the_urls_of_a_realm() {
        let endpoints = Endpoints::of(&settings("https://a.b:8443/kc/", "crownlabs", false));
        assert_eq!(endpoints.token, "https://a.b:8443/kc/realms/crownlabs/protocol/openid-connect/token");
        let admin = "https://a.b:8443/kc/admin/realms/crownlabs";
        assert_eq!(
            endpoints.users_named("ada.rossi"),
            format!("{admin}/users?username=ada.rossi&exact=true&briefRepresentation=false")
        );
        assert_eq!(
            endpoints.action_mail("1-2", Duration::from_hours(720)),
            format!("{admin}/users/1-2/execute-actions-email?lifespan=2592000")
        );
        assert_eq!(
            endpoints.role("c", "workspace-tea:user"),
            format!("{admin}/clients/c/roles/workspace-tea%3Auser")
        );
        assert_eq!(endpoints.roles_of("u", "c"), format!("{admin}/users/u/role-mappings/clients/c"));
    }

    #[test]
    fn old_servers_have_auth_before_everything() {
        for url in ["https://a.b", "https://a.b/", "https://a.b//"] {
            let endpoints = Endpoints::of(&settings(url, "r", true));
            assert_eq!(endpoints.token, "https://a.b/auth/realms/r/protocol/openid-connect/token");
            assert_eq!(endpoints.users(), "https://a.b/auth/admin/realms/r/users");
        }
    }

    #[test]
    fn names_cannot_leave_their_place_in_the_url() {
        let endpoints = Endpoints::of(&settings("http://k", "a/b ?#", false));
        assert_eq!(endpoints.users(), "http://k/admin/realms/a%2Fb%20%3F%23/users");
        assert_eq!(endpoints.user("../x"), "http://k/admin/realms/a%2Fb%20%3F%23/users/..%2Fx");
        assert!(endpoints.clients_named("a&b=ü").ends_with("/clients?clientId=a%26b%3D%C3%BC"));
    }

    #[test]
    fn the_roles_are_our_own_unless_another_client_is_named() {
        assert_eq!(settings("http://k", "r", false).roles_client_id, "operator");
        let other = KeycloakConfig { roles_client_id: "api".to_owned(), ..KeycloakConfig::default() };
        assert_eq!(Settings::from(&other).roles_client_id, "api");
        assert_eq!(Settings::from(&other).ca_file, None);
    }
}
