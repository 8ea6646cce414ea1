//! The keys of the shared volume loop; see `docs/shared-volumes.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;

/// The shared volume loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SharedVolumeConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of shared volumes that are reconciled at the same time, from 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The storage class of new volumes, which must provide NFS and allow volumes to be expanded.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub storage_class: String,
    /// The image of the Job that sets the owner of a new volume; it must contain `chown`.
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
