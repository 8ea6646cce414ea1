//! Web SSH, and the machine of its terminals: OpenSSH's server, which listens at every address that it gets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use cluster::config::only;
use cluster::sshd::{LocalAddress, Sshd, key_pair};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::daemon::{Daemon, config, reserved_port};
use crate::lab::Lab;

/// The namespace and the account of the bastion, whose manifest is applied.
const NAMESPACE: &str = "crownlabs-bastion";
/// A shell without profile and history.
const SHELL: &str = "exec env -i PATH=/usr/bin:/bin TERM=$TERM PS1='$ ' LC_ALL=C.UTF-8 sh";

/// The daemon with web SSH, and the machine.
pub struct Terminals {
    // Dropped in this order.
    daemon: Daemon,
    addresses: Mutex<Vec<LocalAddress>>,
    _machine: Sshd,
    _folder: TempDir,
    port: u16,
}

impl Terminals {
    /// Starts them.
    pub fn start(lab: &Lab, selector: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let key = key_pair(&folder.path().join("key")).expect("a key");
        let [port, ssh] = [reserved_port(), reserved_port()];
        let everywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), ssh);
        let machine = Sshd::start(folder.path(), everywhere, SHELL).expect("sshd");
        let keys = format!(
            "listen: \"127.0.0.1:{port}\", user: root, port: {ssh}, privateKeyFile: {}",
            key.display()
        );
        let account = lab.cluster.service_account_kubeconfig(NAMESPACE, NAMESPACE).expect("a token");
        let config = config(selector, &only(&[("webSsh", &keys)]));
        let command = [env!("CARGO_BIN_EXE_crownlabs")];
        let daemon = Daemon::launch(&command, &config, &account, "127.0.0.1".to_owned());
        daemon.await_ready();
        Self { daemon, addresses: Mutex::default(), _machine: machine, _folder: folder, port }
    }

    /// The URL of web SSH.
    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/webssh", self.port)
    }

    /// Gives the machine the address of an Instance.
    pub fn answer_at(&self, address: &str) {
        let address = address.parse().expect("an address");
        self.addresses.lock().push(LocalAddress::add(address).expect("the address"));
    }

    /// The log of the daemon.
    pub fn log(&self) -> String {
        self.daemon.log()
    }
}
