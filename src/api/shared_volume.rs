//! Shared volumes: network folders of a course.

use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{AGE, Column, CustomResource};
use super::object::{Kind, Object};
use super::quantity::RawQuantity;
use super::wire::wire_enum;

/// The kind of [`SharedVolume`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedVolumeKind;

/// A network folder of a course.
pub type SharedVolume = Object<SharedVolumeKind>;

impl Kind for SharedVolumeKind {
    const GROUP: &'static str = super::GROUP;
    const VERSION: &'static str = "v1alpha2";
    const KIND: &'static str = "SharedVolume";
    const PLURAL: &'static str = "sharedvolumes";
    const NAMESPACED: bool = true;
    type Spec = SharedVolumeSpec;
    type Status = SharedVolumeStatus;
}

impl CustomResource for SharedVolumeKind {
    const SHORT_NAMES: &'static [&'static str] = &["shvol"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Pretty Name", ".spec.prettyName"),
        Column::text("Size", ".spec.size"),
        Column::text("Phase", ".status.phase"),
        AGE,
    ];
    const DESCRIPTION: &'static str = "A network folder of a course.";
}

wire_enum!(
    /// How far a shared volume is.
    SharedVolumePhase, default "", {
        /// Nothing is known yet.
        Unset = "",
        /// It waits for its storage.
        Pending = "Pending",
        /// Its storage is being prepared.
        Provisioning = "Provisioning",
        /// It can be mounted.
        Ready = "Ready",
        /// It is being deleted.
        Deleting = "Deleting",
        /// The quota is used up.
        ResourceQuotaExceeded = "ResourceQuotaExceeded",
        /// It cannot be prepared.
        Error = "Error",
    }
);

/// What a shared volume is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct SharedVolumeSpec {
    /// The name that users see.
    pub pretty_name: String,
    /// Its size, which may only grow.
    pub size: RawQuantity,
}

/// How a shared volume is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct SharedVolumeStatus {
    /// The NFS server that exports it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub server_address: String,
    /// The path under which it is exported.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub export_path: String,
    /// The persistent volume behind it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub pv_name: String,
    /// How far it is.
    #[serde(skip_serializing_if = "SharedVolumePhase::is_empty")]
    #[schemars(default)]
    pub phase: SharedVolumePhase,
    /// The state of the shared volume in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}
