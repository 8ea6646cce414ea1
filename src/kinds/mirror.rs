//! Claims and volumes as the provisioner of mirrored volumes reads them.

use macro_rules_attribute::apply;
use serde_json::Value;

use super::{foreign_part, kind};
use crate::api::text::Text;
use crate::api::wire::Optional;

/// The object that a claim gets its content from.
#[apply(foreign_part)]
pub struct DataSource {
    /// Its API group; absent or empty for the core group.
    pub api_group: Option<Text>,
    /// Its kind, such as `PersistentVolumeClaim`.
    pub kind: Text,
    /// Its name.
    pub name: Text,
    /// Its namespace; absent for the namespace of the claim.
    pub namespace: Option<Text>,
}

/// The spec fields of a claim that may be a mirror, or the origin of one.
#[apply(foreign_part)]
pub struct MirrorClaimSpec {
    /// Its access modes, such as `ReadWriteMany`.
    pub access_modes: Optional<Vec<Text>>,
    /// Its storage class.
    pub storage_class_name: Option<Text>,
    /// `Filesystem`, which is the default, or `Block`.
    pub volume_mode: Option<Text>,
    /// The name of the volume that the claim is bound to.
    pub volume_name: Option<Text>,
    /// The origin of a mirror. An API server without the feature gate `CrossNamespaceVolumeDataSource` drops it.
    pub data_source_ref: Option<DataSource>,
}
/// The status fields of such a claim.
#[apply(foreign_part)]
pub struct MirrorClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    pub phase: Option<Text>,
    /// The access modes of the volume that it is bound to.
    pub access_modes: Optional<Vec<Text>>,
}
kind!(/// A `PersistentVolumeClaim` that may be a mirror, or the origin of one.
    MirrorClaimKind, MirrorClaim, "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced: true,
    MirrorClaimSpec, MirrorClaimStatus, encoded: true);

/// The spec fields of a `PersistentVolume` that may be a mirror, or the origin of one.
#[apply(foreign_part)]
pub struct MirrorVolumeSpec {
    /// The source of a volume of a CSI driver, with all its fields: a mirror gets a copy.
    pub csi: Option<Value>,
    /// The mount options.
    pub mount_options: Optional<Vec<Text>>,
    /// `Filesystem`, which is the default, or `Block`.
    pub volume_mode: Option<Text>,
    /// What happens to the volume when its claim is deleted.
    pub persistent_volume_reclaim_policy: Option<Text>,
    /// The claim that it is bound to.
    pub claim_ref: Option<ClaimReference>,
}
/// The claim of a volume.
#[apply(foreign_part)]
pub struct ClaimReference {
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
    /// Its uid.
    pub uid: Text,
}
/// The status fields of such a volume.
#[apply(foreign_part)]
pub struct MirrorVolumeStatus {
    /// `Available`, `Bound`, `Released` or `Failed`.
    pub phase: Option<Text>,
}
kind!(/// A `PersistentVolume` that may be a mirror, or the origin of one.
    MirrorVolumeKind, MirrorVolume, "", "v1", "PersistentVolume", "persistentvolumes", namespaced: false,
    MirrorVolumeSpec, MirrorVolumeStatus, encoded: true);
