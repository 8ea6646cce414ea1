//! The keys of the login of machines; see `docs/access.md`.

use super::keys::keys;
use super::listen_address::ListenAddress;

keys! {
    /// The login of machines.
    pub struct LoginConfig {
        /// Whether this replica answers the authentication requests of the Ingress controller or the Gateway for
        /// machines; if so, `sessionKeyFile` and `hostKeyFile` are required.
        pub enabled: bool,
        /// The address and port of `/auth`, for ingress-nginx, and `/authz`, for the external authorization of Envoy.
        pub listen: ListenAddress = ListenAddress::port(8089),
        /// The address and port for the hosts of peers, with whom owners share their machines: the login passes their requests on
        /// to the machines. Empty for no desktops of peers.
        pub peers_listen: ListenAddress,
        /// The file with the key that encrypts cookies: the same file as `dashboard.sessionKeyFile`, which begins each
        /// login. It is reloaded when it changes.
        pub session_key_file: String,
        /// The file with the entry `key` of the Secret `crownlabs-machine-hosts`, which the daemon creates with the
        /// first machine. It is reloaded when it changes.
        pub host_key_file: String,
    }
}
