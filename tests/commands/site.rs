//! A control plane that runs the daemon as it is installed.

use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
pub use cluster::helm::helm;
use cluster::{Cluster, Options};

/// The namespace of the release, and its name.
pub const NAMESPACE: &str = "crownlabs-system";
/// The name of the release and of its Deployment.
pub const RELEASE: &str = "crownlabs";
/// The name and the namespace of the bastion.
pub const BASTION: &str = "crownlabs-bastion";

/// The namespace of the Go operators, and the name of the Deployment that answers their webhooks.
pub const OPERATORS: (&str, &str) = ("labs", "operator");

/// The number of control planes that run at once: each takes about 700 MB of memory.
const AT_ONCE: usize = 3;
static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// The right to run a control plane.
struct Permit;

impl Permit {
    fn get() -> Self {
        let (running, ended) = &RUNNING;
        let mut running = running.lock();
        ended.wait_while(&mut running, |running| *running >= AT_ONCE);
        *running += 1;
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *RUNNING.0.lock() -= 1;
        RUNNING.1.notify_one();
    }
}

/// A control plane, and the processes that its node would run.
pub struct Site {
    // Dropped in this order.
    node: Node,
    /// The control plane.
    pub lab: Arc<Lab>,
    _permit: Permit,
}

impl Site {
    /// Starts a control plane with these CRDs.
    pub fn start(crds: Vec<PathBuf>, simulate: bool) -> Self {
        Self::with(Options { crds, simulate, ..Options::default() }, None)
    }

    /// The same, without simulated nodes. Its API server calls webhooks at the endpoints of their Services, and the
    /// webhooks of the Go operators are answered, too.
    pub fn with_endpoints(crds: Vec<PathBuf>) -> Self {
        Self::with(Options { crds, simulate: false, node: true, ..Options::default() }, Some(own_address()))
    }

    fn with(options: Options, endpoint: Option<IpAddr>) -> Self {
        let permit = Permit::get();
        // A quota that was created before Kubernetes counts Instances is checked again soon.
        let options = Options { quota_period: Duration::from_secs(5), ..options };
        let cluster = Cluster::start(options).unwrap_or_else(|error| panic!("the control plane: {error:#}"));
        let lab = Arc::new(Lab { cluster });
        Self { node: Node::start(&lab, endpoint), lab, _permit: permit }
    }

    /// Waits until the daemon that is installed is ready.
    pub fn await_daemon(&self) {
        wait_until(PATIENCE, || self.node.is_ready());
    }

    /// Runs a program as the administrator. Returns its output, or what it wrote to standard error.
    pub fn run(&self, program: &Path, arguments: &[&str]) -> Result<String, String> {
        let helm = self.lab.cluster.dir().join("helm");
        let output = Command::new(program)
            .args(arguments)
            .current_dir(crate::documents::project())
            .env("KUBECONFIG", self.lab.admin())
            .envs(["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"].map(|name| (name, &helm)))
            .output()
            .expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

/// An address of this machine that the API accepts as an endpoint: loopback addresses are not accepted.
fn own_address() -> IpAddr {
    // Nothing is sent: connecting a UDP socket only chooses the address.
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.connect("192.0.2.1:9").expect("a route, which gives this machine an address beside loopback");
    socket.local_addr().expect("an address").ip()
}

/// The binary under test, under another name: a block with `cargo` replaces the original file.
pub fn crownlabs() -> &'static Path {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("commands");
        std::fs::create_dir_all(&folder).expect("a folder");
        let link = folder.join("crownlabs");
        // The link exists if the test ran before.
        let _ = std::fs::remove_file(&link);
        std::fs::hard_link(env!("CARGO_BIN_EXE_crownlabs"), &link).expect("a link");
        link
    });
    &BINARY
}

