//! Finds the process of a pod through the container runtime. The network namespace of the process is the pod's.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::clients::cri::messages::{CONTAINER_RUNNING, ContainerFilter, PodSandboxFilter, SANDBOX_READY};
use crate::clients::cri::{Cri, CriError, Runtime};
use crate::netlink::Namespace;

/// The label with the uid of the pod, which the kubelet sets on sandboxes and containers.
const POD_UID: &str = "io.kubernetes.pod.uid";
/// The number of attempts if a process ends while its namespace is being opened.
const ATTEMPTS: usize = 3;

/// A process of a pod.
pub struct Located {
    /// The process ID.
    pub process: u32,
    /// Its network namespace.
    pub namespace: Namespace,
}

/// The result of locating a pod.
pub type Location = Result<Located, NotLocated>;

/// The reason why no process was found.
#[derive(Debug)]
pub enum NotLocated {
    /// The pod has no process: it has not started, or has ended.
    NotRunning,
    /// The runtime does not respond.
    Unavailable(String),
    /// Another failure, as the end of a sentence.
    Failed(String),
}

impl From<CriError> for NotLocated {
    fn from(error: CriError) -> Self {
        match error {
            CriError::Unreachable { .. } | CriError::Deadline { .. } | CriError::NoRuntime(_) => {
                Self::Unavailable(error.to_string())
            }
            CriError::NotRunning(_) => Self::NotRunning,
            CriError::Refused { .. } | CriError::NoProcess(_) => Self::Failed(error.to_string()),
        }
    }
}

/// The object that a process belongs to.
enum Holder {
    Container(String),
    Sandbox(String),
}

/// Asks the runtime for its version.
///
/// # Errors
/// If the runtime does not respond. The error is the end of a sentence.
pub async fn probe(runtime: &Runtime) -> Result<(), String> {
    let answer = match runtime.known() {
        Some(client) => client.version().await.map(drop),
        None => runtime.client().await.map(drop),
    };
    answer.map_err(|error| {
        runtime.forget();
        error.to_string()
    })
}

/// A process of the pod, and its namespace. Of the running containers, the first one started is used; without
/// containers, the sandbox.
///
/// # Errors
/// If there is no process, or it cannot be determined.
pub async fn locate(runtime: &Runtime, pod_uid: &str, proc: &Path) -> Location {
    let client = runtime.client().await?;
    for _ in 0..ATTEMPTS {
        let (holder, process) = holder(&client, pod_uid).await?;
        let path = namespace_path(proc, process);
        let namespace = match Namespace::open(&path) {
            Ok(namespace) => namespace,
            // The process has ended in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(NotLocated::Failed(format!("{}: {error}", path.display()))),
        };
        // The process ID may have been reused before the namespace was opened. In that case, the runtime now reports
        // another process ID for the holder.
        let again = match &holder {
            Holder::Container(id) => client.container_process(id).await,
            Holder::Sandbox(id) => client.sandbox_process(id).await,
        };
        if again.is_ok_and(|again| again == process) {
            return Ok(Located { process, namespace });
        }
    }
    Err(NotLocated::NotRunning)
}

/// The path of the network namespace of a process.
pub fn namespace_path(proc: &Path, process: u32) -> PathBuf {
    proc.join(process.to_string()).join("ns/net")
}

/// The container or sandbox of a pod that has a process, and the process ID.
async fn holder(client: &Cri, pod_uid: &str) -> Result<(Holder, u32), NotLocated> {
    let labels = BTreeMap::from([(POD_UID.to_owned(), pod_uid.to_owned())]);
    let (state, label_selector) = (Some(CONTAINER_RUNNING), labels.clone());
    let filter = ContainerFilter { state, label_selector, ..ContainerFilter::default() };
    let mut containers = client.list_containers(filter).await?;
    containers.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    for container in containers {
        match client.container_process(&container.id).await {
            Ok(process) => return Ok((Holder::Container(container.id), process)),
            Err(error) if has_ended(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let filter = PodSandboxFilter { state: Some(SANDBOX_READY), label_selector: labels };
    let sandboxes = client.list_pod_sandboxes(filter).await?;
    let newest = sandboxes.into_iter().max_by_key(|sandbox| sandbox.created_at);
    let sandbox = newest.ok_or(NotLocated::NotRunning)?;
    match client.sandbox_process(&sandbox.id).await {
        Ok(process) => Ok((Holder::Sandbox(sandbox.id), process)),
        // CRI-O may have sandboxes without a process.
        Err(CriError::NoProcess(_)) => Err(NotLocated::NotRunning),
        Err(error) if has_ended(&error) => Err(NotLocated::NotRunning),
        Err(error) => Err(error.into()),
    }
}

fn has_ended(error: &CriError) -> bool {
    error.is_not_found() || matches!(error, CriError::NotRunning(_))
}
