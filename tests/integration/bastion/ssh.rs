//! SSH servers in network namespaces, and the client of a user.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::network::{BASTION, Network};

/// The folder of the bastion's SSH server image.
fn image() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("images/ssh-bastion")
}

/// A key pair in files that the user with the id 1000 can use. Returns the public key without its comment.
pub fn key_pair(file: &Path) -> String {
    let status = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file).status();
    assert!(status.expect("ssh-keygen runs").success());
    std::os::unix::fs::chown(file, Some(1000), Some(1000)).expect("root");
    let public = fs::read_to_string(file.with_extension("pub")).expect("written");
    public.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// A server. It is killed when it is dropped.
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// The server of a machine: the user `crownlabs` can log in with `public_key`, on the ports 22 and 2022.
    pub fn of_machine(network: &Network, member: &str, folder: &Path, public_key: &str) -> Self {
        network.allow_low_ports(member);
        let file = |name: &str| folder.join(format!("{member}-{name}"));
        key_pair(&file("host"));
        fs::write(file("authorized"), public_key).expect("written");
        let config = format!(
            "Port 22\nPort 2022\nPidFile none\nStrictModes no\nHostKey {}\nAuthorizedKeysFile {}\n",
            file("host").display(),
            file("authorized").display()
        );
        fs::write(file("config"), config).expect("written");
        let mut command = network.command(member, Path::new("/usr/sbin/sshd"));
        command.args(["-D", "-e", "-f"]).arg(file("config"));
        Self::start(command, file("log"))
    }

    /// The server of the bastion, started as in its image, with the files of these folders.
    pub fn of_bastion(network: &Network, folder: &Path, auth_keys: &Path, host_keys: &Path) -> Self {
        let shipped = fs::read_to_string(image().join("sshd_config")).expect("in the repository");
        let config = shipped
            .replace("/auth-keys/", &format!("{}/", auth_keys.display()))
            .replace("/host-keys/", &format!("{}/", host_keys.display()));
        assert_eq!(config.matches(&folder.display().to_string()).count(), 4, "{config}");
        let file = folder.join("sshd_config");
        fs::write(&file, config).expect("written");
        let mut command = network.command("bastion", &image().join("start.sh"));
        command.env("SSHD_CONFIG", file);
        Self::start(command, folder.join("bastion-log"))
    }

    fn start(mut command: Command, log: PathBuf) -> Self {
        let file = File::create(&log).expect("a log");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        Self { child: child.expect("the server starts"), log }
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the log of a server:\n{}", crate::daemon::tail(&self.log()));
        }
    }
}

/// A session of a user.
pub struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The user, outside.
pub struct Client<'a> {
    network: &'a Network,
    config: PathBuf,
}

impl<'a> Client<'a> {
    /// A user with the private key in `key`.
    pub fn new(network: &'a Network, folder: &Path, key: &Path) -> Self {
        let config = folder.join("ssh_config");
        // No prompt, no other key, a new connection each time.
        let text = format!(
            "Host *\nBatchMode yes\nIdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\n\
             UserKnownHostsFile /dev/null\nLogLevel INFO\nConnectTimeout 10\nControlMaster no\n\
             Host bastion\nHostName {BASTION}\nPort 2222\nUser bastion\n",
            key.display()
        );
        fs::write(&config, text).expect("written");
        fs::set_permissions(&config, Permissions::from_mode(0o644)).expect("our file");
        Self { network, config }
    }

    /// Runs `ssh` with these arguments outside. Returns its output; the error is its standard error.
    pub fn ssh(&self, arguments: &[&str]) -> Result<String, String> {
        self.ssh_from("outside", arguments)
    }

    /// The same in another namespace.
    pub fn ssh_from(&self, member: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.network.command(member, Path::new("/usr/bin/timeout"));
        // `ssh` starts the client of a jump under the same name and with the same configuration.
        command.args(["20", "/usr/bin/ssh", "-F"]).arg(&self.config).args(arguments).stdin(Stdio::null());
        let Output { status, stdout, stderr } = command.output().expect("ssh runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if status.success() { Ok(text(&stdout)) } else { Err(format!("{status}: {}", text(&stderr))) }
    }

    /// Logs in to a machine through the bastion, and stays until the session is dropped.
    pub fn stay(&self, machine: &str) -> Session {
        let mut command = self.network.command("outside", Path::new("/usr/bin/ssh"));
        command.arg("-F").arg(&self.config).args(["-J", "bastion", &format!("crownlabs@{machine}"), "cat"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Session(child.expect("ssh starts"))
    }

    /// Logs in to a machine through the bastion. Returns the addresses that the machine sees: the client's with its
    /// port, and its own with the port.
    pub fn jump(&self, machine: &str) -> Result<String, String> {
        self.ssh(&["-J", "bastion", &format!("crownlabs@{machine}"), "echo $SSH_CONNECTION"])
    }
}
