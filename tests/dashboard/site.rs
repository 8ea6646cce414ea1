//! The environment of the browser tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cluster::config::webhooks;
use cluster::front::{Front, Served, certificate};
use cluster::keycloak::KeycloakServer;
use cluster::{Options as ClusterOptions, TrustedIssuer};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bastion::{self, Bastion};
use crate::daemon::{Daemon, Options, config, reserved_port, tail};
use crate::desktops::Desktops;
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::logins::Logins;
use crate::realm;
use crate::screens::Screens;
use crate::terminals::Terminals;

/// The value of the selector label.
pub const SELECTOR: &str = "dashboard";
/// A key of sessions.
pub const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
/// The account of the dashboard.
const ACCOUNT: &str = "crownlabs-dashboard";
/// The account of a dashboard that impersonates its users.
const IMPERSONATES: &str = "crownlabs-dashboard-impersonates";
/// The additional rules of that account, from the chart.
const IMPERSONATION: &str = include_str!("../../manifests/chart/files/impersonation.yaml");
/// The courses, the Templates, and the users.
const FIXTURES: &str = include_str!("fixtures.yaml");

/// A control plane, a Keycloak, and the daemon.
pub struct Site {
    // Dropped in this order.
    fronts: Vec<Front>,
    replicas: Mutex<Vec<Daemon>>,
    /// An additional replica.
    other: Mutex<Option<Daemon>>,
    /// The logs of stopped replicas.
    ended: Mutex<String>,
    daemon: Mutex<Daemon>,
    pub bastion: Bastion,
    pub logins: Logins,
    pub terminals: Terminals,
    /// The desktops of machines.
    pub desktops: Desktops,
    pub screens: Screens,
    pub lab: Lab,
    pub keycloak: Mutex<KeycloakServer>,
    ports: Ports,
    folder: TempDir,
}

/// The ports, which are chosen before the servers start.
struct Ports {
    auth: u16,
    labs: u16,
    replicas: [u16; 2],
    webhook: u16,
    /// The ports of the additional replica, at the proxy and behind it.
    other: [u16; 2],
}

/// Reserves the ports.
fn reserved_ports() -> Ports {
    let [auth, labs, webhook] = [(); 3].map(|()| reserved_port());
    let [replicas, other] = [(); 2].map(|()| [(); 2].map(|()| reserved_port()));
    Ports { auth, labs, replicas, webhook, other }
}

