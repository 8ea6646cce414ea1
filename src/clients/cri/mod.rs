//! The container runtime of this node, such as containerd or CRI-O, by the container runtime interface of Kubernetes
//! (CRI, `runtime.v1`): gRPC over a Unix socket.
//!
//! | file | what it has |
//! |---|---|
//! | [`messages`] | the messages, with the fields that are read |
//! | `process.rs` | which process a container or sandbox has |
//! | `error.rs` | what goes wrong |
//!
//! Every call has a deadline, and answers are of bounded length, as for the kubelet. All calls share one connection, which
//! is made at the first, and again after it breaks or does not answer in time.

mod error;
pub mod messages;
mod process;
pub mod telemetry;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::uri::PathAndQuery;
use metrics::{counter, histogram};
use parking_lot::Mutex;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;
use tracing::info;

use crate::config::runtime_socket;
use messages::{
    ByIdRequest, Container, ContainerFilter, ContainerStats, ContainerStatsResponse,
    ListContainerStatsRequest, ListContainerStatsResponse, ListContainersRequest, ListContainersResponse,
    ListPodSandboxRequest, ListPodSandboxResponse, PodSandbox, PodSandboxFilter, VersionResponse,
};

pub use error::CriError;

/// How long a call may take where nothing else is configured.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// How much longer than this client waits the deadline is that a runtime gets with a call.
const GRACE: Duration = Duration::from_secs(1);
/// The longest answer that is read, in bytes: that of the kubelet (`maxMsgSize` of `k8s.io/cri-client`).
const LONGEST_ANSWER: usize = 16 << 20;
/// The sockets that are tried where none is configured: containerd's, CRI-O's and that of k3s.
pub const SOCKETS: [&str; 4] = [
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/var/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock",
];

/// A client of one runtime.
#[derive(Debug)]
pub struct Cri {
    socket: PathBuf,
    deadline: Duration,
    /// The connection, once there was a call. tonic makes it again when it breaks.
    channel: Mutex<Option<Channel>>,
}

/// The runtime of this node. It is looked for when it is first needed, and again once it is forgotten because it did not
/// answer: it may be another one after an upgrade of the node.
pub struct Runtime {
    /// Its socket; empty for the first of [`SOCKETS`] that answers.
    endpoint: String,
    deadline: Duration,
    client: Mutex<Option<Arc<Cri>>>,
}

impl Runtime {
    /// The runtime at `endpoint`, as for [`Cri::connect`]. Nothing is sent yet.
    pub fn new(endpoint: &str, deadline: Duration) -> Self {
        Self { endpoint: endpoint.to_owned(), deadline, client: Mutex::default() }
    }

    /// Its client, if it has been found.
    pub fn known(&self) -> Option<Arc<Cri>> {
        self.client.lock().clone()
    }

    /// Its client.
    ///
    /// # Errors
    /// When it has to be looked for, and does not answer.
    pub async fn client(&self) -> Result<Arc<Cri>, CriError> {
        if let Some(client) = self.known() {
            return Ok(client);
        }
        let (client, version) = Cri::connect(&self.endpoint, self.deadline).await?;
        let (name, version) = (version.runtime_name, version.runtime_version);
        info!(socket = %client.socket().display(), name, version, "the container runtime answers");
        Ok(Arc::clone(self.client.lock().insert(Arc::new(client))))
    }

    /// The runtime is looked for again when it is next needed.
    pub fn forget(&self) {
        *self.client.lock() = None;
    }
}

impl Cri {
    /// A client of the runtime at a socket, whose calls may take `deadline` each. Nothing is sent yet.
    pub fn new(socket: impl Into<PathBuf>, deadline: Duration) -> Self {
        Self { socket: socket.into(), deadline, channel: Mutex::default() }
    }

    /// A client of the runtime at `endpoint`, such as `unix:///run/containerd/containerd.sock` or the path alone; if it is
    /// empty, at the first of [`SOCKETS`] that answers. The version is asked for.
    ///
    /// # Errors
    /// When it does not answer, or none does, or `endpoint` is not the path of a socket.
    pub async fn connect(endpoint: &str, deadline: Duration) -> Result<(Self, VersionResponse), CriError> {
        if endpoint.is_empty() {
            return Self::first_of(SOCKETS.iter().map(Path::new), deadline).await;
        }
        let Some(socket) = runtime_socket(endpoint) else {
            let reason = "it is not the path of a socket".to_owned();
            return Err(CriError::Unreachable { socket: endpoint.into(), reason });
        };
        let client = Self::new(socket, deadline);
        let version = client.version().await?;
        Ok((client, version))
    }

