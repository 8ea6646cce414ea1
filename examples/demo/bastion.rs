//! A login through the SSH bastion: `BASTION=1`. The server is OpenSSH's with the configuration of `images/ssh-bastion`;
//! another one stands in place of the machine, on the address of its Service.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::cluster::Cluster;
use crate::cluster::processes::Process;
use crate::cluster::sshd::{LocalAddress, Sshd, key_pair};
use crate::{NAMESPACE, PATIENCE, STOPPED, interrupted_already, run};

/// The Tenant who logs in.
const TENANT: &str = "ada.rossi";
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
        if !std::env::var("BASTION").is_ok_and(|value| !value.is_empty() && value != "0") {
            return Ok(None);
        }
        let user = Command::new("id").arg("-u").output().context("id")?;
        anyhow::ensure!(
            user.stdout.trim_ascii() == b"0",
            "BASTION=1 needs root: packets are captured, and this machine gets the address of a Service"
        );
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

    /// Gives the Tenant a key, logs in, and shows how the counter rises.
    pub fn show(&self, cluster: &Cluster) -> Result<()> {
        println!("\nthe SSH bastion\n");
        let key = key_pair(&self.folder.join("key"))?;
        let public_key = fs::read_to_string(key.with_extension("pub"))?;
        let patch = json!({"spec": {"publicKeys": [public_key.trim()]}}).to_string();
        run(cluster, &["patch", "tenant", TENANT, "--type=merge", "-p", &patch])?;
        let server = self.server()?;
        let service = cluster.get("services", NAMESPACE, STOPPED)?.context(STOPPED)?;
        let address: IpAddr =
            service["spec"]["clusterIP"].as_str().context("an address")?.parse().context("an address")?;
        let _address = LocalAddress::add(address)?;
        let _machine =
            Sshd::start(&self.folder, SocketAddr::new(address, 22), &format!("echo this is {STOPPED}"))?;
        self.await_key(&public_key)?;
        println!("{} in {} keys", TENANT, self.folder.join("auth-keys/keys").display());
        let user = Command::new("id").arg("-un").output()?;
        let user = String::from_utf8_lossy(user.stdout.trim_ascii()).into_owned();
        for login in 1..=2 {
            println!("\n$ ssh -J {user}@{ADDRESS}:{PORT} {user}@{address}");
            print!("{}", self.ssh(&user, &key, &address.to_string())?);
            let line = await_count(&address.to_string(), login)?;
            println!("{line}");
        }
        drop(server);
        Ok(())
    }

    /// The SSH server of the bastion. In its image it runs as the user `bastion`; here it runs as this user.
    fn server(&self) -> Result<Process> {
        let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/ssh-bastion");
        let shipped = fs::read_to_string(image.join("sshd_config"))?;
        let folder = self.folder.display().to_string();
        let config = shipped
            .replace("/auth-keys/", &format!("{folder}/auth-keys/"))
            .replace("/host-keys/", &format!("{folder}/host-keys/"))
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

    /// Waits until the daemon has written the key.
    fn await_key(&self, public_key: &str) -> Result<()> {
        let file = self.folder.join("auth-keys/keys");
        let wanted = public_key.split_whitespace().nth(1).context("a key")?;
        let begin = Instant::now();
        while !fs::read_to_string(&file).unwrap_or_default().contains(wanted) {
            anyhow::ensure!(
                begin.elapsed() < PATIENCE && !interrupted_already(),
                "{} lacks the key",
                file.display()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Logs in through the bastion. Returns what the machine printed.
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
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Waits until the counter of an address has this value. Returns its line.
fn await_count(address: &str, count: u32) -> Result<String> {
    let begin = Instant::now();
    loop {
        let metrics = crate::cluster::prometheus::page(METRICS, "/metrics")?;
        let series =
            format!(r#"bastion_ssh_connections{{destination_ip="{address}",destination_port="22"}} {count}"#);
        if let Some(line) = metrics.lines().find(|line| **line == series) {
            return Ok(line.to_owned());
        }
        anyhow::ensure!(begin.elapsed() < PATIENCE && !interrupted_already(), "{series} is not in /metrics");
        std::thread::sleep(Duration::from_millis(100));
    }
}