/// The role of the node: while a Deployment of the daemon exists, its binary runs with the configuration and the
/// account of the pods, and answers the webhooks. It differs from a pod: it is one process, on ports that are free on
/// this machine, with files in a separate folder, and the API server calls it at its address, because Services are not
/// routed here.
struct Node {
    end: Arc<AtomicBool>,
    /// Whether the logs of the daemons are printed at the end.
    has_failed: Arc<AtomicBool>,
    /// The reason why the daemon of the release is not ready.
    missing: Arc<Mutex<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    /// With an `endpoint`, the Services of the webhooks have that address of this machine as their endpoint.
    fn start(lab: &Arc<Lab>, endpoint: Option<IpAddr>) -> Self {
        let (end, missing) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new("a look".to_owned())));
        let has_failed = Arc::new(AtomicBool::new(false));
        let (ended, told, lab) = (Arc::clone(&end), Arc::clone(&missing), Arc::clone(lab));
        let failed = Arc::clone(&has_failed);
        let thread = thread::spawn(move || {
            let webhooks = reserved_port();
            let mut daemons: Vec<Running> = [(NAMESPACE, RELEASE), (BASTION, BASTION)]
                .map(|place| Running::new(place, webhooks, endpoint))
                .into();
            if endpoint.is_some() {
                daemons.push(Running::new(OPERATORS, reserved_port(), endpoint));
            }
            while !ended.load(Ordering::SeqCst) {
                crate::hook::run(&lab);
                for daemon in &mut daemons {
                    daemon.follow(&lab);
                }
                let state = if endpoint.is_some() || call_directly(&lab, webhooks) {
                    daemons[0].missing()
                } else {
                    "the webhooks".to_owned()
                };
                *told.lock() = state;
                thread::sleep(Duration::from_millis(200));
            }
            for daemon in daemons.iter().filter(|_| failed.load(Ordering::SeqCst)) {
                let Some(running) = &daemon.daemon else { continue };
                let log = running.log();
                eprintln!("the log of {}:\n{}", daemon.name, crate::daemon::tail(&log));
            }
        });
        Self { end, has_failed, missing, thread: Some(thread) }
    }

    fn is_ready(&self) -> Result<(), String> {
        let missing = self.missing.lock().clone();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.has_failed.store(thread::panicking(), Ordering::SeqCst);
        self.end.store(true, Ordering::SeqCst);
        let ended = self.thread.take().expect("a thread").join();
        if !thread::panicking() {
            ended.expect("no panic");
        }
    }
}

/// The daemon of a Deployment.
struct Running {
    namespace: &'static str,
    name: &'static str,
    /// The port of the webhooks.
    webhooks: u16,
    /// The address of their Service's endpoint; `None` if the API server calls them directly.
    endpoint: Option<IpAddr>,
    /// The pod template, the configuration and the Deployment of the process.
    source: Value,
    daemon: Option<Daemon>,
    /// The files of the daemon.
    folder: TempDir,
}

impl Running {
    fn new((namespace, name): (&'static str, &'static str), webhooks: u16, endpoint: Option<IpAddr>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { namespace, name, webhooks, endpoint, source: Value::Null, daemon: None, folder }
    }

    /// The current Deployment in the API server; null if it does not exist, or if its configuration or
    /// account is missing.
    fn wanted(&self, lab: &Lab) -> Option<Value> {
        let get = |kind: &str| lab.cluster.get(kind, self.namespace, self.name).ok();
        let (deployment, config) = (get("deployments")?, get("configmaps")?);
        let (Some(deployment), Some(config)) = (deployment, config) else { return Some(Value::Null) };
        if deployment["spec"]["replicas"] == 0 || !deployment["metadata"]["deletionTimestamp"].is_null() {
            return Some(Value::Null);
        }
        Some(json!([
            deployment["metadata"]["uid"],
            deployment["spec"]["template"],
            config["data"]["crownlabs.yaml"]
        ]))
    }

    /// Starts, ends or restarts the daemon.
    fn follow(&mut self, lab: &Lab) {
        // The API server may be down.
        let Some(wanted) = self.wanted(lab) else { return };
        let has_ended = |daemon: &mut Daemon| daemon.wait(Duration::ZERO).is_some();
        if wanted == self.source && !self.daemon.as_mut().is_some_and(has_ended) {
            return;
        }
        if let Some(mut daemon) = self.daemon.take() {
            if !has_ended(&mut daemon) {
                daemon.signal("TERM");
            }
            assert!(daemon.wait(Duration::from_mins(1)).is_some(), "it ends in time:\n{}", daemon.log());
        }
        self.source = Value::Null;
        if wanted.is_null() {
            return;
        }
        let account = wanted[1]["spec"]["serviceAccountName"].as_str().unwrap_or("default");
        // An earlier token is not valid for an account that was recreated.
        let Ok(token) = lab.cluster.token(self.namespace, account) else { return };
        let kubeconfig = self.folder.path().join("kubeconfig");
        lab.cluster.write_kubeconfig(&kubeconfig, &token).expect("a kubeconfig");
        let config = self.config(wanted[2].as_str().unwrap_or_default());
        self.publish(lab, &config);
        let binary = crownlabs().to_str().expect("a path");
        self.daemon = Some(Daemon::launch(&[binary], &config, &kubeconfig, "127.0.0.1".to_owned()));
        self.source = wanted;
    }