    /// A client of the first of these sockets that answers.
    async fn first_of<'a>(
        sockets: impl Iterator<Item = &'a Path>,
        deadline: Duration,
    ) -> Result<(Self, VersionResponse), CriError> {
        let mut failures = Vec::new();
        for socket in sockets {
            let client = Self::new(socket, deadline);
            match client.version().await {
                Ok(version) => return Ok((client, version)),
                Err(error) => failures.push(error.to_string()),
            }
        }
        Err(CriError::NoRuntime(failures))
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The name and the version of the runtime.
    pub async fn version(&self) -> Result<VersionResponse, CriError> {
        self.call("Version", ()).await
    }

    /// The sandboxes that `filter` selects.
    pub async fn list_pod_sandboxes(&self, filter: PodSandboxFilter) -> Result<Vec<PodSandbox>, CriError> {
        let request = ListPodSandboxRequest { filter: Some(filter) };
        let answer: ListPodSandboxResponse = self.call("ListPodSandbox", request).await?;
        Ok(answer.items)
    }

    /// The containers that `filter` selects.
    pub async fn list_containers(&self, filter: ContainerFilter) -> Result<Vec<Container>, CriError> {
        let request = ListContainersRequest { filter: Some(filter) };
        let answer: ListContainersResponse = self.call("ListContainers", request).await?;
        Ok(answer.containers)
    }

    /// What one container uses; `None` where the runtime has not measured it yet.
    pub async fn container_stats(&self, id: &str) -> Result<Option<ContainerStats>, CriError> {
        let request = ByIdRequest { id: id.to_owned(), verbose: false };
        let answer: ContainerStatsResponse = self.call("ContainerStats", request).await?;
        Ok(answer.stats)
    }

    /// What the running containers use.
    pub async fn list_container_stats(&self) -> Result<Vec<ContainerStats>, CriError> {
        let request = ListContainerStatsRequest { filter: Some(()) };
        let answer: ListContainerStatsResponse = self.call("ListContainerStats", request).await?;
        Ok(answer.stats)
    }

    /// Calls a method, once.
    async fn call<Q, A>(&self, method: &'static str, request: Q) -> Result<A, CriError>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let begin = Instant::now();
        let exchange = async {
            let mut grpc = Grpc::new(self.channel()?).max_decoding_message_size(LONGEST_ANSWER);
            grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
            let mut request = Request::new(request);
            // So that the runtime gives up, too; later than this client, whose error names the socket.
            request.set_timeout(self.deadline + GRACE);
            let path = PathAndQuery::from_maybe_shared(format!("/runtime.v1.RuntimeService/{method}"));
            let path = path.map_err(|error| Status::from_error(Box::new(error)))?;
            grpc.unary(request, path, ProstCodec::<Q, A>::default()).await
        };
        let result = timeout(self.deadline, exchange).await;
        histogram!("cri_client_request_duration_seconds", "operation" => method).record(begin.elapsed());
        let code = match &result {
            Ok(Ok(_)) => Code::Ok,
            Ok(Err(status)) => status.code(),
            Err(_) => Code::DeadlineExceeded,
        };
        let code = format!("{code:?}");
        counter!("cri_client_requests_total", "operation" => method, "code" => code).increment(1);
        match result {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(CriError::of(&status, self.socket.clone(), method)),
            Err(_) => {
                // Requests that are not read would add up in the connection, so the next call makes another. Calls that
                // wait for an answer keep this one.
                *self.channel.lock() = None;
                let (socket, after) = (self.socket.clone(), self.deadline);
                Err(CriError::Deadline { socket, method, after })
            }
        }
    }

    /// The connection, which is made when the first request is sent through it.
    fn channel(&self) -> Result<Channel, Status> {
        let mut channel = self.channel.lock();
        if let Some(channel) = &*channel {
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(format!("unix://{}", self.socket.display()));
        let endpoint = endpoint.map_err(|error| Status::from_error(Box::new(error)))?;
        let made = endpoint.connect_timeout(self.deadline).connect_lazy();
        Ok(channel.insert(made).clone())
    }
}
