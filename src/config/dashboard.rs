//! The keys of the dashboard; see `docs/dashboard.md`.

use macro_rules_attribute::apply;

use super::appearance::AppearanceConfig;
use super::bound::Bound;
use super::duration::ConfigDuration;
use super::formats::{self, formats};
use super::instance::InstanceConfig;
use super::keys::{choice, keys};
use super::language::Language;
use super::listen_address::ListenAddress;
use super::network::Network;
use crate::api::image::{is_host, is_host_port};
use crate::api::names::{check_label_value, is_label_key};

keys! {
    /// The dashboard.
    pub struct DashboardConfig {
        /// Whether this replica serves the dashboard; if so, `publicUrl`, `issuerUrl`, `clientId`, `clientSecretFile` and
        /// `sessionKeyFile` are required.
        pub enabled: bool,
        /// The address and port of the HTTP server, behind an Ingress or a Gateway that has the certificate.
        pub listen: ListenAddress = ListenAddress::port(8087),
        /// The origin under which browsers open the dashboard, such as `https://labs.example.com`. Its host must differ
        /// from the hosts of machines and exams, which serve content written by students.
        pub public_url: String as HTTPS_ORIGIN,
        /// The URL of the token issuer, such as `https://auth.example.com/realms/crownlabs`, exactly as it appears in
        /// tokens.
        pub issuer_url: String as ISSUER_URL,
        /// The client ID that users log in with. The API server must accept the ID tokens of this client.
        pub client_id: String,
        /// The file with the secret of this client, reloaded when it changes.
        pub client_secret_file: String,
        /// The PEM file with the certificate authorities to trust for the issuer, reloaded when it changes; if empty,
        /// the operating system's authorities are trusted.
        pub ca_file: String,
        /// How requests to the API server act for a user: with the user's ID token, or by constrained impersonation
        /// (Kubernetes 1.36 or later) if the API server cannot be configured to accept ID tokens.
        pub identity: Identity,
        /// The file with the key that encrypts cookies: 32 random bytes in base64. A second line may contain the
        /// previous key. The file is reloaded when it changes; all replicas must have the same file.
        pub session_key_file: String,
        /// The URL of web SSH, to which the dashboard connects the terminals of its pages, such as
        /// `ws://crownlabs-web-ssh.crownlabs-bastion:8085/webssh`. The chart sets it with `bastion.enabled`. Empty to offer
        /// no terminals.
        pub web_ssh_url: String as WEB_SOCKET_URL,
        /// The host of the SSH bastion for `ssh -J`; empty if there is no bastion.
        pub ssh_host: String as SSH_HOST,
        /// Whether the bastion resolves the names of Services, as a bastion in the cluster does: pages then show the
        /// name of a machine's Service and its namespace instead of an address. The chart sets it with
        /// `bastion.enabled`.
        pub ssh_by_name: bool,
        /// Whether the people with whom a machine is shared can open its desktop, at a host of their own below
        /// `instance.websiteBaseUrl`: only with `instance.access.mode: daemon`, with which the chart sets it.
        pub peer_desktops: bool,
        /// The fingerprint of the bastion's host key, which users compare at the first connection; empty to show none.
        pub ssh_fingerprint: String as SSH_FINGERPRINT,
        /// The Template of the machine that shows users their personal volume, as `NAMESPACE/NAME`; empty to offer no
        /// such machine.
        pub drive_template: String as DRIVE_TEMPLATE,
        /// The labels of nodes that users can choose from when they start a machine, as `key=value`, such as
        /// `disk=fast`. The choice is offered for Templates with an empty `nodeSelector`.
        pub node_labels: Vec<String> as [NODE_LABEL],
        /// The languages of the pages. Browsers that request none of them get the first.
        pub languages: Vec<Language> where SOME = Language::all().collect(),
        /// The URL of a help page for users; empty for the help of the dashboard, `docs/for-students.md`.
        pub help_url: String as formats::SERVER_URL,
        /// The name, the logo, the colors and the contact of the university.
        pub appearance: AppearanceConfig,
        /// How long browsers open the dashboard only through HTTPS after a visit (`Strict-Transport-Security`), without
        /// its subdomains. With `0s`, they forget it.
        pub hsts_max_age: ConfigDuration = ConfigDuration::from_secs(15_552_000),
        /// The largest number of open pages per replica that update live, from 1 to 10000. Further pages update only on
        /// request.
        pub max_pages: usize as 1..=10_000 = 2_000,
        /// The networks of the proxies whose header `X-Forwarded-For` is trusted, such as the addresses of the Ingress
        /// controller. If it is set, requests and live pages are limited for each client address, too. If it is empty,
        /// they are limited for each session only.
        pub trusted_proxies: Vec<Network>,
    }
}

/// How requests to the API server act for a user.
#[apply(choice)]
pub enum Identity {
    /// With the ID token of the user.
    #[default]
    Token,
    /// By the account of the daemon, which impersonates the user of the ID token.
    Impersonate,
}

