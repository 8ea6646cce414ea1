//! A node: a network namespace with other devices, pods (network namespaces with one process each), and the daemon.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::pools::{config_map, report_name};
use super::runtime::Runtime;
use crate::daemon::{self, Daemon};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::pod_config::nodes::SYSTEM;
use cluster::config::only;
use cluster::network::Namespace;

/// A pod: a network namespace, and a process in it.
pub struct Pod {
    /// Its namespace.
    pub namespace: Namespace,
    child: Child,
}

impl Pod {
    /// A pod.
    pub fn new() -> Self {
        let namespace = Namespace::new();
        let child = process_in(&namespace);
        Self { namespace, child }
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends its process and starts another one, like a restarted container.
    pub fn restart(&mut self) {
        let next = process_in(&self.namespace);
        end(&mut self.child);
        self.child = next;
    }

    /// The links of the pod that are not its own.
    pub fn links(&self) -> Vec<String> {
        names(&self.namespace).into_iter().filter(|name| name != "lo").collect()
    }

    /// The addresses of a link, with their prefix lengths, without link-local ones.
    pub fn addresses(&self, link: &str) -> Vec<String> {
        addresses(&self.namespace, link)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn process_in(namespace: &Namespace) -> Child {
    let net = format!("--net={}", namespace.path().display());
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "nsenter", &net, "sleep", "infinity"])
        .spawn()
        .expect("a process");
    // The process is in the namespace once it is the last of the three programs.
    let name = format!("/proc/{}/comm", child.id());
    wait_until(PATIENCE, || match std::fs::read_to_string(&name) {
        Ok(name) if name.trim() == "sleep" => Ok(()),
        other => Err(format!("sleep, is {other:?}")),
    });
    child
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn read(namespace: &Namespace, arguments: &str) -> Vec<Value> {
    let text = namespace.ip(&format!("-d -j {arguments}"));
    if text.trim().is_empty() { Vec::new() } else { serde_json::from_str(&text).expect("JSON") }
}

fn names(namespace: &Namespace) -> Vec<String> {
    read(namespace, "link show").iter().map(|link| text(&link["ifname"])).collect()
}

fn addresses(namespace: &Namespace, link: &str) -> Vec<String> {
    // The addresses of all links: this link may disappear at any time, and `ip` fails for a missing link.
    let found = read(namespace, "addr show");
    let found = found.iter().filter(|found| found["ifname"] == link);
    let all = found.flat_map(|link| link["addr_info"].as_array().cloned().unwrap_or_default());
    all.filter(|info| info["scope"] != "link")
        .map(|info| format!("{}/{}", text(&info["local"]), info["prefixlen"]))
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A node.
pub struct Node {
    /// The control plane.
    pub lab: Arc<Lab>,
    /// Its name.
    pub name: String,
    /// The daemon's namespace in the cluster.
    home: String,
    /// Its network namespace.
    pub namespace: Namespace,
    /// Its container runtime.
    pub runtime: Runtime,
    /// The cable to another machine.
    _outside: Namespace,
    _dir: TempDir,
    before: BTreeMap<String, Value>,
}

impl Node {
    /// A node with other devices, addresses and routes. Its namespace in the cluster is new.
    pub fn new(name: &str) -> Self {
        let lab = Lab::shared_unsimulated();
        lab.apply(&format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"
        ));
        Self::of(lab, name, name)
    }

    /// Another node of the same cluster.
    pub fn beside(other: &Self, name: &str) -> Self {
        other.lab.apply(&format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"));
        Self::of(Arc::clone(&other.lab), name, &other.home)
    }

    /// A node of a cluster with a leader, whose records are in the namespace of the manifests.
    pub fn of_leader(lab: &Arc<Lab>, name: &str) -> Self {
        lab.apply(&format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"));
        Self::of(Arc::clone(lab), name, SYSTEM)
    }

    fn of(lab: Arc<Lab>, name: &str, home: &str) -> Self {
        let (namespace, outside) = (Namespace::new(), Namespace::new());
        namespace.connect("uplink0", &outside);
        for command in [
            "addr add 192.0.2.1/24 dev uplink0",
            "link add docker0 type bridge",
            "addr add 172.17.0.1/16 dev docker0",
            "link set docker0 up",
            "link add hdata type veth peer name plain",
            "link set plain master docker0",
            "link set plain alias somebody",
            "route add 198.51.100.0/24 via 192.0.2.7",
            "route add default via 192.0.2.9",
        ] {
            namespace.ip(command);
        }
        let dir = TempDir::new().expect("a folder");
        let runtime = Runtime::start(&dir.path().join("cri.sock"));
        let mut node = Self {
            lab,
            name: name.to_owned(),
            home: home.to_owned(),
            namespace,
            runtime,
            _outside: outside,
            _dir: dir,
            before: BTreeMap::new(),
        };
        node.look_again();
        node
    }

    /// From now on, everything that does not belong to the daemon must stay as it is.
    pub fn look_again(&mut self) {
        self.before = self.foreign();
    }

    /// The configuration of the daemon, with these lines in the configuration of the loop.
    pub fn config(&self, more: &str) -> String {
        let path = self.namespace.path().display().to_string();
        self.config_with(&format!(
            "nodeNamespace: {path}, runtimeEndpoint: {socket}, {more}",
            socket = self.runtime.socket().display(),
        ))
    }

    /// The same, without the network namespace and the runtime of the test.
    pub fn config_with(&self, more: &str) -> String {
        let Self { home, name, .. } = self;
        let loops = only(&[("podConfigNode", &format!("nodeName: {name}, {more}"))]);
        format!("leaderElection: {{enabled: false, namespace: {home}}}\n{loops}")
    }

    /// Starts the daemon through the command `through`.
    pub fn spawn_through(&self, through: &[&str], more: &str) -> Daemon {
        let kubeconfig = self.lab.admin();
        let config = self.config(more);
        let options = daemon::Options { kubeconfig: &kubeconfig, selector: &self.name, config: &config };
        Daemon::spawn_through(through, &options)
    }

    /// Starts the daemon, and waits until it is ready.
    pub fn daemon(&self, more: &str) -> Daemon {
        let daemon = self.spawn_through(&[], more);
        daemon.await_ready();
        daemon
    }

    /// A pod with this uid that the runtime knows.
    pub fn pod(&self, uid: &str) -> Pod {
        let pod = Pod::new();
        self.runtime.set_container(uid, Some(pod.process()));
        pod
    }

    /// Writes a pool, with the allocations of each pod.
    pub fn write(&self, pool: &Value, pods: &[(&str, Value)]) {
        self.lab.apply(&config_map(&self.home, pool, pods).to_string());
    }

    /// Deletes a pool.
    pub fn delete(&self, pool: &Value) {
        let object = config_map(&self.home, pool, &[]);
        self.lab.delete("configmaps", &self.home, &[object["metadata"]["name"].as_str().expect("a name")]);
    }

    /// The report.
    pub fn report(&self) -> Option<Value> {
        self.lab.get("configmaps", &self.home, &report_name(&self.name))
    }

    /// The entries of the report about a pod.
    pub fn entries(&self, uid: &str) -> Vec<Value> {
        let report = self.report().unwrap_or_default();
        let text = report["data"][uid].as_str();
        text.map(|text| serde_json::from_str(text).expect("JSON")).unwrap_or_default()
    }

    /// Waits until the report has this state for the pod's attachments; returns the entries.
    pub fn await_state(&self, uid: &str, state: &str, count: usize) -> Vec<Value> {
        wait_until(PATIENCE, || {
            let entries = self.entries(uid);
            let is_it = entries.len() == count && entries.iter().all(|entry| entry["state"] == state);
            if is_it { Ok(entries) } else { Err(format!("{count} {state}, are {entries:?}")) }
        })
    }

    /// Waits until the report has this reason for the only attachment of the pod; returns the message.
    pub fn await_problem(&self, uid: &str, reason: &str) -> String {
        wait_until(PATIENCE, || {
            let entries = self.entries(uid);
            let found = entries.iter().find(|entry| entry["problem"]["reason"] == reason);
            found.map(|entry| text(&entry["problem"]["message"])).ok_or(format!("{reason}, is {entries:?}"))
        })
    }

    /// The names of the links of the node.
    pub fn links(&self) -> Vec<String> {
        names(&self.namespace)
    }

    /// The addresses of a link of the node.
    pub fn addresses(&self, link: &str) -> Vec<String> {
        addresses(&self.namespace, link)
    }

    /// A link of the node as `ip` shows it; null if it does not exist.
    pub fn link(&self, name: &str) -> Value {
        let mut links = read(&self.namespace, "link show").into_iter();
        links.find(|link| link["ifname"] == name).unwrap_or_default()
    }

    /// The names of the daemon's links.
    pub fn own(&self) -> Vec<String> {
        let links = read(&self.namespace, "link show");
        let is_own = |link: &&Value| text(&link["ifalias"]).starts_with("crownlabs-");
        links.iter().filter(is_own).map(|link| text(&link["ifname"])).collect()
    }

    /// All links, addresses and routes that do not belong to the daemon, without the fields that the kernel changes.
    fn foreign(&self) -> BTreeMap<String, Value> {
        let own = self.own();
        let is_foreign = |name: &str| !own.iter().any(|own| own == name);
        let mut found = BTreeMap::new();
        for link in read(&self.namespace, "addr show") {
            let name = text(&link["ifname"]);
            if !is_foreign(&name) {
                continue;
            }
            let members = ["ifindex", "mtu", "address", "master", "ifalias", "link"];
            let mut kept: BTreeMap<&str, Value> =
                members.into_iter().map(|member| (member, link[member].clone())).collect();
            let is_up = link["flags"].as_array().is_some_and(|flags| flags.contains(&"UP".into()));
            kept.insert("up", is_up.into());
            kept.insert("addresses", addresses(&self.namespace, &name).into());
            found.insert(name, json!(kept));
        }
        for family in ["-4", "-6"] {
            for route in read(&self.namespace, &format!("{family} route show table all")) {
                let (to, device) = (text(&route["dst"]), text(&route["dev"]));
                if is_foreign(&device) && !to.starts_with("fe80") && !to.starts_with("ff00") {
                    let members = ["type", "gateway", "prefsrc", "table", "metric", "protocol"];
                    let kept: BTreeMap<&str, Value> =
                        members.into_iter().map(|member| (member, route[member].clone())).collect();
                    found.insert(format!("{family} {to} {device} {}", text(&route["type"])), json!(kept));
                }
            }
        }
        found
    }

    /// Asserts that nothing else on the node has changed.
    pub fn assert_others_untouched(&self) {
        let now = self.foreign();
        let differs = |key: &&String| now.get(*key) != self.before.get(*key);
        let changed: Vec<_> = now.keys().chain(self.before.keys()).filter(differs).collect();
        let of = |map: &BTreeMap<String, Value>| {
            changed.iter().map(|key| format!("{key}: {:?}", map.get(*key))).collect::<Vec<_>>().join("\n")
        };
        assert!(changed.is_empty(), "before:\n{}\nnow:\n{}", of(&self.before), of(&now));
    }

    /// Waits until everything of the daemon is gone.
    pub fn await_nothing(&self) {
        wait_until(PATIENCE, || match self.own() {
            own if own.is_empty() => Ok(()),
            own => Err(format!("nothing, is {own:?}")),
        });
        self.assert_others_untouched();
    }

    /// Waits until a link of the node is gone.
    pub fn await_gone(&self, name: &str) {
        wait_until(PATIENCE, || {
            let links = self.links();
            if links.iter().any(|link| link == name) {
                Err(format!("no {name}, are {links:?}"))
            } else {
                Ok(())
            }
        });
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.lab.try_kubectl(&["delete", "node", &self.name, "--wait=false"], "");
            if self.home != SYSTEM {
                let _ = self.lab.try_kubectl(&["delete", "namespace", &self.home, "--wait=false"], "");
            }
        }
    }
}

/// Asserts that a packet to an address in `server` returns to `client`.
pub fn assert_echo(client: &Namespace, server: &Namespace, address: &str) {
    let address: std::net::IpAddr = address.parse().expect("an address");
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = server.run(|| UdpSocket::bind(SocketAddr::new(address, 0)).expect("the address is there"));
    let target = socket.local_addr().expect("bound");
    let echo = std::thread::spawn(move || {
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        let mut bytes = [0; 16];
        if let Ok((length, from)) = socket.recv_from(&mut bytes) {
            socket.send_to(&bytes[..length], from).expect("sent");
        }
    });
    client.run(|| {
        let socket = UdpSocket::bind(any).expect("bound");
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
        wait_until(PATIENCE, || {
            socket.send_to(b"hello", target).map_err(|error| error.to_string())?;
            let mut bytes = [0; 16];
            socket.recv_from(&mut bytes).map_err(|error| format!("an echo from {target}: {error}"))
        });
    });
    echo.join().expect("the echo ends");
}
