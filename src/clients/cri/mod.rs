//! The container runtime of this node, such as containerd or CRI-O, by the container runtime interface of Kubernetes
//! (CRI, `runtime.v1`): gRPC over a Unix socket.
//!
//! | file | content |
//! |---|---|
//! | [`messages`] | the messages, with the fields that are read |
//! | `process.rs` | the process of a container or sandbox |
//! | `error.rs` | errors |
//!
//! Every call has a deadline, and the length of responses is limited as in the kubelet. All calls share one
//! connection. It is opened by the first call, and again after it was interrupted or a call timed out.

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

/// The default time limit of a call.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// The difference between the deadline that the runtime gets with a call and the shorter time limit of this client.
const GRACE: Duration = Duration::from_secs(1);
/// The limit for a response in bytes, the same as in the kubelet (`maxMsgSize` of `k8s.io/cri-client`).
const LONGEST_ANSWER: usize = 16 << 20;
/// The sockets that are tried if no socket is configured. containerd, CRI-O and k3s use them.
pub const SOCKETS: [&str; 4] = [
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/var/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock",
];

/// A client of one runtime.
#[derive(Debug)]
pub struct Cri {
    /// The socket.
    pub socket: PathBuf,
    deadline: Duration,
    /// The connection, after the first call. tonic reopens it after an interruption.
    channel: Mutex<Option<Channel>>,
}

/// The runtime of this node. Its socket is searched for on first use. If the runtime does not answer, the socket is
/// forgotten and searched for again, because an upgrade of the node may have changed the runtime.
pub struct Runtime {
    /// Its socket; empty for the first one in [`SOCKETS`] that answers.
    endpoint: String,
    deadline: Duration,
    client: Mutex<Option<Arc<Cri>>>,
}

impl Runtime {
    /// The runtime at `endpoint`, as for [`Cri::connect`]. Sends nothing.
    pub fn new(endpoint: &str, deadline: Duration) -> Self {
        Self { endpoint: endpoint.to_owned(), deadline, client: Mutex::default() }
    }

    /// Its client, if the runtime has been found.
    pub fn known(&self) -> Option<Arc<Cri>> {
        self.client.lock().clone()
    }

    /// Returns its client. Searches for the runtime if necessary.
    ///
    /// # Errors
    /// When the runtime is searched for and does not answer.
    pub async fn client(&self) -> Result<Arc<Cri>, CriError> {
        if let Some(client) = self.known() {
            return Ok(client);
        }
        let (client, version) = Cri::connect(&self.endpoint, self.deadline).await?;
        let (name, version) = (version.runtime_name, version.runtime_version);
        info!(socket = %client.socket.display(), name, version, "the container runtime answers");
        Ok(Arc::clone(self.client.lock().insert(Arc::new(client))))
    }

    /// Forgets the runtime. It is searched for again on the next use.
    pub fn forget(&self) {
        *self.client.lock() = None;
    }
}

impl Cri {
    /// A client of the runtime at a socket. Each call may take `deadline`. Sends nothing.
    pub fn new(socket: impl Into<PathBuf>, deadline: Duration) -> Self {
        Self { socket: socket.into(), deadline, channel: Mutex::default() }
    }

    /// Connects to the runtime at `endpoint`, such as `unix:///run/containerd/containerd.sock` or only the path, and
    /// requests its version. If `endpoint` is empty, it connects to the first of [`SOCKETS`] that answers.
    ///
    /// # Errors
    /// When the runtime does not answer, or `endpoint` is not the path of a socket.
    pub async fn connect(endpoint: &str, deadline: Duration) -> Result<(Self, VersionResponse), CriError> {
        if endpoint.is_empty() {
            return Self::first_of(&SOCKETS.map(Path::new), deadline).await;
        }
        let Some(socket) = runtime_socket(endpoint) else {
            let reason = "it is not the path of a socket".to_owned();
            return Err(CriError::Unreachable { socket: endpoint.into(), reason });
        };
        let client = Self::new(socket, deadline);
        let version = client.version().await?;
        Ok((client, version))
    }

    /// Connects to the first of these sockets that answers.
    async fn first_of(sockets: &[&Path], deadline: Duration) -> Result<(Self, VersionResponse), CriError> {
        let mut failures = Vec::new();
        for socket in sockets {
            let client = Self::new(*socket, deadline);
            match client.version().await {
                Ok(version) => return Ok((client, version)),
                Err(error) => failures.push(error.to_string()),
            }
        }
        Err(CriError::NoRuntime(failures))
    }

    /// The name and the version of the runtime.
    pub async fn version(&self) -> Result<VersionResponse, CriError> {
        self.call("Version", ()).await
    }

    /// Lists the sandboxes that match `filter`.
    pub async fn list_pod_sandboxes(&self, filter: PodSandboxFilter) -> Result<Vec<PodSandbox>, CriError> {
        let request = ListPodSandboxRequest { filter: Some(filter) };
        let answer: ListPodSandboxResponse = self.call("ListPodSandbox", request).await?;
        Ok(answer.items)
    }

    /// Lists the containers that match `filter`.
    pub async fn list_containers(&self, filter: ContainerFilter) -> Result<Vec<Container>, CriError> {
        let request = ListContainersRequest { filter: Some(filter) };
        let answer: ListContainersResponse = self.call("ListContainers", request).await?;
        Ok(answer.containers)
    }

    /// Returns the usage of one container; `None` if the runtime has not measured it yet.
    pub async fn container_stats(&self, id: &str) -> Result<Option<ContainerStats>, CriError> {
        let request = ByIdRequest { id: id.to_owned(), verbose: false };
        let answer: ContainerStatsResponse = self.call("ContainerStats", request).await?;
        Ok(answer.stats)
    }

    /// Returns the usage of the running containers.
    pub async fn list_container_stats(&self) -> Result<Vec<ContainerStats>, CriError> {
        let request = ListContainerStatsRequest { filter: Some(()) };
        let answer: ListContainerStatsResponse = self.call("ListContainerStats", request).await?;
        Ok(answer.stats)
    }

    /// Calls a method once.
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
            // The runtime gives up, too, but later than this client, whose error names the socket.
            request.set_timeout(self.deadline + GRACE);
            let path = PathAndQuery::from_maybe_shared(format!("/runtime.v1.RuntimeService/{method}"));
            let path = path.map_err(|error| Status::from_error(Box::new(error)))?;
            grpc.unary(request, path, ProstCodec::<Q, A>::default()).await
        };
        let result = timeout(self.deadline, exchange).await;
        histogram!("cri_client_request_duration_seconds", "operation" => method).record(begin.elapsed());
        let (code, result) = match result {
            Ok(Ok(answer)) => (Code::Ok, Ok(answer.into_inner())),
            Ok(Err(status)) => (status.code(), Err(CriError::of(&status, self.socket.clone(), method))),
            Err(_) => {
                // Unread requests would accumulate in the connection, so the next call opens another one. Pending
                // calls keep this one.
                *self.channel.lock() = None;
                let (socket, after) = (self.socket.clone(), self.deadline);
                (Code::DeadlineExceeded, Err(CriError::Deadline { socket, method, after }))
            }
        };
        let code = format!("{code:?}");
        counter!("cri_client_requests_total", "operation" => method, "code" => code).increment(1);
        result
    }

    /// Returns the connection. It is opened when the first request is sent.
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
