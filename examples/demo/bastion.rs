//! A login through the SSH bastion: `BASTION=1`. The server is OpenSSH's with the configuration of
//! `images/ssh-bastion`; another OpenSSH server takes the place of the machine, on the address of its Service.

use std::fs::{self, Permissions};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::parts::is_wanted;
use crate::{NAMESPACE, PATIENCE, interrupted_already, run};
use cluster::Cluster;
use cluster::processes::Process;
use cluster::sshd::{LocalAddress, OPEN, Sshd, key_pair};

/// The Tenant that logs in.
const TENANT: &str = "ada.rossi";
/// The machine that the Tenant logs in to.
const MACHINE: &str = "desktop-1-desktop";
/// The address of the bastion.
const ADDRESS: &str = "127.0.0.1";
const PORT: u16 = 12_222;
/// The address of the daemon's metrics in `config/demo.yaml`.
const METRICS: &str = "127.0.0.1:18080";

/// The folders that the daemon shares with the SSH server.
pub struct Bastion {
    folder: PathBuf,
}

impl Bastion {
    /// Prepares the folders if the variable `BASTION` is set.
    pub fn start(folder: &Path) -> Result<Option<Self>> {
        if !is_wanted("BASTION") {
            return Ok(None);
        }
        let folder = folder.join("bastion");
        for name in ["auth-keys", "host-keys"] {
            fs::create_dir_all(folder.join(name))?;
        }
        Ok(Some(Self { folder }))
    }

    /// The keys below `controllers`.
    pub fn controllers(&self) -> String {
        let folder = self.folder.display();
        format!(
            "  bastion: {{enabled: true, authorizedKeysFile: {folder}/auth-keys/keys, hostKeys: {{folder: \
             {folder}/host-keys}}}}\n  sshTracker: {{enabled: true}}\n"
        )
    }

    /// Gives the Tenant a key, logs in, and prints the counter before and after.
    pub fn show(&self, cluster: &Cluster) -> Result<()> {
        println!("\nthe SSH bastion\n");
        let key = key_pair(&self.folder.join("key"))?;
        let public_key = fs::read_to_string(key.with_extension("pub"))?;
        let patch = json!({"spec": {"publicKeys": [public_key.trim()]}}).to_string();
        run(cluster, &["patch", "tenant", TENANT, "--type=merge", "-p", &patch])?;
        let server = self.server()?;
        let service = cluster.get("services", NAMESPACE, MACHINE)?.context(MACHINE)?;
        let address: IpAddr =
            service["spec"]["clusterIP"].as_str().context("an address")?.parse().context("an address")?;
        let _address = LocalAddress::add(address)?;
        let _machine =
            Sshd::start(&self.folder, SocketAddr::new(address, 22), &format!("echo this is {MACHINE}"))?;
        let wanted = public_key.split_whitespace().nth(1).context("a key")?;
        await_file(&self.folder.join("auth-keys/keys"), wanted)?;
        println!("the key of {TENANT} is in {}", self.folder.join("auth-keys/keys").display());
        let user = Command::new("id").arg("-un").output()?;
        let user = String::from_utf8_lossy(user.stdout.trim_ascii()).into_owned();
        let mut before = count(&address.to_string())?;
        println!("the address of {MACHINE} was retried until it answered, which counts, too: {before}");
        for _ in 0..2 {
            println!("\n$ ssh -J {user}@{ADDRESS}:{PORT} {user}@{address}");
            print!("{}", self.ssh(&user, &key, &address.to_string())?);
            let after = count(&address.to_string())?;
            println!("bastion_ssh_connections{{destination_ip=\"{address}\"}}: {before}, then {after}");
            anyhow::ensure!(after == before + 1, "one login is one connection");
            before = after;
        }
        drop(server);
        Ok(())
    }