impl Site {
    /// Starts everything.
    pub fn start() -> Self {
        let (folder, ports) = (TempDir::new().expect("a folder"), reserved_ports());
        let (authority, _) = certificate(folder.path());
        let keycloak = KeycloakServer::start().expect("Keycloak");
        realm::make(&keycloak, &[url(ports.labs), url(ports.other[0])]);
        let served = |port: u16, names, behind: &[u16], has_long_headers| Served {
            port,
            names,
            behind: behind.to_vec(),
            has_long_headers,
            more: String::new(),
        };
        let auth = served(ports.auth, "127.0.0.1", &[keycloak.port()], true);
        // The dashboard works with the default limits of NGINX.
        let labs = served(ports.labs, "labs.localhost", &ports.replicas, false);
        let [before, behind] = ports.other;
        let other = served(before, "labs.localhost", &[behind], false);
        let auth = Front::start(folder.path(), "auth", &[auth]);
        let issuers =
            vec![TrustedIssuer { url: issuer(&ports), authority, client: realm::CLIENT.to_owned() }];
        let lab = Lab::start(ClusterOptions { issuers, ..ClusterOptions::default() });
        lab.apply(include_str!("rights.yaml"));
        lab.apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {IMPERSONATES}}}\n{IMPERSONATION}"
        ));
        let daemon = Mutex::new(Self::daemon(&lab, &ports, folder.path(), "cluster"));
        let bastion = Bastion::start(&lab, SELECTOR);
        let terminals = Terminals::start(&lab, SELECTOR);
        let screens = Screens::start(&lab, &folder.path().join("machine"));
        let logins = Logins::start(&lab, folder.path(), &url(ports.labs));
        let site = Self {
            fronts: vec![auth],
            replicas: Mutex::default(),
            other: Mutex::default(),
            ended: Mutex::default(),
            daemon,
            bastion,
            logins,
            terminals,
            desktops: Desktops::default(),
            screens,
            lab,
            keycloak: Mutex::new(keycloak),
            ports,
            folder,
        };
        site.prepare();
        for number in 0..2 {
            let replica = site.replica(number, &site.account(ACCOUNT));
            site.replicas.lock().push(replica);
        }
        site.replicas.lock().iter().for_each(Daemon::await_ready);
        let hosts = site.logins.servers(&site.url(), site.ports.labs);
        let labs = Front::start_with(site.folder.path(), "labs", &[labs, other], &hosts);
        Self { fronts: site.fronts.into_iter().chain([labs]).collect(), ..site }
    }

    /// Starts the leader, with the webhooks. Prometheus does not run: stopped machines count as unused without it.
    fn daemon(lab: &Lab, ports: &Ports, folder: &Path, managers: &str) -> Daemon {
        let config = format!(
            "webhook: {{enabled: true, listen: \"127.0.0.1:{}\", bypassGroups: [\"system:masters\", \"kubernetes:labs:admin\"]}}\n\
             controllers: {{instance: {{websiteBaseUrl: machines.localhost, layout: perEnvironment, access: {{mode: none}}}}, \
             tenant: {{managers: {managers}, instancesClusterRole: crownlabs-own-instances}}, inactivity: {{enabled: true}}, \
             submission: {{enabled: true, maxAttempts: 1}}, \
             termination: {{enabled: true, statusCheckInterval: 5s, confirmAfter: 5s, allowCidrs: [127.0.0.0/8]}}}}\n\
             integrations: {{prometheus: {{url: \"http://127.0.0.1:9\"}}, \
             mail: {{transport: file, folder: \"{}/mails\", from: labs@example.org}}}}\n",
            ports.webhook,
            folder.display(),
        );
        let kubeconfig = lab.service_account();
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: SELECTOR, config: &config })
    }

    /// Installs the webhooks, creates the courses and the users, and waits until all of them are ready.
    fn prepare(&self) {
        let lab = &self.lab;
        lab.apply(&webhooks(SELECTOR, self.ports.webhook));
        wait_until(PATIENCE, || {
            let found =
                lab.get("validatingwebhookconfigurations", "", "crownlabs-webhook").unwrap_or_default();
            let is_there = found["webhooks"][0]["clientConfig"]["caBundle"].is_string();
            is_there.then_some(()).ok_or_else(|| "the authority of the webhooks".to_owned())
        });
        let mut documents: Vec<&str> = FIXTURES.split("\n---\n").collect();
        // The daemon creates the namespace of the course.
        lab.apply(documents.remove(0));
        lab.await_value("workspaces", "", "tea", "/status/namespace/name", "workspace-tea");
        wait_until(PATIENCE, || {
            lab.cluster.apply(&documents.join("\n---\n")).map_err(|error| format!("{error:#}"))
        });
        for name in ["ada", "bob", "eve", "joe", "kim", "leo", "max", "mia", "ned"] {
            let namespace = format!("tenant-{name}");
            lab.await_value("tenants", "", name, "/status/personalNamespace/name", &namespace);
            wait_until(PATIENCE, || {
                let binding = lab.get("rolebindings", &namespace, "crownlabs-manage-instances");
                binding.map(drop).ok_or_else(|| format!("the rights of {name}"))
            });
        }
    }

    /// Starts a replica of the dashboard.
    fn replica(&self, number: usize, kubeconfig: &Path) -> Daemon {
        // One replica logs at debug level, so that these lines are searched for secrets, too.
        let filter = ["info", "debug"][number];
        self.launch(self.ports.replicas[number], &self.url(), &Value::Null, filter, kubeconfig)
    }

    /// Starts a replica that listens on a port and has a public URL. `keys` replaces keys of its configuration.
    fn launch(&self, port: u16, url: &str, keys: &Value, filter: &str, kubeconfig: &Path) -> Daemon {
        let folder = self.folder.path();
        let (secret, key) = (folder.join("secret"), folder.join("key"));
        fs::write(&secret, realm::SECRET).expect("written");
        fs::write(&key, KEY).expect("written");
        let mut dashboard = json!({
            "enabled": true, "listen": format!("127.0.0.1:{port}"), "publicUrl": url, "issuerUrl": self.issuer(),
            "clientId": realm::CLIENT, "clientSecretFile": secret, "caFile": folder.join("front.crt"), "sessionKeyFile": key,
            "sshHost": bastion::HOST, "driveTemplate": "workspace-tea/desktop", "helpUrl": "https://help.example.org",
            "webSshUrl": self.terminals.url(), "peerDesktops": true,
        });
        for (name, value) in keys.as_object().into_iter().flatten() {
            dashboard[name] = value.clone();
        }
        let off = ["workspace", "tenant", "template", "publicExposure", "sharedVolume", "snapshot"];
        let off = off.map(|name| format!("{name}: {{enabled: false}}, ")).concat();
        let more = format!(
            "controllers: {{{off}instance: {{enabled: false, websiteBaseUrl: machines.localhost, layout: perEnvironment}}, \
             dashboard: {dashboard}}}\nlog: {{filter: {filter}}}\n"
        );
        let config = config(SELECTOR, &more);
        Daemon::launch(&[env!("CARGO_BIN_EXE_crownlabs")], &config, kubeconfig, "127.0.0.1".to_owned())
    }

    /// Starts the additional replica in place of the previous one, and returns its URL. `keys` replaces keys of its
    /// configuration.
    pub fn start_other(&self, keys: &Value) -> String {
        let [before, behind] = self.ports.other;
        let account = if keys["identity"] == "impersonate" { IMPERSONATES } else { ACCOUNT };
        let mut other = self.other.lock();
        if let Some(mut other) = other.take() {
            other.stop();
            self.ended.lock().push_str(&other.log());
        }
        let started = other.insert(self.launch(behind, &url(before), keys, "info", &self.account(account)));
        started.await_ready();
        url(before)
    }

    /// Starts the leader again, with this value of `controllers.tenant.managers`.
    pub fn set_managers(&self, managers: &str) {
        let mut daemon = self.daemon.lock();
        daemon.stop();
        self.ended.lock().push_str(&daemon.log());
        *daemon = Self::daemon(&self.lab, &self.ports, self.folder.path(), managers);
    }

    /// Returns the kubeconfig of an account of dashboards.
    fn account(&self, name: &str) -> PathBuf {
        self.lab.cluster.service_account_kubeconfig("crownlabs-system", name).expect("a token")
    }

    /// Kills a replica, and starts it again.
    pub fn restart(&self, number: usize) {
        let mut replicas = self.replicas.lock();
        replicas[number].stop();
        self.ended.lock().push_str(&replicas[number].log());
        replicas[number] = self.replica(number, &self.account(ACCOUNT));
    }

    /// Restarts the first replica, with this server in front of the API server.
    pub fn behind(&self, server: &str) -> Daemon {
        self.replicas.lock()[0].stop();
        let (namespace, account) = ("crownlabs-system", "crownlabs-dashboard");
        let kubeconfig = self.lab.cluster.kubeconfig_via(server, namespace, account).expect("a token");
        let replica = self.replica(0, &kubeconfig);
        replica.await_ready();
        replica
    }

    /// Sends a request about the realm to Keycloak, as its administrator.
    pub fn keycloak(&self, method: &str, path: &str, body: &Value) -> Result<String, String> {
        let method: Method = method.parse().expect("a method");
        let answer = self.keycloak.lock().admin(&method, &format!("/{}{path}", realm::REALM), body);
        answer.map(|answer| answer.to_string()).map_err(|error| format!("{error:#}"))
    }

    /// Returns the options of kubectl for a request with this token and no other credentials.
    pub fn by_token(&self, token: &str) -> Vec<String> {
        let (server, authority) = (self.lab.cluster.server(), self.lab.cluster.ca_file());
        let authority = format!("--certificate-authority={}", authority.display());
        let server = format!("--server={server}");
        vec!["--kubeconfig=/dev/null".to_owned(), server, authority, format!("--token={token}")]
    }

    /// Returns all mails that were sent.
    pub fn mails(&self) -> String {
        let files = fs::read_dir(self.folder.path().join("mails/new")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect::<Vec<_>>().join("\n")
    }

    /// Returns the metrics of all daemons of the project.
    pub fn metrics(&self) -> String {
        let replicas = self.replicas.lock();
        let daemon = self.daemon.lock();
        replicas.iter().chain([&*daemon]).map(Daemon::metrics).collect()
    }

    /// Sends a signal to the API server or Keycloak, such as STOP and CONT.
    pub fn pause(&self, what: &str, signal: &str) {
        let id = match what {
            "keycloak" => self.keycloak.lock().id(),
            // The process after etcd is the API server.
            _ => self.lab.cluster.process_ids()[1],
        };
        let status = Command::new("kill").args(["-s", signal, &id.to_string()]).status();
        assert!(status.expect("kill runs").success(), "kill -s {signal}");
    }

    /// The URL of the dashboard.
    pub fn url(&self) -> String {
        url(self.ports.labs)
    }

    /// The URL of the issuer.
    pub fn issuer(&self) -> String {
        issuer(&self.ports)
    }

    /// Returns the logs of all daemons of the project.
    pub fn logs(&self) -> String {
        let (replicas, other) = (self.replicas.lock(), self.other.lock());
        let ended = [self.ended.lock().clone(), self.bastion.log(), self.logins.log(), self.terminals.log()];
        let daemon = self.daemon.lock();
        let all = replicas.iter().chain(other.iter()).chain([&*daemon]).map(Daemon::log).chain(ended);
        all.collect::<Vec<_>>().join("\n")
    }

    /// Returns the last lines of the logs of the replicas.
    pub fn log(&self) -> String {
        let replicas = self.replicas.lock();
        replicas.iter().map(|replica| tail(&replica.log())).collect::<Vec<_>>().join("\n---\n")
    }
}

fn url(port: u16) -> String {
    format!("https://labs.localhost:{port}")
}

fn issuer(ports: &Ports) -> String {
    format!("https://127.0.0.1:{}/realms/{}", ports.auth, realm::REALM)
}
