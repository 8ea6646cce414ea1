//! The keys of web SSH; see `docs/web-ssh.md`.

use super::bound::POSITIVE;
use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;
use super::listen_address::ListenAddress;

keys! {
    /// Web SSH.
    pub struct WebSshConfig {
        /// Whether this replica serves terminals; if so, `privateKeyFile` is required.
        pub enabled: bool,
        /// The address and port of the WebSocket `/webssh`.
        pub listen: ListenAddress = ListenAddress::port(8085),
        /// The user to log in as on the machines.
        pub user: String = "crownlabs".to_owned(),
        /// The file with the private key in OpenSSH format, without a passphrase, reloaded when it changes.
        /// `instance.websshMasterKeyFile` is its public key.
        pub private_key_file: String,
        /// The SSH port of the machines.
        pub port: u16 as 1..=65535 = 22,
        /// The origins of the web pages that may open terminals, such as `https://crownlabs.example.com`; if empty, the
        /// origin of `instance.websiteBaseUrl` with `https://`.
        pub allowed_origins: Vec<String> as [formats::ORIGIN],
        /// The largest number of open terminals per replica, from 1 to 100000. It is also the largest number of
        /// browsers with the same address that may wait for a terminal.
        pub max_connections: usize as 1..=100_000 = 1_000,
        /// How long a terminal may be without input and output before it is closed; `0s` for no limit.
        pub idle_timeout: ConfigDuration = ConfigDuration::from_secs(0),
        /// How long a browser may accept no output before its terminal is closed.
        pub send_timeout: ConfigDuration where POSITIVE = ConfigDuration::from_secs(30),
    }
}

impl WebSshConfig {
    /// The origins of the web pages that may open terminals, by default the one of `instance.websiteBaseUrl`.
    pub fn origins(&self, website: &str) -> Vec<String> {
        if self.allowed_origins.is_empty() {
            vec![format!("https://{website}")]
        } else {
            self.allowed_origins.clone()
        }
    }
}
