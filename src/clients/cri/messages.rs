//! The messages of the container runtime interface, as far as they are read and sent here: names and numbers of
//! fields are those of `pkg/apis/runtime/v1/api.proto` in `k8s.io/cri-api`. Other fields of an answer are skipped.
//!
//! A message whose only field is a number with the tag 1 (`UInt64Value`, `PodSandboxStateValue`, `ContainerStateValue`) is
//! that number here, which prost writes as such a message; one without fields is `()`.

use std::collections::BTreeMap;

/// The state of a sandbox whose containers can run (`PodSandboxState`).
pub const SANDBOX_READY: i32 = 0;
/// The state of a container that runs (`ContainerState`).
pub const CONTAINER_RUNNING: i32 = 1;

/// The name and the version of the runtime.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VersionResponse {
    /// The name of the runtime, such as `containerd`.
    #[prost(string, tag = "2")]
    pub runtime_name: String,
    /// Its version.
    #[prost(string, tag = "3")]
    pub runtime_version: String,
    /// The version of the interface, such as `v1`.
    #[prost(string, tag = "4")]
    pub runtime_api_version: String,
}

/// Asks about one container or sandbox: for its status, or what it uses. The requests have the same fields.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ByIdRequest {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Whether the runtime adds what is not part of the interface to a status, in `info`.
    #[prost(bool, tag = "2")]
    pub verbose: bool,
}

/// The status of a container or sandbox. The answers have the same fields.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatusResponse {
    /// The status.
    #[prost(message, optional, tag = "1")]
    pub status: Option<Status>,
    /// What the runtime adds: JSON under `info`.
    #[prost(btree_map = "string, string", tag = "2")]
    pub info: BTreeMap<String, String>,
}

/// The status of a container or sandbox.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Status {
    /// Its state, such as [`SANDBOX_READY`] or [`CONTAINER_RUNNING`].
    #[prost(int32, tag = "3")]
    pub state: i32,
}

/// Asks for sandboxes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListPodSandboxRequest {
    /// Which ones.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<PodSandboxFilter>,
}

/// Which sandboxes are listed. What is empty selects all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxFilter {
    /// Those in this state.
    #[prost(message, optional, tag = "2")]
    pub state: Option<i32>,
    /// Those that have all these labels with these values.
    #[prost(btree_map = "string, string", tag = "3")]
    pub label_selector: BTreeMap<String, String>,
}

/// Sandboxes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListPodSandboxResponse {
    /// The sandboxes.
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<PodSandbox>,
}

/// A sandbox: what the containers of a pod share.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandbox {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The pod.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<PodSandboxMetadata>,
    /// When it was made, in nanoseconds since 1970.
    #[prost(int64, tag = "4")]
    pub created_at: i64,
    /// The labels of the pod, and those that the kubelet adds.
    #[prost(btree_map = "string, string", tag = "5")]
    pub labels: BTreeMap<String, String>,
}

/// The pod that a sandbox is for.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxMetadata {
    /// The name of the pod.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
}

/// Asks for containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainersRequest {
    /// Which ones.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<ContainerFilter>,
}

/// Which containers are listed. What is empty selects all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerFilter {
    /// Those in this state.
    #[prost(message, optional, tag = "2")]
    pub state: Option<i32>,
    /// Those of this sandbox.
    #[prost(string, tag = "3")]
    pub pod_sandbox_id: String,
    /// Those that have all these labels with these values.
    #[prost(btree_map = "string, string", tag = "4")]
    pub label_selector: BTreeMap<String, String>,
}

/// Containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainersResponse {
    /// The containers.
    #[prost(message, repeated, tag = "1")]
    pub containers: Vec<Container>,
}

/// A container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Container {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The id of its sandbox.
    #[prost(string, tag = "2")]
    pub pod_sandbox_id: String,
    /// Its name.
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<ContainerMetadata>,
    /// When it was made, in nanoseconds since 1970.
    #[prost(int64, tag = "7")]
    pub created_at: i64,
}

/// The name of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerMetadata {
    /// Its name in the pod.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// The use of one container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatsResponse {
    /// The use.
    #[prost(message, optional, tag = "1")]
    pub stats: Option<ContainerStats>,
}

/// Asks for the use of the containers that run.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ListContainerStatsRequest {
    /// A filter that selects all.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<()>,
}

/// The use of containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainerStatsResponse {
    /// The use of each.
    #[prost(message, repeated, tag = "1")]
    pub stats: Vec<ContainerStats>,
}

/// What a container uses.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStats {
    /// The container.
    #[prost(message, optional, tag = "1")]
    pub attributes: Option<ContainerAttributes>,
    /// Processors.
    #[prost(message, optional, tag = "2")]
    pub cpu: Option<CpuUsage>,
    /// Memory.
    #[prost(message, optional, tag = "3")]
    pub memory: Option<MemoryUsage>,
    /// The files that it has written beside its volumes.
    #[prost(message, optional, tag = "4")]
    pub writable_layer: Option<FilesystemUsage>,
}

/// The container of a use.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerAttributes {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
}

/// The use of processors.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct CpuUsage {
    /// When it was measured, in nanoseconds since 1970.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// The processor time since the start of the container, in nanoseconds of one processor.
    #[prost(message, optional, tag = "2")]
    pub usage_core_nano_seconds: Option<u64>,
}

/// The use of memory.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct MemoryUsage {
    /// What it cannot do without, in bytes: without the cached files that can be dropped.
    #[prost(message, optional, tag = "2")]
    pub working_set_bytes: Option<u64>,
}

/// The use of a file system.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct FilesystemUsage {
    /// The bytes that are used.
    #[prost(message, optional, tag = "3")]
    pub used_bytes: Option<u64>,
}
