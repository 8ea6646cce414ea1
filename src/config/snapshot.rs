//! The keys of the snapshot loop; see `docs/snapshots.md`.

use macro_rules_attribute::apply;

use super::duration::ConfigDuration;
use super::formats;
use super::keys::{choice, keys};
use crate::api::quantity::Quantity;

keys! {
    /// The snapshot loop.
    pub struct SnapshotConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of snapshots that are reconciled at the same time, from 1 to 256. It does not limit the number of
        /// running Jobs.
        pub concurrency: usize as 1..=256 = 4,
        /// The registry to push images to, with an optional path. While it is empty, all snapshots fail.
        pub vm_registry: String as formats::REGISTRY,
        /// The Secret (`kubernetes.io/dockerconfigjson`) with the login to the registry, in the namespace of each
        /// snapshot. While it is empty, all snapshots fail.
        pub vm_registry_secret: String as formats::OPTIONAL_NAME,
        /// The image that exports a disk as a QCOW2 file; `make image-exporter` builds it.
        pub container_export_img: String as formats::IMAGE = concat!("crownlabs/img-exporter:", env!("CARGO_PKG_VERSION")).to_owned(),
        /// The time limit for the start of a snapshot, counted from its turn. A snapshot that exceeds it fails, and the
        /// next snapshot of the Instance follows.
        pub start_deadline: ConfigDuration = ConfigDuration::from_secs(1_800),
        /// The program that builds and pushes the image: `kaniko`, or `buildah`, which does not need root.
        pub pusher: Pusher,
        /// The image of Kaniko's executor, or of a fork that accepts the same arguments.
        pub container_kaniko_img: String as formats::IMAGE = "gcr.io/kaniko-project/executor".to_owned(),
        /// The image of Buildah.
        pub container_buildah_img: String as formats::IMAGE = "quay.io/buildah/stable".to_owned(),
        /// The memory request of the pusher.
        pub pusher_memory_request: Quantity as formats::QUANTITY = formats::quantity("8Gi"),
        /// The memory limit of the pusher, which counts against the quota of the snapshot's namespace.
        pub pusher_memory_limit: Quantity as formats::QUANTITY = formats::quantity("32Gi"),
        /// The limit of disk space on the node for a Job, such as `300Gi`: four times the largest disk of a Template.
        /// Kubernetes evicts a pod that exceeds it. Empty for no limit.
        pub ephemeral_storage: String as formats::OPTIONAL_QUANTITY,
    }
}

/// The program that builds and pushes an image.
#[apply(choice)]
pub enum Pusher {
    /// Kaniko's executor.
    #[default]
    Kaniko,
    /// Buildah, without root.
    Buildah,
}
