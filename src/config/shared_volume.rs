//! The keys of the loop over shared volumes: the flags of 03 §4.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;

/// The loop over `SharedVolumes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SharedVolumeConfig {
    /// Whether the loop runs; one that is off costs nothing and needs no rights.
    pub enabled: bool,
    /// How many volumes are worked on at the same time, 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The storage class of new volumes: one on NFS that lets claims grow.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub storage_class: String,
    /// The image of the Job that gives a new volume to the user of the machines; it has `chown`.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub provisioning_image: String,
}

impl Default for SharedVolumeConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            concurrency: 4,
            storage_class: "rook-nfs".to_owned(),
            provisioning_image: "busybox".to_owned(),
        }
    }
}
