//! The keys of the shared volume loop; see `docs/shared-volumes.md`.

use super::formats;
use super::keys::keys;

keys! {
    /// The shared volume loop.
    pub struct SharedVolumeConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of shared volumes that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 4,
        /// The storage class of new volumes, which must provide NFS and allow volumes to be expanded.
        pub storage_class: String as formats::OBJECT_NAME = "rook-nfs".to_owned(),
        /// The image of the Job that sets the owner of a new volume; it must contain `chown`.
        pub provisioning_image: String as formats::IMAGE = "busybox".to_owned(),
    }
}
