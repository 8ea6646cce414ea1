//! Web SSH with the real daemon and API server, OpenSSH's server in place of the machines, and a WebSocket client.

mod limits;
mod rights;
mod terminal;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::{Daemon, Options, free_port};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::browser::{Browser, request};
use cluster::sshd::{LocalAddress, OPEN, Sshd, key_pair};

/// A shell without prompt, profile and history.
const SHELL: &str = "exec env -i PATH=/usr/bin:/bin TERM=$TERM PS1= LC_ALL=C.UTF-8 sh";

/// A daemon that serves terminals, and the Instance `vm` of the user `ada`, whose machine runs OpenSSH's server.
struct Site {
    lab: Arc<Lab>,
    /// The name of the fixtures.
    name: &'static str,
    daemon: Daemon,
    /// The port of the WebSocket.
    port: u16,
    /// The port of SSH on the machines.
    ssh_port: u16,
    /// Keys and configuration of the SSH servers.
    folder: TempDir,
    sshd: Option<Sshd>,
    addresses: Vec<LocalAddress>,
}

/// The user `ada` may read Instances, the user `bob` may not.
fn users(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: ServiceAccount
metadata: {{name: ada, namespace: tenant-{name}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: bob, namespace: tenant-{name}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: read-instances, namespace: tenant-{name}}}
rules: [{{apiGroups: [crownlabs.polito.it], resources: [instances], verbs: [get]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: read-instances, namespace: tenant-{name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: read-instances}}
subjects: [{{kind: ServiceAccount, name: ada, namespace: tenant-{name}}}]
"
    )
}

impl Site {
    /// Starts all. `keys` are more keys of `controllers.webSsh`.
    fn start(name: &'static str, keys: &str) -> Self {
        Self::start_with(name, keys, SHELL)
    }

    /// The same with another command in place of the shell.
    fn start_with(name: &'static str, keys: &str, command: &str) -> Self {
        let mut site = Self::without_machine(name, keys);
        let address = site.await_machine("vm");
        site.addresses.push(LocalAddress::add(address.ip()).expect("the address"));
        site.sshd = Some(Sshd::start(site.folder.path(), address, command).expect("sshd"));
        site
    }

    /// The daemon and the Instance, at whose address nobody listens.
    fn without_machine(name: &'static str, keys: &str) -> Self {
        let lab = Lab::shared();
        let folder = TempDir::new().expect("a folder");
        let key = key_pair(&folder.path().join("key")).expect("a key");
        let (port, ssh_port) = (free_port(), free_port());
        let config = format!(
            "controllers: {{webSsh: {{enabled: true, listen: \"127.0.0.1:{port}\", user: root, \
             port: {ssh_port}, privateKeyFile: {}, {keys}}}}}",
            key.display()
        );
        // The administrator's configuration has a client certificate, by which no user may get more rights.
        let daemon = Daemon::start(&Options { kubeconfig: &lab.admin(), selector: name, config: &config });
        lab.create_fixtures(name);
        lab.apply(&users(name));
        lab.apply(&instance(name, "vm", "vm"));
        Self { lab, name, daemon, port, ssh_port, folder, sshd: None, addresses: Vec::new() }
    }

    fn namespace(&self) -> String {
        format!("tenant-{}", self.name)
    }

    /// Waits until an Instance is ready; returns where its machine is expected to serve SSH.
    fn await_machine(&self, instance: &str) -> SocketAddr {
        self.lab.await_phase(&self.namespace(), instance, "Ready");
        let service = self.lab.get("services", &self.namespace(), instance).expect("its Service");
        let address: IpAddr =
            service["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an IP");
        SocketAddr::new(address, self.ssh_port)
    }

    /// A token of `ada` or `bob`.
    fn token(&self, user: &str) -> String {
        self.lab.cluster.token(&self.namespace(), user).expect("a token")
    }

    /// The first message of `ada` for `vm`.
    fn request(&self) -> Value {
        request(&self.token("ada"), &self.namespace(), "vm")
    }

    /// Opens a terminal of `vm` as `ada`, and waits until its shell answers.
    fn open(&self) -> Browser {
        let mut browser = Browser::open(self.port, &self.request());
        browser.until(OPEN);
        browser.enter("stty -echo; echo rea''dy\n");
        browser.until("ready\r\n");
        browser
    }

    /// What the daemon answers to a first message, and the code by which it closes.
    fn answer(&self, request: &Value) -> (String, u16) {
        Browser::open(self.port, request).end()
    }

    /// The value of a metric; `None` if there is none. `series` is the name with the labels, as it is written.
    fn metric(&self, series: &str) -> Option<f64> {
        let metrics = self.daemon.metrics();
        let mut lines = metrics.lines();
        lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// The memory of the daemon without that of its code, in MiB: that of a debug build is large.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.daemon.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a figure");
        let kibibytes: f64 = line.trim_end_matches("kB").trim().parse().expect("a number");
        kibibytes / 1_024.0
    }

    /// Waits until so many terminals are open.
    fn await_sessions(&self, wanted: f64) {
        wait_until(PATIENCE, || match self.metric("bastion_web_ssh_sessions") {
            Some(open) if (open - wanted).abs() < 0.5 => Ok(()),
            open => Err(format!("{wanted} open terminals instead of {open:?}")),
        });
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.daemon.stop();
        self.lab.delete_fixtures(self.name);
    }
}
