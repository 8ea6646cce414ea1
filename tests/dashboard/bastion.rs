//! The bastion with the keys that the daemon writes, and a machine behind it, both in network namespaces. Users reach
//! the machine with the command that a page shows.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use cluster::config::only;
use tempfile::TempDir;

use crate::daemon::{Daemon, config};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::network::{BASTION, Network, ONE};
use crate::ssh::{Server, key_pair};

/// The host name of the bastion on the pages.
pub const HOST: &str = "ssh.example.org";
const MANIFEST: &str = include_str!("../../manifests/bastion/bastion.yaml");

/// The servers, the daemon of the bastion, and a user with a key.
pub struct Bastion {
    // Dropped in this order.
    _servers: [Server; 2],
    daemon: Daemon,
    network: Network,
    folder: TempDir,
    /// The public key of the user.
    pub public_key: String,
}

impl Bastion {
    /// Starts it. The servers end with the thread that starts them.
    pub fn start(lab: &Lab, selector: &str) -> Self {
        lab.cluster.apply(MANIFEST).expect("the manifest is accepted");
        let (folder, network) = (TempDir::new().expect("a folder"), Network::create());
        let path = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("our folder");
        let [keys, host_keys] = ["auth-keys", "host-keys"].map(path);
        for own in [&keys, &host_keys] {
            fs::create_dir(own).expect("a folder");
        }
        let public_key = key_pair(&path("key"));
        let text = format!(
            "Host {HOST}\nHostName {BASTION}\nPort 2222\nHost *\nBatchMode yes\nIdentityFile {}\nIdentitiesOnly yes\n\
             StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nConnectTimeout 10\n",
            path("key").display()
        );
        fs::write(path("config"), text).expect("written");
        let machine = Server::of_machine(&network, "one", folder.path(), &public_key);
        let server = Server::of_bastion(&network, folder.path(), &keys, &host_keys);
        let namespace = "crownlabs-bastion";
        let bastion = format!(
            "authorizedKeysFile: {}, hostKeys: {{folder: {}, namespace: {namespace}}}, webSshKey: {{namespace: {namespace}}}",
            keys.join("keys").display(),
            host_keys.display()
        );
        let account = lab.cluster.service_account_kubeconfig(namespace, namespace).expect("a token");
        let config = config(selector, &only(&[("bastion", &bastion)]));
        let command = [env!("CARGO_BIN_EXE_crownlabs")];
        let daemon = Daemon::launch(&command, &config, &account, "127.0.0.1".to_owned());
        Self { _servers: [machine, server], daemon, network, folder, public_key }
    }

    /// Runs the command of a page, which ends with the user and the address of a machine, after giving the machine that
    /// address. Returns the user and the connection that the machine reports; the error is the output of `ssh`.
    pub fn run(&self, command: &str) -> Result<String, String> {
        let words: Vec<&str> = command.split(' ').collect();
        let (["ssh", rest @ ..], Some((_, address))) = (&*words, command.rsplit_once('@')) else {
            return Err(format!("{command:?} is not a command of a page"));
        };
        self.network.ip("one", &format!("addr replace {address}/32 dev eth0"));
        self.network.ip("bastion", &format!("route replace {address}/32 via {ONE}"));
        // The server starts when its host keys exist.
        wait_until(PATIENCE, || {
            let bastion = (self.network.bastion.as_str(), 2222);
            TcpStream::connect(bastion).map(drop).map_err(|error| format!("{error}; {}", self.daemon.log()))
        });
        let mut ssh = self.network.command("outside", Path::new("/usr/bin/timeout"));
        ssh.args(["60", "/usr/bin/ssh", "-F"]).arg(self.folder.path().join("config")).args(rest);
        let output = ssh.arg("echo $USER $SSH_CONNECTION").stdin(Stdio::null()).output().expect("ssh runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// The log of the daemon.
    pub fn log(&self) -> String {
        self.daemon.log()
    }
}
