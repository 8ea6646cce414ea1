//! The keys of external services.

use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;
use super::mail::MailConfig;
use super::prometheus::PrometheusConfig;

keys! {
    /// The external services.
    pub struct Integrations {
        /// Keycloak, in which Tenants have accounts and Workspaces have roles.
        pub keycloak: KeycloakConfig,
        /// The mail that Tenants get about their Instances.
        pub mail: MailConfig,
        /// The Prometheus server that tells when Instances were last used.
        pub prometheus: PrometheusConfig,
    }

    /// The Keycloak realm with the accounts of users; see `docs/keycloak.md`.
    pub struct KeycloakConfig {
        /// Whether accounts and roles are managed in Keycloak; if so, `url`, `realm`, `clientId` and
        /// `clientSecretFile` are required, or `username` and `passwordFile` instead of the latter.
        pub enabled: bool,
        /// The URL of the server, such as `https://auth.example.com`, without `/realms` or `/admin`.
        pub url: String as formats::SERVER_URL,
        /// The realm with the accounts of users.
        pub realm: String,
        /// The client whose service account may manage users and the roles of `rolesClientId`; with `username`, the client
        /// by which this user logs in, such as `admin-cli`.
        pub client_id: String,
        /// The file with the secret of this client, which is read again for each new token. With `username`, empty for a
        /// client without secret.
        pub client_secret_file: String,
        /// A user who takes the place of the service account; empty for none.
        pub username: String,
        /// The file with the password of this user, which is read again for each new token.
        pub password_file: String,
        /// The realm in which this user logs in, such as `master`; empty for `realm`.
        pub login_realm: String,
        /// The client that has the roles of Workspaces; empty for `clientId`.
        pub roles_client_id: String,
        /// Whether the paths of the server begin with `/auth`, as they do before Keycloak 17.
        pub compatibility_mode: bool,
        /// The file with the certificates of the authorities to trust, in PEM, which is read again when it
        /// changes; empty for those of the operating system.
        pub ca_file: String,
        /// The time limit of a request.
        pub timeout: ConfigDuration = ConfigDuration::from_secs(10),
    }
}
