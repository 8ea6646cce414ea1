//! The keys of external services.

use super::bound::POSITIVE;
use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;
use super::mail::MailConfig;
use super::prometheus::PrometheusConfig;

keys! {
    /// The external services.
    pub struct Integrations {
        /// Keycloak, which stores the accounts of Tenants and the roles of Workspaces.
        pub keycloak: KeycloakConfig,
        /// The mail that Tenants get about their Instances.
        pub mail: MailConfig,
        /// The Prometheus server that records when Instances were last used.
        pub prometheus: PrometheusConfig,
    }

    /// The Keycloak realm with the accounts of users; see `docs/keycloak.md`.
    pub struct KeycloakConfig {
        /// Whether accounts and roles are managed in Keycloak. If so, `url`, `realm`, `clientId` and `clientSecretFile`
        /// are required; `username` and `passwordFile` can replace `clientSecretFile`.
        pub enabled: bool,
        /// The URL of the server, such as `https://auth.example.com`, without `/realms` or `/admin`.
        pub url: String as formats::SERVER_URL,
        /// The realm with the accounts of users.
        pub realm: String,
        /// The client whose service account may manage users and the roles of `rolesClientId`. With `username`, the
        /// client ID that this user logs in with, such as `admin-cli`.
        pub client_id: String,
        /// The file with the secret of this client, read again for each new token. With `username`, it may be empty for
        /// a client without a secret.
        pub client_secret_file: String,
        /// A user to log in as instead of the service account; empty for none.
        pub username: String,
        /// The file with the password of this user, read again for each new token.
        pub password_file: String,
        /// The realm that this user logs in to, such as `master`; empty for `realm`.
        pub login_realm: String,
        /// The client that has the roles of Workspaces; empty for `clientId`.
        pub roles_client_id: String,
        /// Whether the paths of the server begin with `/auth`, as they do before Keycloak 17.
        pub compatibility_mode: bool,
        /// The PEM file with the certificate authorities to trust, reloaded when it changes; if empty, the operating
        /// system's authorities are trusted.
        pub ca_file: String,
        /// The time limit of a request.
        pub timeout: ConfigDuration where POSITIVE = ConfigDuration::from_secs(10),
    }
}
