//! OpenSSH's server on an address of a Service, in place of the machine behind it.

use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::processes::{Process, tail};

/// The first line of a terminal. Input after it goes to the command.
pub const OPEN: &str = "open\r\n";

/// A running SSH server. It accepts one key, for root, because tests run as root. It is killed when it is dropped.
pub struct Sshd {
    process: Process,
    address: SocketAddr,
}

impl Sshd {
    /// Starts a server at `address` with its files in `dir`. It accepts the key of [`key_pair`] that is `dir/key`. In
    /// place of a login shell, it prints [`OPEN`] and runs `command`; the variable `SHLVL` keeps bash from reading the
    /// profile of root, which could consume the input.
    pub fn start(dir: &Path, address: SocketAddr, command: &str) -> Result<Self> {
        // The chroot folder of its unprivileged children.
        fs::create_dir_all("/run/sshd")?;
        let name = address.to_string().replace([':', '[', ']'], "-");
        let (config, host_key) =
            (dir.join(format!("sshd_config{name}")), dir.join(format!("host_key{name}")));
        key_pair(&host_key)?;
        let (ip, port, folder) = (address.ip(), address.port(), dir.display());
        fs::write(
            &config,
            format!(
                "ListenAddress {ip}\nPort {port}\nHostKey {}\nAuthorizedKeysFile {folder}/key.pub\nPidFile none
StrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nUsePAM no\nUseDNS no
MaxStartups 1000\nPerSourceMaxStartups none\nSetEnv SHLVL=2\nForceCommand echo open; {command}\n",
                host_key.display()
            ),
        )?;
        let arguments = ["-D", "-e", "-f", &config.display().to_string()].map(str::to_owned);
        let log = dir.join(format!("sshd{name}.log"));
        let process = Process::start("sshd", Path::new("/usr/sbin/sshd"), &arguments, log.clone())
            .context("is openssh-server installed?")?;
        let mut sshd = Self { process, address };
        let begin = Instant::now();
        while !sshd.answers() {
            sshd.process.check()?;
            ensure!(begin.elapsed() < Duration::from_mins(2), "sshd does not answer: {}", tail(&log, 15));
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(sshd)
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)) else {
            return false;
        };
        let mut begin = [0; 4];
        stream.read_exact(&mut begin).is_ok() && &begin == b"SSH-"
    }

    /// Kills the server that accepts connections; open connections stay.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

/// Creates a pair of keys without passphrase, `path` and `path.pub`, unless it exists.
pub fn key_pair(path: &Path) -> Result<PathBuf> {
    if !path.exists() {
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path))?;
    }
    Ok(path.to_owned())
}

/// An address that this machine has on its loopback interface while the value lives.
pub struct LocalAddress(IpAddr);

impl LocalAddress {
    /// Adds the address.
    pub fn add(address: IpAddr) -> Result<Self> {
        run(Command::new("ip").args(["address", "replace", &address.to_string(), "dev", "lo"]))?;
        Ok(Self(address))
    }
}

impl Drop for LocalAddress {
    fn drop(&mut self) {
        let length = if self.0.is_ipv4() { 32 } else { 128 };
        // A failure leaves an address behind that is used nowhere else.
        let _ =
            run(Command::new("ip").args(["address", "del", &format!("{}/{length}", self.0), "dev", "lo"]));
    }
}

/// Runs a program to its end.
fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
