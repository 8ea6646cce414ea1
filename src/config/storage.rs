//! The keys of mirrored volumes; see `docs/shared-volumes.md`.

use macro_rules_attribute::apply;

use super::formats;
use super::keys::{choice, keys};

keys! {
    /// How environments reach personal and shared volumes.
    pub struct Storage {
        /// `nfs` mounts them over NFS. `mirror` mounts claims that mirror them into the namespace of the Instance, so a
        /// machine needs no access to the NFS server. `mirror` needs the feature gate `CrossNamespaceVolumeDataSource` of
        /// the API server and a provisioner (`controllers.pvcMirror`). Existing workloads keep their mounts.
        pub mode: StorageMode,
        /// The storage class of mirror claims.
        pub mirror_class: String as formats::OBJECT_NAME = "pvc-mirror".to_owned(),
    }

    /// The mirror loop, which provisions the volumes of mirror claims.
    pub struct PvcMirrorConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool,
        /// The number of claims that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 4,
        /// The name of the provisioner, as in the storage class of mirror claims.
        pub provisioner: String as formats::OBJECT_NAME = "pmp.crownlabs.polito.it".to_owned(),
    }
}

/// How environments reach personal and shared volumes.
#[apply(choice)]
pub enum StorageMode {
    /// Over NFS.
    #[default]
    Nfs,
    /// Through claims that mirror them.
    Mirror,
}
