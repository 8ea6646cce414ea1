//! The keys of the services outside of the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;

/// The services outside of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Integrations {
    /// Keycloak, where Tenants have an account and Workspaces have roles.
    pub keycloak: KeycloakConfig,
}

/// The Keycloak realm of the users (05 §1, `--keycloak-*`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KeycloakConfig {
    /// Whether accounts and roles are kept in Keycloak; then `url`, `realm`, `clientId` and
    /// `clientSecretFile` are needed.
    pub enabled: bool,
    /// The URL of the server, such as `https://auth.example.com`, without `/realms` or `/admin`.
    #[schemars(extend("format" = formats::SERVER_URL.name))]
    pub url: String,
    /// The realm of the users.
    pub realm: String,
    /// The client whose service account may manage users, and the roles of `rolesClientId`.
    pub client_id: String,
    /// The file with the secret of that client. It is read again for each new token.
    pub client_secret_file: String,
    /// The client that holds the roles of Workspaces; empty for `clientId`.
    pub roles_client_id: String,
    /// Whether the server is an old one that has `/auth` before `/realms` and `/admin`.
    pub compatibility_mode: bool,
    /// The file with the certificates, in PEM, of the authorities that the server's certificate is
    /// checked against; empty for those of the platform. It is read again when it changes.
    pub ca_file: String,
    /// How long an answer may take.
    pub timeout: ConfigDuration,
}

impl Default for KeycloakConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            url: String::new(),
            realm: String::new(),
            client_id: String::new(),
            client_secret_file: String::new(),
            roles_client_id: String::new(),
            compatibility_mode: false,
            ca_file: String::new(),
            timeout: ConfigDuration::from_secs(10),
        }
    }
}