    /// The configuration, with the ports and the files of this process.
    fn config(&self, text: &str) -> String {
        let mut config: Value = serde_saphyr::from_str(text).expect("the configuration");
        let host = self.endpoint.map_or_else(|| "127.0.0.1".to_owned(), |address| address.to_string());
        let of_webhooks = format!("{host}:{}", self.webhooks);
        for (key, value) in [
            ("/log/format", "text"),
            ("/server/health", "127.0.0.1:0"),
            ("/server/metrics", "127.0.0.1:0"),
            ("/server/keycloakEvents/listen", ""),
            ("/server/webhook/listen", &of_webhooks),
        ] {
            set(&mut config, key, value);
        }
        if self.name == BASTION {
            let file = |name: &str| self.folder.path().join(name).display().to_string();
            set(&mut config, "/controllers/bastion/authorizedKeysFile", &file("auth-keys"));
            std::fs::create_dir_all(self.folder.path().join("host-keys")).expect("a folder");
            set(&mut config, "/controllers/bastion/hostKeys/folder", &file("host-keys"));
            set(&mut config, "/controllers/webSsh/privateKeyFile", &file("web-key"));
            set(&mut config, "/controllers/webSsh/listen", "127.0.0.1:0");
        }
        config.to_string()
    }

    /// Writes the endpoint of the Service of the webhooks.
    fn publish(&self, lab: &Lab, config: &str) {
        let Some(endpoint) = self.endpoint else { return };
        let config: Value = serde_json::from_str(config).expect("the configuration");
        let service = &config["server"]["webhook"]["serviceName"];
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "name": format!("{}-of-the-test", self.name), "namespace": self.namespace,
                "labels": {"kubernetes.io/service-name": service},
            },
            "endpoints": [{"addresses": [endpoint], "conditions": {"ready": true}}],
            "ports": [{"name": "webhook", "port": self.webhooks, "protocol": "TCP"}],
        });
        lab.apply(&slice.to_string());
    }

    /// The reason why it is not ready; empty if it is.
    fn missing(&self) -> String {
        let Some(daemon) = &self.daemon else { return "a Deployment of the daemon".to_owned() };
        match daemon.ready() {
            (200, _) => String::new(),
            (_, page) => format!("the daemon is not ready: {page}\n{}", crate::daemon::tail(&daemon.log())),
        }
    }
}

/// Sets a member of a configuration; missing parents are added.
fn set(config: &mut Value, key: &str, value: &str) {
    let keys: Vec<&str> = key.split('/').skip(1).collect();
    let mut place = config;
    for key in keys {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[key];
    }
    *place = value.into();
}

/// Makes the API server call the webhooks of the release at the daemon's own address. Returns whether it does. It does
/// not before the daemon has written its authority.
fn call_directly(lab: &Lab, port: u16) -> bool {
    let mut is_done = true;
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        for object in lab.cluster.list(kind, "").unwrap_or_default() {
            let mut webhooks = object["webhooks"].as_array().cloned().unwrap_or_default();
            let mut is_changed = false;
            for client in webhooks.iter_mut().map(|webhook| &mut webhook["clientConfig"]) {
                if client["service"]["namespace"] != NAMESPACE {
                    continue;
                }
                let has_authority = client["caBundle"].as_str().is_some_and(|bundle| !bundle.is_empty());
                is_done &= has_authority;
                if has_authority {
                    let path = client["service"]["path"].as_str().unwrap_or_default();
                    let url = format!("https://127.0.0.1:{port}{path}");
                    *client = json!({"caBundle": client["caBundle"], "url": url});
                    is_changed = true;
                }
            }
            if is_changed {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                // With the resource version that was read: the daemon may write the authority at the same time.
                let version = &object["metadata"]["resourceVersion"];
                let patch = json!({"metadata": {"resourceVersion": version}, "webhooks": webhooks});
                is_done &= lab.cluster.patch(kind, "", name, None, &patch.to_string()).is_ok();
            }
        }
    }
    is_done
}
