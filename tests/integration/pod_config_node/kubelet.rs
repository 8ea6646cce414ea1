//! Stands in for the scheduler and the kubelets: the pods of a namespace are bound to the nodes and run in their
//! containerd, and their status is updated.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::lab::Lab;
use cluster::containerd::{Containerd, Pod};

/// The running pods, by their uids: each with the number of its node and its sandbox.
type Sandboxes = BTreeMap<String, (usize, String)>;

/// The kubelets of all nodes, until this is dropped.
pub struct Kubelets {
    sandboxes: Arc<Mutex<Sandboxes>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The state of a kubelet.
struct Kubelet {
    lab: Arc<Lab>,
    namespace: &'static str,
    nodes: Vec<(String, Arc<Containerd>)>,
    runtime: Runtime,
}

impl Kubelets {
    /// Runs the pods of the namespace on these nodes.
    pub fn start(lab: &Arc<Lab>, namespace: &'static str, nodes: Vec<(String, Arc<Containerd>)>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let kubelet = Kubelet { lab: Arc::clone(lab), namespace, nodes, runtime };
        let (stop, stopped) = channel();
        let sandboxes: Arc<Mutex<Sandboxes>> = Arc::default();
        let own = Arc::clone(&sandboxes);
        let thread = std::thread::spawn(move || {
            // A real kubelet uses a watch.
            while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = kubelet.round(&mut own.lock()) {
                    eprintln!("the kubelet tries again: {error:#}");
                }
            }
        });
        Self { sandboxes, stop: Some(stop), thread: Some(thread) }
    }

    /// The running pods. As long as the value lives, no pod is started or stopped.
    pub fn paused(&self) -> MutexGuard<'_, Sandboxes> {
        self.sandboxes.lock()
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Kubelet {
    fn round(&self, sandboxes: &mut Sandboxes) -> Result<()> {
        let pods = self.lab.cluster.list("pods", self.namespace)?;
        for pod in pods {
            let text = |name: &str| pod["metadata"][name].as_str().unwrap_or_default().to_owned();
            let (name, uid) = (text("name"), text("uid"));
            let place = self.nodes.iter().position(|(node, _)| pod["spec"]["nodeName"] == **node);
            let ends = !pod["metadata"]["deletionTimestamp"].is_null();
            match (place, sandboxes.contains_key(&uid)) {
                (None, _) if ends => {}
                (None, _) => self.bind(&name)?,
                (Some(_), _) if ends => {
                    if let Some((place, sandbox)) = sandboxes.get(&uid) {
                        self.end(*place, sandbox)?;
                    }
                    sandboxes.remove(&uid);
                    let command = ["delete", "pod", "-n", self.namespace, &name];
                    let now = ["--grace-period=0", "--force", "--wait=false"];
                    self.kubectl(&[&command[..], &now].concat(), "")?;
                }
                (Some(place), false) => {
                    let sandbox = self.begin(place, &pod, &name, &uid)?;
                    sandboxes.insert(uid, (place, sandbox));
                }
                (Some(_), true) => {}
            }
        }
        Ok(())
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> Result<()> {
        self.lab.try_kubectl(arguments, input).map(drop).map_err(|error| anyhow!("{arguments:?}: {error}"))
    }

    /// Binds a pod to the node that has the fewest.
    fn bind(&self, name: &str) -> Result<()> {
        let pods = self.lab.cluster.list("pods", self.namespace)?;
        let count = |node: &str| pods.iter().filter(|pod| pod["spec"]["nodeName"] == node).count();
        let (node, _) = self.nodes.iter().min_by_key(|(node, _)| count(node)).context("a node")?;
        let path = format!("/api/v1/namespaces/{}/pods/{name}/binding", self.namespace);
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
        self.kubectl(&["create", "--raw", &path, "-f", "-"], &binding.to_string())
    }

    /// Starts a pod, and updates its status. Returns its sandbox.
    fn begin(&self, place: usize, object: &Value, name: &str, uid: &str) -> Result<String> {
        let (_, engine) = &self.nodes[place];
        let pod = Pod::new(self.namespace, name).with_uid(uid);
        let spec = &object["spec"]["containers"][0];
        let container = spec["name"].as_str().context("a container")?;
        let (sandbox, id) = self.runtime.block_on(async {
            let sandbox = engine.run_pod(&pod).await?;
            let id = engine.run_container(&pod, &sandbox, container, &["0"]).await?;
            anyhow::Ok((sandbox, id))
        })?;
        let now = object["metadata"]["creationTimestamp"].clone();
        let conditions = ["Initialized", "ContainersReady", "Ready"]
            .map(|type_| json!({"type": type_, "status": "True", "lastTransitionTime": now}));
        let status = json!({"status": {"phase": "Running", "startTime": now, "conditions": conditions,
            "containerStatuses": [{"name": container, "image": spec["image"], "imageID": "", "ready": true,
                "started": true, "restartCount": 0, "containerID": format!("containerd://{id}"),
                "state": {"running": {"startedAt": now}}}]}});
        self.lab.cluster.patch("pods", self.namespace, name, Some("status"), &status.to_string())?;
        Ok(sandbox)
    }

    fn end(&self, place: usize, sandbox: &str) -> Result<()> {
        let (_, engine) = &self.nodes[place];
        self.runtime.block_on(async {
            engine.stop_pod(sandbox).await?;
            engine.remove_pod(sandbox).await
        })
    }
}
