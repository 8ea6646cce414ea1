//! The messages of the container runtime interface, as far as they are read and sent here: names and numbers of
//! fields are those of `pkg/apis/runtime/v1/api.proto` in `k8s.io/cri-api`. Other fields of an answer are skipped.

mod stats;

use std::collections::BTreeMap;

pub use stats::{
    ContainerAttributes, ContainerStats, ContainerStatsFilter, ContainerStatsRequest, ContainerStatsResponse,
    CpuUsage, FilesystemUsage, ListContainerStatsRequest, ListContainerStatsResponse, MemoryUsage,
    UInt64Value,
};

/// Asks for the version of the runtime.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VersionRequest {}

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

/// The state of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum PodSandboxState {
    /// Its containers can run.
    Ready = 0,
    /// It has stopped.
    NotReady = 1,
}

/// The state of sandboxes that are listed.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct PodSandboxStateValue {
    /// The state.
    #[prost(enumeration = "PodSandboxState", tag = "1")]
    pub state: i32,
}

/// Which sandboxes are listed. What is empty selects all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxFilter {
    /// The one with this id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Those in this state.
    #[prost(message, optional, tag = "2")]
    pub state: Option<PodSandboxStateValue>,
    /// Those that have all these labels with these values.
    #[prost(btree_map = "string, string", tag = "3")]
    pub label_selector: BTreeMap<String, String>,
}

/// Asks for sandboxes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListPodSandboxRequest {
    /// Which ones.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<PodSandboxFilter>,
}

/// Sandboxes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListPodSandboxResponse {
    /// The sandboxes.
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<PodSandbox>,
}

/// The pod that a sandbox is for.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxMetadata {
    /// The name of the pod.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its uid.
    #[prost(string, tag = "2")]
    pub uid: String,
    /// Its namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// How many sandboxes the pod had before this one.
    #[prost(uint32, tag = "4")]
    pub attempt: u32,
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
    /// Its state.
    #[prost(enumeration = "PodSandboxState", tag = "3")]
    pub state: i32,
    /// When it was made, in nanoseconds since 1970.
    #[prost(int64, tag = "4")]
    pub created_at: i64,
    /// The labels of the pod, and those that the kubelet adds.
    #[prost(btree_map = "string, string", tag = "5")]
    pub labels: BTreeMap<String, String>,
    /// The annotations of the pod, and those that the kubelet adds.
    #[prost(btree_map = "string, string", tag = "6")]
    pub annotations: BTreeMap<String, String>,
}

/// Asks for the status of a sandbox.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxStatusRequest {
    /// The id of the sandbox.
    #[prost(string, tag = "1")]
    pub pod_sandbox_id: String,
    /// Whether the runtime adds what is not part of the interface, in `info`.
    #[prost(bool, tag = "2")]
    pub verbose: bool,
}

/// The status of a sandbox.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxStatusResponse {
    /// The status.
    #[prost(message, optional, tag = "1")]
    pub status: Option<PodSandboxStatus>,
    /// What the runtime adds: JSON under `info`.
    #[prost(btree_map = "string, string", tag = "2")]
    pub info: BTreeMap<String, String>,
}

/// The status of a sandbox.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxStatus {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The pod.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<PodSandboxMetadata>,
    /// Its state.
    #[prost(enumeration = "PodSandboxState", tag = "3")]
    pub state: i32,
    /// When it was made, in nanoseconds since 1970.
    #[prost(int64, tag = "4")]
    pub created_at: i64,
    /// Its address.
    #[prost(message, optional, tag = "5")]
    pub network: Option<PodSandboxNetworkStatus>,
    /// The labels of the pod, and those that the kubelet adds.
    #[prost(btree_map = "string, string", tag = "7")]
    pub labels: BTreeMap<String, String>,
    /// The annotations of the pod, and those that the kubelet adds.
    #[prost(btree_map = "string, string", tag = "8")]
    pub annotations: BTreeMap<String, String>,
}

/// The network of a sandbox.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxNetworkStatus {
    /// The address of the pod; empty where it has that of the node.
    #[prost(string, tag = "1")]
    pub ip: String,
}

/// The state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ContainerState {
    /// It has not started yet.
    Created = 0,
    /// It runs.
    Running = 1,
    /// It has ended.
    Exited = 2,
    /// The runtime does not know.
    Unknown = 3,
}

/// The state of containers that are listed.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ContainerStateValue {
    /// The state.
    #[prost(enumeration = "ContainerState", tag = "1")]
    pub state: i32,
}

/// Which containers are listed. What is empty selects all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerFilter {
    /// The one with this id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Those in this state.
    #[prost(message, optional, tag = "2")]
    pub state: Option<ContainerStateValue>,
    /// Those of this sandbox.
    #[prost(string, tag = "3")]
    pub pod_sandbox_id: String,
    /// Those that have all these labels with these values.
    #[prost(btree_map = "string, string", tag = "4")]
    pub label_selector: BTreeMap<String, String>,
}

/// Asks for containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainersRequest {
    /// Which ones.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<ContainerFilter>,
}

/// Containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainersResponse {
    /// The containers.
    #[prost(message, repeated, tag = "1")]
    pub containers: Vec<Container>,
}

/// The name of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerMetadata {
    /// Its name in the pod.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How often it was started before.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
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
    /// Its state.
    #[prost(enumeration = "ContainerState", tag = "6")]
    pub state: i32,
    /// When it was made, in nanoseconds since 1970.
    #[prost(int64, tag = "7")]
    pub created_at: i64,
    /// The labels that the kubelet gives it: namespace, pod and name.
    #[prost(btree_map = "string, string", tag = "8")]
    pub labels: BTreeMap<String, String>,
}

/// Asks for the status of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatusRequest {
    /// The id of the container.
    #[prost(string, tag = "1")]
    pub container_id: String,
    /// Whether the runtime adds what is not part of the interface, in `info`.
    #[prost(bool, tag = "2")]
    pub verbose: bool,
}

/// The status of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatusResponse {
    /// The status.
    #[prost(message, optional, tag = "1")]
    pub status: Option<ContainerStatus>,
    /// What the runtime adds: JSON under `info`.
    #[prost(btree_map = "string, string", tag = "2")]
    pub info: BTreeMap<String, String>,
}

/// The status of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatus {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its name.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<ContainerMetadata>,
    /// Its state.
    #[prost(enumeration = "ContainerState", tag = "3")]
    pub state: i32,
    /// When it was made, in nanoseconds since 1970.
    #[prost(int64, tag = "4")]
    pub created_at: i64,
    /// When it was started, in nanoseconds since 1970; 0 if it was not.
    #[prost(int64, tag = "5")]
    pub started_at: i64,
    /// The labels that the kubelet gives it: namespace, pod and name.
    #[prost(btree_map = "string, string", tag = "12")]
    pub labels: BTreeMap<String, String>,
}