formats! {
    HTTPS_ORIGIN = "crownlabs-https-origin",
        |text| text.is_empty() || text.starts_with("https://") && (formats::ORIGIN.accepts)(text),
        "an origin such as https://labs.example.com, in lower case, without a slash at the end, or \"\" for none",
        concat!("^(https://", pattern!(authority), ")?$");
    ISSUER_URL = "crownlabs-issuer-url",
        |text| text.is_empty() || text.starts_with("https://") && (formats::SERVER_URL.accepts)(text),
        "a URL such as https://auth.example.com/realms/crownlabs, without query or fragment, or \"\" for none",
        r#"^(https://[^/:#?@"$ ][^#?@"$ ]*)?$"#;
    WEB_SOCKET_URL = "crownlabs-web-socket-url", is_web_socket_url,
        "the URL of a WebSocket such as ws://crownlabs-web-ssh.crownlabs-bastion:8085/webssh, without user, query or \
         fragment, or \"\" for none",
        r#"^(wss?://[^/:#?@"$ ]([^#?@"$ ]*[^/#?@"$ ])?)?$"#;
    SSH_HOST = "crownlabs-ssh-host", |text| text.is_empty() || is_host(text) || is_host_port(text),
        "a host, or a host and a port, such as ssh.example.com or ssh.example.com:2222, or \"\" for none",
        concat!("^(", pattern!(authority), ")?$");
    SSH_FINGERPRINT = "crownlabs-ssh-fingerprint", is_fingerprint,
        "a fingerprint as `ssh-keygen -lf` prints it, such as SHA256:… with 43 characters, or \"\" for none",
        "^(SHA256:[A-Za-z0-9+/]{43})?$";
    NODE_LABEL = "crownlabs-node-label", is_node_label,
        "the key and the value of a label, such as disk=fast",
        concat!("^(", pattern!(host), "/)?", pattern!(word), "=(", pattern!(word), ")?$");
    DRIVE_TEMPLATE = "crownlabs-drive-template", is_drive_template,
        "a namespace and a name, such as workspace-utilities/filebrowser, or \"\" for none",
        concat!("^(", pattern!(label), "/", pattern!(name), ")?$");
}

/// Whether a text is empty, or the URL of a WebSocket: the schemes correspond to `http` and `https`.
fn is_web_socket_url(text: &str) -> bool {
    let web = text.strip_prefix("ws").map(|rest| format!("http{rest}"));
    text.is_empty() || web.is_some_and(|web| (formats::HTTP_URL.accepts)(&web))
}

fn is_fingerprint(text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digest = text.strip_prefix("SHA256:");
    text.is_empty() || digest.is_some_and(|digest| digest.len() == 43 && digest.bytes().all(is_base64))
}

fn is_node_label(text: &str) -> bool {
    let parts = text.split_once('=');
    parts.is_some_and(|(key, value)| is_label_key(key) && check_label_value(value).is_ok())
}

fn is_drive_template(text: &str) -> bool {
    let is_name = |text: &str| (formats::OBJECT_NAME.accepts)(text);
    text.is_empty() || text.split_once('/').is_some_and(|(of, name)| is_name(of) && is_name(name))
}

const SOME: Bound = Bound::Count(1, usize::MAX, "at least one of en and it");

impl DashboardConfig {
    /// Returns the host that the dashboard shares with Instances; `None` if it shares none.
    pub(super) fn shared_with(&self, instance: &InstanceConfig) -> Option<String> {
        let (host, machines) = (host_of(&self.public_url), &instance.website_base_url);
        let is_shared = |prefix: &&str| host.strip_prefix(prefix) == Some(machines);
        ["", "exam.", "exercise."].into_iter().find(is_shared).map(|prefix| format!("{prefix}{machines}"))
    }
}

/// The host of an origin or of a host with a port.
fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.split_once(':').map_or(host, |(host, _)| host)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn fingerprints_and_node_labels_have_a_format() {
        let digest = "a".repeat(43);
        for (format, text, is_valid) in [
            (&SSH_FINGERPRINT, String::new(), true),
            (&SSH_FINGERPRINT, format!("SHA256:{digest}"), true),
            (&SSH_FINGERPRINT, format!("SHA256:{digest}="), false),
            (&SSH_FINGERPRINT, format!("MD5:{digest}"), false),
            (&WEB_SOCKET_URL, String::new(), true),
            (&WEB_SOCKET_URL, "ws://web-ssh.crownlabs-bastion:8085/webssh".to_owned(), true),
            (&WEB_SOCKET_URL, "wss://ssh.example.org/webssh".to_owned(), true),
            (&WEB_SOCKET_URL, "https://ssh.example.org/webssh".to_owned(), false),
            (&WEB_SOCKET_URL, "ws://user@ssh.example.org/webssh".to_owned(), false),
            (&WEB_SOCKET_URL, "ws:///webssh".to_owned(), false),
            (&NODE_LABEL, "disk=fast".to_owned(), true),
            (&NODE_LABEL, "example.org/gpu=".to_owned(), true),
            (&NODE_LABEL, "disk".to_owned(), false),
            (&NODE_LABEL, "a=b c".to_owned(), false),
            (&NODE_LABEL, "=fast".to_owned(), false),
        ] {
            assert_eq!((format.accepts)(&text), is_valid, "{} {text:?}", format.name);
        }
    }
}
