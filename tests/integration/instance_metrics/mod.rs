//! The resource usage of Instances, with real pods on a real containerd. The daemon has no API server: its kubeconfig
//! does not exist.

mod faults;
mod numbers;
mod runtime;

use std::path::Path;
use std::time::{Duration, Instant};

use tonic::Status;

use crate::daemon::{Daemon, config};
use crate::lab::{PATIENCE, running};
use cluster::config::only;
use cluster::containerd::Pod;
use cluster::instance_metrics::{self, ContainerMetrics};

/// A configuration with only this loop, and these further keys of it, as YAML in one line.
fn only_metrics(listen: &str, keys: &str) -> String {
    config("metrics", &only(&[("instanceMetrics", &format!("listen: \"{listen}\", {keys}"))]))
}

/// Starts a daemon that measures the containers of the runtime at a socket, with these further keys of the loop.
fn start(socket: &Path, keys: &str) -> Daemon {
    let keys = format!("runtimeEndpoint: \"unix://{}\", {keys}", socket.display());
    let command = [env!("CARGO_BIN_EXE_crownlabs")];
    let nowhere = Path::new("/nonexistent/kubeconfig");
    Daemon::launch(&command, &only_metrics("127.0.0.1:0", &keys), nowhere, "127.0.0.1".to_owned())
}

/// A pod of an Instance.
fn lab_pod(namespace: &str, name: &str) -> Pod {
    Pod::new(namespace, name).with_label("crownlabs.polito.it/instance", "lab")
}

/// Asks the service of a daemon about a pod.
async fn ask(daemon: &Daemon, pod: &str) -> Result<ContainerMetrics, Status> {
    instance_metrics::ask(&service(daemon).await, pod).await.expect("an answer")
}

/// The same through the method at that path.
async fn call(daemon: &Daemon, method: &'static str, pod: &str) -> Result<ContainerMetrics, Status> {
    instance_metrics::call(&service(daemon).await, method, pod).await.expect("an answer")
}

/// The address of the service of a daemon.
async fn service(daemon: &Daemon) -> String {
    let port = until("the port of the service", async || daemon.port("instance metrics")).await;
    format!("127.0.0.1:{port}")
}

/// The series of a pod in `/metrics`, without the name of the family: `cpu_percent{…} 1.5`.
fn series(daemon: &Daemon, pod: &str) -> Vec<String> {
    let label = format!("pod=\"{pod}\"");
    let metrics = daemon.metrics();
    let lines = metrics.lines().filter_map(|line| line.strip_prefix("crownlabs_instance_"));
    lines.filter(|line| line.contains(&label)).map(str::to_owned).collect()
}

/// Awaits `probe` until it has a value.
async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        running::check(what);
        assert!(begin.elapsed() < PATIENCE, "still missing: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
