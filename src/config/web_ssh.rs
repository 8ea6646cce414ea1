//! The keys of web SSH; see `docs/web-ssh.md`.

use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;
use super::instance::InstanceConfig;
use super::rules::Rule;
use super::types::{Config, ListenAddress};

/// Web SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebSshConfig {
    /// Whether this replica serves terminals; if so, `privateKeyFile` is required.
    pub enabled: bool,
    /// The address and port of the WebSocket `/webssh`.
    pub listen: ListenAddress,
    /// The user that is logged in at the machines.
    pub user: String,
    /// The file with the private key in the format of OpenSSH, without passphrase, which is read again when it changes;
    /// `instance.websshMasterKeyFile` is its public key.
    pub private_key_file: String,
    /// The port at which the machines serve SSH.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// The origins of the web pages that may open terminals, such as `https://crownlabs.example.com`; empty for that of
    /// `instance.websiteBaseUrl` with `https://`.
    #[schemars(extend("items" = {"type": "string", "format": formats::ORIGIN.name}))]
    pub allowed_origins: Vec<String>,
    /// The largest number of terminals that are open in one replica, from 1 to 100000; as many browsers of one address may
    /// wait for theirs.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_connections: usize,
    /// The time without input and output after which a terminal is closed; `0s` for never.
    pub idle_timeout: ConfigDuration,
    /// The time after which a terminal is closed whose browser takes no output.
    pub send_timeout: ConfigDuration,
}

impl Default for WebSshConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            listen: ListenAddress(Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8085)))),
            user: "crownlabs".to_owned(),
            private_key_file: String::new(),
            port: 22,
            allowed_origins: Vec::new(),
            max_connections: 1_000,
            idle_timeout: ConfigDuration::from_secs(0),
            send_timeout: ConfigDuration::from_secs(30),
        }
    }
}

impl WebSshConfig {
    /// The origins of the web pages that may open terminals.
    pub fn origins(&self, instance: &InstanceConfig) -> Vec<String> {
        if self.allowed_origins.is_empty() {
            vec![format!("https://{}", instance.website_base_url)]
        } else {
            self.allowed_origins.clone()
        }
    }
}

/// The rules about these keys.
pub(super) const RULES: &[Rule] = &[
    Rule {
        keys: &["controllers.webSsh.privateKeyFile", "controllers.webSsh.enabled"],
        broken: |config| lacks(config, "privateKeyFile", |keys| keys.private_key_file.is_empty()),
        expected: "expected the file with the private key that the machines accept",
    },
    Rule {
        keys: &["controllers.webSsh.listen", "controllers.webSsh.enabled"],
        broken: |config| lacks(config, "listen", |keys| keys.listen.address().is_none()),
        expected: "expected an address and a port",
    },
    Rule {
        keys: &["controllers.webSsh.user", "controllers.webSsh.enabled"],
        broken: |config| lacks(config, "user", |keys| keys.user.is_empty()),
        expected: "expected the user that the machines accept",
    },
    Rule {
        keys: &["controllers.webSsh.sendTimeout"],
        broken: |config| {
            let timeout = config.controllers.web_ssh.send_timeout;
            timeout.get().is_zero().then(|| format!("{timeout} is too short"))
        },
        expected: "expected more than 0s",
    },
];

/// The problem that web SSH is enabled and a key is empty.
fn lacks(config: &Config, key: &str, is_empty: fn(&WebSshConfig) -> bool) -> Option<String> {
    let keys = &config.controllers.web_ssh;
    (keys.enabled && is_empty(keys)).then(|| format!("webSsh is enabled and {key} is empty"))
}
