//! The keys of the loop over snapshots: the flags of 03 §2.2, and what makes the pusher a choice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;
use crate::api::quantity::Quantity;

/// The loop over `InstanceSnapshots`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SnapshotConfig {
    /// Whether the loop runs; one that is off costs nothing and needs no rights.
    pub enabled: bool,
    /// How many snapshots are looked at at the same time, 1 to 256; the Jobs of all of them run at once.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The registry that the images are pushed to, with the path that they share, if any. Every snapshot
    /// fails while it is empty.
    #[schemars(extend("format" = formats::REGISTRY.name))]
    pub vm_registry: String,
    /// The Secret (`kubernetes.io/dockerconfigjson`) with the login to the registry, in the namespace of each
    /// snapshot. Every snapshot fails while it is empty.
    #[schemars(extend("format" = formats::OPTIONAL_NAME.name))]
    pub vm_registry_secret: String,
    /// The image that turns a disk into what an image is built from: `images/img-exporter`.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub container_export_img: String,
    /// What builds the image and pushes it: `kaniko`, or `buildah` as an ordinary user.
    pub pusher: Pusher,
    /// The image of Kaniko's executor, or of a fork that takes the same arguments.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub container_kaniko_img: String,
    /// The image of Buildah.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub container_buildah_img: String,
    /// The memory that the pusher asks for.
    #[schemars(with = "String", extend("format" = formats::QUANTITY.name))]
    pub pusher_memory_request: Quantity,
    /// The memory that the pusher may use. It counts against the quota of the snapshot's namespace, like
    /// that of a machine.
    #[schemars(with = "String", extend("format" = formats::QUANTITY.name))]
    pub pusher_memory_limit: Quantity,
}

/// What builds an image and pushes it.
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
            container_export_img: "crownlabs/img-exporter".to_owned(),
            pusher: Pusher::default(),
            container_kaniko_img: "gcr.io/kaniko-project/executor".to_owned(),
            container_buildah_img: "quay.io/buildah/stable".to_owned(),
            pusher_memory_request: quantity("8Gi"),
            pusher_memory_limit: quantity("32Gi"),
        }
    }
}
