//! Web SSH with the real daemon and API server, OpenSSH's server in place of the machines, and a WebSocket client.

mod impersonation;
mod limits;
mod peers;
mod rights;
mod terminal;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::browser::{Browser, request};
use cluster::sshd::{LocalAddress, OPEN, Sshd, key_pair};

/// A shell without prompt, profile and history.
const SHELL: &str = "exec env -i PATH=/usr/bin:/bin TERM=$TERM PS1= LC_ALL=C.UTF-8 sh";

/// A daemon that serves terminals, and the Instance `vm` of a Tenant, whose machine runs OpenSSH's server.
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

/// Users, and the roles that the daemon gives them: the Tenant with the name of the fixtures, which owns the namespace;
/// `<name>-manager`, who manages the Workspace of the Templates; and `<name>-other`, who manages another one. Managers
/// may read the Instances of all courses. The last two have no Tenant: `<name>-viewer` has the role that is aggregated
/// to `view`, and `<name>-admin` the role of administrators.
fn people(name: &str) -> String {
    let tenant = |who: &str, workspace: &str| {
        format!(
            "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: {name}-{who}, labels: {{crownlabs.polito.it/workspace-{name}: manager}}}}
spec: {{firstName: Max, lastName: Rossi, email: {who}@example.org, workspaces: [{{name: {workspace}, role: manager}}]}}
"
        )
    };
    let bound = |who: &str, role: &str, namespace: &str| {
        let metadata = match namespace {
            "" => format!("{{name: {name}-{who}-{role}}}"),
            namespace => format!("{{name: {name}-{who}-{role}, namespace: {namespace}}}"),
        };
        let kind = if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" };
        let who = if who.is_empty() { name.to_owned() } else { format!("{name}-{who}") };
        format!(
            "---
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata: {metadata}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {who}}}]
"
        )
    };
    let (tenants, workspace) = (format!("tenant-{name}"), format!("workspace-{name}"));
    [
        tenant("manager", name),
        tenant("other", &format!("{name}-other")),
        bound("", "crownlabs-manage-instances", &tenants),
        bound("manager", "crownlabs-manage-instances", ""),
        bound("manager", "crownlabs-manage-templates", &workspace),
        bound("other", "crownlabs-manage-instances", ""),
        bound("other", "crownlabs-view-templates", ""),
        bound("viewer", "crownlabs-view-instances", &tenants),
        bound("viewer", "crownlabs-view-templates", &workspace),
        bound("admin", "crownlabs-open-terminals", &tenants),
    ]
    .concat()
}

impl Site {
    /// Starts the site. `keys` are more keys of `controllers.webSsh`.
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

    /// The daemon and the Instance. Nothing listens at the address of the Instance.
    fn without_machine(name: &'static str, keys: &str) -> Self {
        let lab = Lab::shared();
        let folder = TempDir::new().expect("a folder");
        let key = key_pair(&folder.path().join("key")).expect("a key");
        let (port, ssh_port) = (reserved_port(), reserved_port());
        let config = format!(
            "leaderElection: {{enabled: false, namespace: workspace-{name}}}\n\
             controllers: {{webSsh: {{enabled: true, listen: \"127.0.0.1:{port}\", user: root, \
             port: {ssh_port}, privateKeyFile: {}, {keys}}}}}",
            key.display()
        );
        // The administrator's configuration has a client certificate, which must give no user more rights.
        let daemon = Daemon::start(&Options { kubeconfig: &lab.admin(), selector: name, config: &config });
        lab.create_fixtures(name);
        lab.apply(&people(name));
        lab.apply(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: crownlabs-peers, namespace: workspace-{name}}}}}"
        ));
        lab.write_tenant_status(name);
        lab.apply(&instance(name, "vm", "vm"));
        Self { lab, name, daemon, port, ssh_port, folder, sshd: None, addresses: Vec::new() }
    }

    fn namespace(&self) -> String {
        format!("tenant-{}", self.name)
    }

    /// Waits until an Instance is ready; returns the expected SSH address of its machine.
    fn await_machine(&self, instance: &str) -> SocketAddr {
        self.lab.await_phase(&self.namespace(), instance, "Ready");
        let service = self.lab.get("services", &self.namespace(), instance).expect("its Service");
        let address: IpAddr =
            service["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an IP");
        SocketAddr::new(address, self.ssh_port)
    }

    /// A token of one of the [`people`]; the empty name stands for the Tenant that owns the namespace.
    fn token(&self, who: &str) -> String {
        let name = if who.is_empty() { self.name.to_owned() } else { format!("{}-{who}", self.name) };
        self.lab.cluster.user_token(&name, &[], 3_600).expect("a token")
    }

    /// The first message for `vm` of one of the [`people`].
    fn request_of(&self, who: &str) -> Value {
        request(&self.token(who), &self.namespace(), "vm")
    }

    /// The first message of the Tenant.
    fn request(&self) -> Value {
        self.request_of("")
    }

    /// Opens a terminal of `vm` as the Tenant, and waits until its shell answers.
    fn open(&self) -> Browser {
        let mut browser = Browser::open(self.port, &self.request());
        browser.until(OPEN);
        browser.enter("stty -echo; echo rea''dy\n");
        browser.until("ready\r\n");
        browser
    }

    /// The daemon's response to a first message, and its close code.
    fn answer(&self, request: &Value) -> (String, u16) {
        Browser::open(self.port, request).end()
    }

    /// The value of a metric; `None` if it is missing. `series` is the name with the labels, as written.
    fn metric(&self, series: &str) -> Option<f64> {
        let metrics = self.daemon.metrics();
        let mut lines = metrics.lines();
        lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// The memory of the daemon without its code, in MiB: the code of a debug build is large.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.daemon.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a figure");
        let kibibytes: f64 = line.trim_end_matches("kB").trim().parse().expect("a number");
        kibibytes / 1_024.0
    }

    /// Waits until this many terminals are open.
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
