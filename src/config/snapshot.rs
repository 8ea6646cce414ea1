//! The keys of the snapshot loop; see `docs/snapshots.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;
use super::instance::OPTIONAL_QUANTITY;
use crate::api::quantity::Quantity;

/// The snapshot loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SnapshotConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of snapshots that are reconciled at the same time, from 1 to 256; it does not limit the
    /// number of Jobs that run.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The registry that images are pushed to, with an optional path; all snapshots fail while it is empty.
    #[schemars(extend("format" = formats::REGISTRY.name))]
    pub vm_registry: String,
    /// The Secret (`kubernetes.io/dockerconfigjson`) with the login to the registry, in the namespace of each
    /// snapshot; all snapshots fail while it is empty.
    #[schemars(extend("format" = formats::OPTIONAL_NAME.name))]
    pub vm_registry_secret: String,
    /// The image that exports a disk as a QCOW2 file; `make image-exporter` builds it.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub container_export_img: String,
    /// The time within which a snapshot must start once it is its turn; after that it has failed, and the next one of
    /// the Instance follows.
    pub start_deadline: ConfigDuration,
    /// The program that builds and pushes the image: `kaniko`, or `buildah`, which does not need root.
    pub pusher: Pusher,
    /// The image of Kaniko's executor, or of a fork that accepts the same arguments.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub container_kaniko_img: String,
    /// The image of Buildah.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub container_buildah_img: String,
    /// The memory request of the pusher.
    #[schemars(with = "String", extend("format" = formats::QUANTITY.name))]
    pub pusher_memory_request: Quantity,
    /// The memory limit of the pusher, which counts against the quota of the snapshot's namespace.
    #[schemars(with = "String", extend("format" = formats::QUANTITY.name))]
    pub pusher_memory_limit: Quantity,
    /// How much of the disk of its node a Job may use, such as `300Gi`: four times the largest disk of a Template. Kubernetes
    /// ends a pod that uses more. Empty for no limit.
    #[schemars(extend("format" = OPTIONAL_QUANTITY.name))]
    pub ephemeral_storage: String,
}

/// The program that builds and pushes an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Pusher {
    /// Kaniko's executor.
    #[default]
    Kaniko,
    /// Buildah, without root.
    Buildah,
}

impl Default for SnapshotConfig {
    fn default() -> Self {
        let quantity = |text: &str| text.parse().unwrap_or_default();
        Self {
            enabled: true,
            concurrency: 4,
            vm_registry: String::new(),
            vm_registry_secret: String::new(),
            container_export_img: concat!("crownlabs/img-exporter:", env!("CARGO_PKG_VERSION")).to_owned(),
            start_deadline: ConfigDuration::from_secs(1_800),
            pusher: Pusher::default(),
            container_kaniko_img: "gcr.io/kaniko-project/executor".to_owned(),
            container_buildah_img: "quay.io/buildah/stable".to_owned(),
            pusher_memory_request: quantity("8Gi"),
            pusher_memory_limit: quantity("32Gi"),
            ephemeral_storage: String::new(),
        }
    }
}
