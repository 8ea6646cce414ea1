//! The messages about what containers use.

use std::collections::BTreeMap;

use super::ContainerMetadata;

/// Asks for the use of one container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatsRequest {
    /// The id of the container.
    #[prost(string, tag = "1")]
    pub container_id: String,
}

/// The use of one container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatsResponse {
    /// The use.
    #[prost(message, optional, tag = "1")]
    pub stats: Option<ContainerStats>,
}

/// Of which containers the use is listed. What is empty selects all that run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatsFilter {
    /// The one with this id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Those of this sandbox.
    #[prost(string, tag = "2")]
    pub pod_sandbox_id: String,
    /// Those that have all these labels with these values.
    #[prost(btree_map = "string, string", tag = "3")]
    pub label_selector: BTreeMap<String, String>,
}

/// Asks for the use of containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainerStatsRequest {
    /// Of which ones.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<ContainerStatsFilter>,
}

/// The use of containers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListContainerStatsResponse {
    /// The use of each.
    #[prost(message, repeated, tag = "1")]
    pub stats: Vec<ContainerStats>,
}

/// The container of a use.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerAttributes {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its name.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<ContainerMetadata>,
    /// The labels that the kubelet gives it: namespace, pod and name.
    #[prost(btree_map = "string, string", tag = "3")]
    pub labels: BTreeMap<String, String>,
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

/// A number that can be missing.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct UInt64Value {
    /// The number.
    #[prost(uint64, tag = "1")]
    pub value: u64,
}

/// The use of processors.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct CpuUsage {
    /// When it was measured, in nanoseconds since 1970.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// The processor time since the start of the container, in nanoseconds of one processor.
    #[prost(message, optional, tag = "2")]
    pub usage_core_nano_seconds: Option<UInt64Value>,
}

/// The use of memory.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct MemoryUsage {
    /// When it was measured, in nanoseconds since 1970.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// What it cannot do without, in bytes: without the cached files that can be dropped.
    #[prost(message, optional, tag = "2")]
    pub working_set_bytes: Option<UInt64Value>,
}

/// The use of a file system.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct FilesystemUsage {
    /// When it was measured, in nanoseconds since 1970.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// The bytes that are used.
    #[prost(message, optional, tag = "3")]
    pub used_bytes: Option<UInt64Value>,
}