    /// The SSH server of the bastion. In its image it runs as the user `bastion`. Here it runs as the current user,
    /// who also owns the host keys, and OpenSSH then requires that only the owner can read them.
    fn server(&self) -> Result<Process> {
        let own = self.folder.join("own-host-keys");
        fs::create_dir_all(&own)?;
        // The daemon writes this file last.
        await_file(&self.folder.join("host-keys/ssh_host_key_ed25519"), "PRIVATE KEY")?;
        for kind in ["ed25519", "ecdsa", "rsa"] {
            let (name, private) = (format!("ssh_host_key_{kind}"), Permissions::from_mode(0o600));
            fs::copy(self.folder.join("host-keys").join(&name), own.join(&name))?;
            fs::set_permissions(own.join(&name), private)?;
        }
        let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../images/ssh-bastion");
        let shipped = fs::read_to_string(image.join("sshd_config"))?;
        let folder = self.folder.display().to_string();
        let config = shipped
            .replace("/auth-keys/", &format!("{folder}/auth-keys/"))
            .replace("/host-keys/", &format!("{folder}/own-host-keys/"))
            .replace("Port 2222\n", &format!("ListenAddress {ADDRESS}\nPort {PORT}\n"))
            .replace("AllowUsers bastion\nPermitRootLogin no\n", "PermitRootLogin prohibit-password\n");
        let file = self.folder.join("sshd_config");
        fs::write(&file, config)?;
        fs::create_dir_all("/run/sshd")?;
        let command =
            [format!("SSHD_CONFIG={}", file.display()), image.join("start.sh").display().to_string()];
        let server = Process::start("sshd", Path::new("env"), &command, self.folder.join("sshd.log"))?;
        let begin = Instant::now();
        while std::net::TcpStream::connect((ADDRESS, PORT)).is_err() {
            anyhow::ensure!(
                begin.elapsed() < PATIENCE && !interrupted_already(),
                "the bastion does not answer"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// Logs in through the bastion. Returns the output of the machine.
    fn ssh(&self, user: &str, key: &Path, address: &str) -> Result<String> {
        let config = self.folder.join("ssh_config");
        let text = format!(
            "Host *\nBatchMode yes\nUser {user}\nIdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\n\
             UserKnownHostsFile /dev/null\nLogLevel ERROR\nConnectTimeout 10\n\
             Host bastion\nHostName {ADDRESS}\nPort {PORT}\n",
            key.display()
        );
        fs::write(&config, text)?;
        let output = Command::new("ssh").arg("-F").arg(config).args(["-J", "bastion", address]).output()?;
        anyhow::ensure!(output.status.success(), "ssh: {}", String::from_utf8_lossy(&output.stderr));
        // The server in place of the machine begins with its own line.
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.strip_prefix(OPEN.trim_end()).unwrap_or(&text).trim_start().to_owned())
    }
}

/// Waits until the daemon has written a file with that text.
fn await_file(file: &Path, text: &str) -> Result<()> {
    let begin = Instant::now();
    while !fs::read_to_string(file).unwrap_or_default().contains(text) {
        anyhow::ensure!(
            begin.elapsed() < PATIENCE && !interrupted_already(),
            "{} is not written",
            file.display()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The counter of an address, once it has not changed for half a second. Packets are counted with a short delay.
fn count(address: &str) -> Result<u64> {
    let series = format!(r#"bastion_ssh_connections{{destination_ip="{address}",destination_port="22"}} "#);
    let (begin, mut last, mut since) = (Instant::now(), 0, Instant::now());
    loop {
        anyhow::ensure!(
            begin.elapsed() < PATIENCE && !interrupted_already(),
            "{series} does not come to rest"
        );
        let metrics = cluster::prometheus::page(METRICS, "/metrics")?;
        let value = metrics.lines().find_map(|line| line.strip_prefix(&series)?.trim().parse().ok());
        let value = value.unwrap_or_default();
        if value != last {
            (last, since) = (value, Instant::now());
        } else if since.elapsed() > Duration::from_millis(500) {
            return Ok(value);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
