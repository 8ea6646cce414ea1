//! The keys of the dashboard; see `docs/dashboard.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats::{self, Format};
use super::instance::InstanceConfig;
use super::keys::keys;
use super::listen_address::ListenAddress;
use crate::api::image::{is_host, is_host_port};

keys! {
    /// The dashboard.
    pub struct DashboardConfig {
        /// Whether this replica serves the dashboard; if so, `publicUrl`, `issuerUrl`, `clientId`, `clientSecretFile` and
        /// `sessionKeyFile` are required.
        pub enabled: bool,
        /// The address and port of the HTTP server, behind an Ingress or a Gateway that has the certificate.
        pub listen: ListenAddress = ListenAddress::port(8087),
        /// The origin at which browsers open it, such as `https://labs.example.com`. The host must be another one than those
        /// of machines and exams: they serve whatever students write.
        pub public_url: String as HTTPS_ORIGIN,
        /// The URL of the issuer of tokens, such as `https://auth.example.com/realms/crownlabs`, exactly as tokens have it.
        pub issuer_url: String as ISSUER_URL,
        /// The client of the issuer by which users log in. The API server has to accept its ID tokens.
        pub client_id: String,
        /// The file with the secret of this client, which is read again when it changes.
        pub client_secret_file: String,
        /// The file with the certificates of the authorities to trust for the issuer, in PEM, which is read again when it
        /// changes; empty for those of the operating system.
        pub ca_file: String,
        /// How the API server is asked in the name of a user: with his ID token, or, if it cannot be told to accept that, by
        /// constrained impersonation, which Kubernetes has since 1.36.
        pub identity: Identity = Identity::Token,
        /// The file with the key that seals cookies: 32 random bytes in base64, and in a second line the key before it, if
        /// there was one. It is read again when it changes, and all replicas have the same.
        pub session_key_file: String,
        /// The URL of the page that opens terminals, to which the namespace and the name of a machine are appended; empty for
        /// none.
        pub web_ssh_url: String as formats::SERVER_URL,
        /// The host of the SSH bastion, as `ssh -J` names it; empty where there is none.
        pub ssh_host: String as SSH_HOST,
        /// The Template of the machine in which users look at their personal volumes, as `NAMESPACE/NAME`; empty for none.
        pub drive_template: String as DRIVE_TEMPLATE,
        /// The languages of the pages; browsers that want none of them get the first.
        pub languages: Vec<Language> = vec![Language::En, Language::It],
        /// The page that users find help at; empty for none.
        pub help_url: String as formats::SERVER_URL,
        /// The largest number of open pages in one replica that show changes at once, from 1 to 10000; more of them are shown
        /// anew on request.
        #[schemars(range(min = 1, max = 10_000))]
        pub max_pages: usize = 2_000,
    }
}

/// How the API server is asked in the name of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Identity {
    /// With the ID token of the user.
    Token,
    /// By the account of the daemon, which impersonates the user of the ID token.
    Impersonate,
}

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Language {
    /// English.
    En,
    /// Italian.
    It,
}

const HTTPS_ORIGIN: Format = Format::new(
    "crownlabs-https-origin",
    "an origin such as https://labs.example.com, in lower case, without a slash at the end, or \"\" for none",
    |text| {
        let is_origin = |host: &str| is_host(host) || is_host_port(host);
        text.is_empty() || text.strip_prefix("https://").is_some_and(is_origin)
    },
);
const ISSUER_URL: Format = Format::new(
    "crownlabs-issuer-url",
    "a URL such as https://auth.example.com/realms/crownlabs, without query or fragment, or \"\" for none",
    |text| text.is_empty() || text.starts_with("https://") && (formats::SERVER_URL.accepts)(text),
);
const SSH_HOST: Format = Format::new(
    "crownlabs-ssh-host",
    "a host, or a host and a port, such as ssh.example.com or ssh.example.com:2222, or \"\" for none",
    |text| text.is_empty() || is_host(text) || is_host_port(text),
);
const DRIVE_TEMPLATE: Format = Format::new(
    "crownlabs-drive-template",
    "a namespace and a name, such as workspace-utilities/filebrowser, or \"\" for none",
    |text| {
        let is_name = |text: &str| (formats::OBJECT_NAME.accepts)(text);
        text.is_empty() || text.split_once('/').is_some_and(|(of, name)| is_name(of) && is_name(name))
    },
);

/// The formats of these keys.
pub(super) const FORMATS: [&Format; 4] = [&HTTPS_ORIGIN, &ISSUER_URL, &SSH_HOST, &DRIVE_TEMPLATE];

impl DashboardConfig {
    /// The host at which browsers open it, without port.
    pub fn public_host(&self) -> &str {
        host_of(&self.public_url)
    }

    /// The use that Instances make of its host; `None` if they make none.
    pub(super) fn shared_with(&self, instance: &InstanceConfig) -> Option<String> {
        let (host, machines) = (self.public_host(), &instance.website_base_url);
        let is_shared = |prefix: &&str| host.strip_prefix(prefix) == Some(machines);
        ["", "exam.", "exercise."].into_iter().find(is_shared).map(|prefix| format!("{prefix}{machines}"))
    }
}

/// The host of an origin or of a host with a port.
fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.split_once(':').map_or(host, |(host, _)| host)
}
