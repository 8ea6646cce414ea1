//! The messages of the container runtime interface that are read and sent here. Names and numbers of fields are as in
//! `pkg/apis/runtime/v1/api.proto` of `k8s.io/cri-api`. Other fields of a response are skipped.
//!
//! A message whose only field is a number with the tag 1 (`UInt64Value`, `PodSandboxStateValue`,
//! `ContainerStateValue`) is represented by the number, because prost encodes it as such a message. A message without
//! fields is `()`.

use std::collections::BTreeMap;

/// The state of a sandbox that is ready to run containers (`PodSandboxState`).
pub const SANDBOX_READY: i32 = 0;
/// The state of a running container (`ContainerState`).
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
}

/// A request for the status or the usage of one container or sandbox. These requests have the same fields.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ByIdRequest {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Whether the runtime adds further data to a status, in `info`. The data is not part of the interface.
    #[prost(bool, tag = "2")]
    pub verbose: bool,
}

/// The status of a container or sandbox. The responses have the same fields.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatusResponse {
    /// The status.
    #[prost(message, optional, tag = "1")]
    pub status: Option<Status>,
    /// Further data of the runtime: JSON under `info`.
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

/// A request for sandboxes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListPodSandboxRequest {
    /// The filter.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<PodSandboxFilter>,
}

/// Selects sandboxes. Empty fields select all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxFilter {
    /// Selects sandboxes in this state.
    #[prost(message, optional, tag = "2")]
    pub state: Option<i32>,
    /// Selects sandboxes that have all these labels with these values.
    #[prost(btree_map = "string, string", tag = "3")]
    pub label_selector: BTreeMap<String, String>,
}

/// The response with sandboxes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListPodSandboxResponse {
    /// The sandboxes.
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<PodSandbox>,
}

/// A sandbox: the environment that the containers of a pod share.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandbox {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The pod.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<PodSandboxMetadata>,
    /// Creation time in nanoseconds since 1970.
    #[prost(int64, tag = "4")]
    pub created_at: i64,
    /// The labels of the pod, and the labels that the kubelet adds.
    #[prost(btree_map = "string, string", tag = "5")]
    pub labels: BTreeMap<String, String>,
}

/// The pod of a sandbox.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxMetadata {
    /// The name of the pod.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
}

/// A request for containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainersRequest {
    /// The filter.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<ContainerFilter>,
}

/// Selects containers. Empty fields select all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerFilter {
    /// Selects containers in this state.
    #[prost(message, optional, tag = "2")]
    pub state: Option<i32>,
    /// Selects containers of this sandbox.
    #[prost(string, tag = "3")]
    pub pod_sandbox_id: String,
    /// Selects containers that have all these labels with these values.
    #[prost(btree_map = "string, string", tag = "4")]
    pub label_selector: BTreeMap<String, String>,
}

/// The response with containers.
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
    /// Creation time in nanoseconds since 1970.
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

/// The response with the usage of one container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatsResponse {
    /// The usage.
    #[prost(message, optional, tag = "1")]
    pub stats: Option<ContainerStats>,
}

/// A request for the usage of the running containers.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ListContainerStatsRequest {
    /// A filter that selects all.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<()>,
}

/// The response with the usage of containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainerStatsResponse {
    /// The usage of each container.
    #[prost(message, repeated, tag = "1")]
    pub stats: Vec<ContainerStats>,
}

/// The resource usage of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStats {
    /// The container.
    #[prost(message, optional, tag = "1")]
    pub attributes: Option<ContainerAttributes>,
    /// CPU usage.
    #[prost(message, optional, tag = "2")]
    pub cpu: Option<CpuUsage>,
    /// Memory usage.
    #[prost(message, optional, tag = "3")]
    pub memory: Option<MemoryUsage>,
    /// Usage of its writable layer, without volumes.
    #[prost(message, optional, tag = "4")]
    pub writable_layer: Option<FilesystemUsage>,
}

/// The container that a usage belongs to.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerAttributes {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
}

/// CPU usage.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct CpuUsage {
    /// Time of the measurement in nanoseconds since 1970.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// CPU time since the start of the container, in nanoseconds of one core.
    #[prost(message, optional, tag = "2")]
    pub usage_core_nano_seconds: Option<u64>,
}

/// Memory usage.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct MemoryUsage {
    /// The working set in bytes: memory without cached files that can be dropped.
    #[prost(message, optional, tag = "2")]
    pub working_set_bytes: Option<u64>,
}

/// Usage of a file system.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct FilesystemUsage {
    /// The used bytes.
    #[prost(message, optional, tag = "3")]
    pub used_bytes: Option<u64>,
}
