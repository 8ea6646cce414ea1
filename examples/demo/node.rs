//! A node whose pods run, for `PODCONFIG=1` and `METRICS=1`: a containerd in its own network namespace. kwok keeps the
//! objects in the API server in step.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::program::program;
use cluster::Cluster;
use cluster::config::only;
use cluster::containerd::{Containerd, Pod};
use cluster::network::Namespace;
use cluster::processes::Process;

/// The address of the metrics of the node's daemon.
pub const METRICS: &str = "127.0.0.1:18082";
/// The address of its health endpoint.
const HEALTH: &str = "127.0.0.1:18083";

/// The node.
pub struct Node {
    /// The network of the node.
    pub network: Namespace,
    /// The container runtime of the node.
    pub containerd: Containerd,
    /// Runs the calls to the container runtime.
    pub runtime: Runtime,
    folder: PathBuf,
}

/// A running pod.
pub struct Running {
    /// The name of the pod.
    pub name: String,
    /// The sandbox of the pod.
    pub sandbox: String,
    /// The ids of its containers, in the order of their start.
    pub containers: Vec<String>,
}

impl Node {
    /// Starts containerd.
    pub fn start(folder: &Path) -> Result<Self> {
        println!("starting containerd …");
        let network = Namespace::new();
        let containerd = Containerd::start(&network, 1)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { network, containerd, runtime, folder: folder.to_owned() })
    }

    /// Runs a pod of the API server, as the kubelet would: its sandbox gets these containers. Each is a name with the
    /// arguments of the program in `tests/cluster/containerd/lab.c`, which stands in for their images.
    pub fn run_pod(&self, object: &Value, containers: &[(&str, &[&str])]) -> Result<Running> {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
        let mut pod = Pod::new(text("namespace"), text("name")).with_uid(text("uid"));
        for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
            pod = pod.with_label(key, value.as_str().unwrap_or_default());
        }
        let started = async {
            let sandbox = self.containerd.run_pod(&pod).await?;
            let mut ids = Vec::new();
            for (name, arguments) in containers {
                ids.push(self.containerd.run_container(&pod, &sandbox, name, arguments).await?);
            }
            anyhow::Ok((sandbox, ids))
        };
        let (sandbox, containers) = self.runtime.block_on(started).with_context(|| pod.name.clone())?;
        println!("{} runs", pod.name);
        Ok(Running { name: pod.name, sandbox, containers })
    }

    /// Ends the containers of a pod, and its sandbox.
    pub fn stop_pod(&self, pod: &Running) -> Result<()> {
        self.runtime.block_on(self.containerd.stop_pod(&pod.sandbox)).with_context(|| pod.name.clone())
    }

    /// Starts the daemon of the node with one loop, as a pod with `hostPID` would run it: among the processes of the
    /// node, where the first process has the network of the node. The loop is given by its name and keys; without
    /// `cluster`, it calls no API server.
    pub fn daemon(&self, name: &str, keys: &str, cluster: Option<&Cluster>) -> Result<Process> {
        let socket = self.containerd.socket();
        let keys = format!("runtimeEndpoint: \"unix://{}\", {keys}", socket.display());
        let config = format!(
            "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\nserver: {{metrics: \
             \"{METRICS}\", health: \"{HEALTH}\"}}\nleaderElection: {{enabled: false}}\n{}",
            only(&[(name, &keys)])
        );
        let file = self.folder.join(format!("{name}.yaml"));
        fs::write(&file, config)?;
        let first = self.containerd.id().context("containerd runs")?.to_string();
        let mut arguments: Vec<String> =
            ["--target", &first, "--pid", "--mount", "--", "setpriv", "--pdeathsig", "KILL", "--"]
                .map(str::to_owned)
                .into();
        arguments.push(program()?.display().to_string());
        arguments.extend(["run".to_owned(), "--config".to_owned(), file.display().to_string()]);
        if let Some(cluster) = cluster {
            let kubeconfig = cluster.admin_kubeconfig().display().to_string();
            arguments.extend(["--kubeconfig".to_owned(), kubeconfig]);
        }
        let log = self.folder.join(format!("{name}.log"));
        Process::start("the daemon of the node", Path::new("nsenter"), &arguments, log)
    }
}
