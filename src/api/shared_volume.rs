//! Shared volumes: NFS folders of a course, which Templates mount into their environments.

use macro_rules_attribute::apply;

use super::condition::Condition;
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON};
use super::object::kind;
use super::quantity::RawQuantity;
use super::wire::{Optional, resource_part, wire_enum};

kind!(
    /// A `SharedVolume` as it is stored in the API server.
    SharedVolumeKind, SharedVolume, super::GROUP, "v1alpha2", "SharedVolume", "sharedvolumes", namespaced: true,
    SharedVolumeSpec, SharedVolumeStatus
);

impl CustomResource for SharedVolumeKind {
    const SHORT_NAMES: &'static [&'static str] = &["shvol"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Pretty Name", ".spec.prettyName"),
        Column::text("Size", ".spec.size"),
        Column::text("Phase", ".status.phase"),
        REASON,
        MESSAGE,
        AGE,
    ];
    const DESCRIPTION: &'static str =
        "An NFS folder of a course, which templates mount into their environments.";
}

wire_enum!(
    /// The phase of a shared volume.
    SharedVolumePhase, default "", {
        /// The volume has not been processed yet.
        Unset = "",
        /// The claim waits for its storage.
        Pending = "Pending",
        /// A Job prepares the folder.
        Provisioning = "Provisioning",
        /// The volume can be mounted.
        Ready = "Ready",
        /// The volume is being deleted; the condition `DeletionBlocked` names the remaining users.
        Deleting = "Deleting",
        /// The quota of the namespace does not allow the claim; it is retried automatically.
        ResourceQuotaExceeded = "ResourceQuotaExceeded",
        /// The volume cannot be prepared; the condition `Reconciled` says why.
        Error = "Error",
    }
);

/// Desired state of the shared volume.
#[apply(resource_part)]
pub struct SharedVolumeSpec {
    /// Name shown to users, for example `Course materials`. Required.
    pub pretty_name: String,
    /// Size of the volume, for example `10Gi`. Required. It can be increased, but not decreased.
    pub size: RawQuantity,
}

/// Observed state of the shared volume.
#[apply(resource_part)]
pub struct SharedVolumeStatus {
    /// Generation of the spec that the status describes. If it is less than `metadata.generation`, the last change
    /// has not been processed yet.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Host name or IP address of the NFS server.
    pub server_address: Optional<String>,
    /// Path that the NFS server exports.
    pub export_path: Optional<String>,
    /// Name of the `PersistentVolume` that is bound to the claim.
    pub pv_name: Optional<String>,
    /// Phase of the volume. `Pending`: its claim waits for storage. `Provisioning`: the folder is being prepared.
    /// `Ready`: it can be mounted. `ResourceQuotaExceeded`: the quota of the namespace does not allow it. `Error`: it
    /// cannot be prepared. `Deleting`: it is deleted as soon as it is not in use. Empty: not processed yet. The
    /// conditions contain the reason.
    pub phase: Optional<SharedVolumePhase>,
    /// Conditions of the volume: `Ready`, `Reconciled`, and `DeletionBlocked` if it is deleted while in use.
    pub conditions: Optional<Vec<Condition>>,
}
