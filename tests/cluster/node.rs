//! A node that runs pods: the kubelet on a real [`Containerd`], and a scheduler. It has no kube-proxy: pods reach only
//! one Service, the API server's, and the API server reaches pods at their own addresses.
//!
//! The node uses the network of the thread that starts it. That thread must have entered a namespace
//! ([`Namespace::enter`]) before it started the cluster.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::certificates::SERVICE;
use super::containerd::Containerd;
use super::network::{Namespace, forward};
use super::processes::Process;
use super::{Cluster, assets};

/// The address of the node, as in the first cluster that `kind` creates.
const ADDRESS: &str = "172.18.0.2";

/// A running node. It ends, with all pods, when it is dropped.
pub struct Node {
    // Dropped in this order: containerd ends the kubelet, too, which is in its process namespace.
    _scheduler: Process,
    kubelet: Process,
    containerd: Containerd,
}

impl Node {
    /// Starts a node of a cluster whose `Options::node` is set. All images are pulled from the registry at this URL, whatever the
    /// host in their names.
    pub fn start(cluster: &Cluster, namespace: &Namespace, registry: &str) -> Result<Self> {
        for arguments in [
            "link add node0 type bridge".to_owned(),
            format!("addr add {ADDRESS}/16 dev node0"),
            "link set node0 up".to_owned(),
            // The kubelet requires a default route.
            "route add default dev node0".to_owned(),
            format!("addr add {SERVICE}/32 dev lo"),
        ] {
            namespace.ip(&arguments);
        }
        let port = cluster.server().rsplit(':').next().unwrap_or_default().parse().context("the port")?;
        // Connections to the Service `kubernetes`.
        forward(TcpListener::bind((SERVICE, 443))?, port);
        let containerd = Containerd::start(namespace, 0)?;
        containerd.mirror(registry)?;
        let kubelet = start_kubelet(cluster, &containerd)?;
        Ok(Self { _scheduler: cluster.programs.kube_scheduler()?, kubelet, containerd })
    }

    /// Fails with the end of its log if the kubelet has ended.
    pub fn check(&mut self) -> Result<()> {
        self.kubelet.check()
    }

    /// The logs of all containers.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        read_all(&logs(&self.containerd), &mut text);
        text
    }
}

fn start_kubelet(cluster: &Cluster, containerd: &Containerd) -> Result<Process> {
    let dir = containerd.dir();
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": containerd.make_cgroup()?,
        "failCgroupV1": false,
        "failSwapOn": false,
        "containerRuntimeEndpoint": format!("unix://{}", containerd.socket().display()),
        // A nearly full disk on this machine does not affect the test.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": logs(containerd),
        "volumePluginDir": dir.join("kubelet-plugins"),
        "resolvConf": "",
    });
    fs::write(dir.join("kubelet.json"), config.to_string())?;
    let kubeconfig = cluster.programs.kubeconfig("system:node:node", Some("system:masters"))?;
    let mut arguments = containerd.entering();
    arguments.push(assets::kubelet()?.display().to_string());
    arguments.extend([
        format!("--config={}", dir.join("kubelet.json").display()),
        format!("--kubeconfig={}", kubeconfig.display()),
        "--hostname-override=node".to_owned(),
        format!("--node-ip={ADDRESS}"),
        format!("--root-dir={}", dir.join("kubelet").display()),
        format!("--cert-dir={}", dir.join("kubelet-certificates").display()),
    ]);
    Process::start("kubelet", Path::new("nsenter"), &arguments, cluster.dir().join("kubelet.log"))
}

fn logs(containerd: &Containerd) -> PathBuf {
    containerd.dir().join("pods")
}

/// Adds the files below a folder to a text, each after its path.
fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_all(&path, text);
        } else {
            let log = fs::read_to_string(&path).unwrap_or_default();
            let _ = writeln!(text, "{}:\n{log}", path.display());
        }
    }
}
