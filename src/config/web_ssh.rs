//! The keys of web SSH; see `docs/web-ssh.md`.

use super::duration::ConfigDuration;
use super::formats;
use super::instance::InstanceConfig;
use super::keys::keys;
use super::listen_address::ListenAddress;

keys! {
    /// Web SSH.
    pub struct WebSshConfig {
        /// Whether this replica serves terminals; if so, `privateKeyFile` is required.
        pub enabled: bool,
        /// The address and port of the WebSocket `/webssh`.
        pub listen: ListenAddress = ListenAddress::port(8085),
        /// The user that is logged in at the machines.
        pub user: String = "crownlabs".to_owned(),
        /// The file with the private key in the format of OpenSSH, without passphrase, which is read again when it
        /// changes; `instance.websshMasterKeyFile` is its public key.
        pub private_key_file: String,
        /// The port at which the machines serve SSH.
        #[schemars(range(min = 1, max = 65535))]
        pub port: u16 = 22,
        /// The origins of the web pages that may open terminals, such as `https://crownlabs.example.com`; empty for
        /// that of `instance.websiteBaseUrl` with `https://`.
        #[schemars(extend("items" = {"type": "string", "format": formats::ORIGIN.name}))]
        pub allowed_origins: Vec<String>,
        /// The largest number of terminals that are open in one replica, from 1 to 100000; as many browsers of one
        /// address may wait for theirs.
        #[schemars(range(min = 1, max = 100_000))]
        pub max_connections: usize = 1_000,
        /// The time without input and output after which a terminal is closed; `0s` for never.
        pub idle_timeout: ConfigDuration = ConfigDuration::from_secs(0),
        /// The time after which a terminal is closed whose browser takes no output.
        pub send_timeout: ConfigDuration = ConfigDuration::from_secs(30),
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
