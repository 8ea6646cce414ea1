//! The keys of external services.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;
use super::mail::MailConfig;
use super::prometheus::PrometheusConfig;

/// The external services.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Integrations {
    /// Keycloak, in which Tenants have accounts and Workspaces have roles.
    pub keycloak: KeycloakConfig,
    /// The mail that Tenants get about their Instances.
    pub mail: MailConfig,
    /// The Prometheus server that tells when Instances were last used.
    pub prometheus: PrometheusConfig,
}

/// The Keycloak realm with the accounts of users; see `docs/keycloak.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KeycloakConfig {
    /// Whether accounts and roles are managed in Keycloak; if so, `url`, `realm`, `clientId` and
    /// `clientSecretFile` are required.
    pub enabled: bool,
    /// The URL of the server, such as `https://auth.example.com`, without `/realms` or `/admin`.
    #[schemars(extend("format" = formats::SERVER_URL.name))]
    pub url: String,
    /// The realm with the accounts of users.
    pub realm: String,
    /// The client whose service account may manage users and the roles of `rolesClientId`.
    pub client_id: String,
    /// The file with the secret of this client, which is read again for each new token.
    pub client_secret_file: String,
    /// The client that has the roles of Workspaces; empty for `clientId`.
    pub roles_client_id: String,
    /// Whether the paths of the server begin with `/auth`, as they do before Keycloak 17.
    pub compatibility_mode: bool,
    /// The file with the certificates of the authorities to trust, in PEM, which is read again when it
    /// changes; empty for those of the operating system.
    pub ca_file: String,
    /// The time limit of a request.
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
