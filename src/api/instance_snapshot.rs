//! Snapshots: container images made from the disk of a stopped instance.

use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{AGE, Column, CustomResource};
use super::object::{Kind, Object};
use super::reference::GenericRef;
use super::wire::{self, wire_enum};

/// The kind of [`InstanceSnapshot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceSnapshotKind;

/// An image made from the disk of an instance.
pub type InstanceSnapshot = Object<InstanceSnapshotKind>;

impl Kind for InstanceSnapshotKind {
    const GROUP: &'static str = super::GROUP;
    const VERSION: &'static str = "v1alpha2";
    const KIND: &'static str = "InstanceSnapshot";
    const PLURAL: &'static str = "instancesnapshots";
    const NAMESPACED: bool = true;
    type Spec = InstanceSnapshotSpec;
    type Status = InstanceSnapshotStatus;
}

impl CustomResource for InstanceSnapshotKind {
    const SHORT_NAMES: &'static [&'static str] = &["isnap"];
    const COLUMNS: &'static [Column] =
        &[Column::text("Phase", ".status.phase"), Column::text("ImageName", ".spec.imageName"), AGE];
    const DESCRIPTION: &'static str = "An image made from the disk of an instance.";
}

wire_enum!(
    /// How far a snapshot is.
    SnapshotPhase, default "", {
        /// Nothing is known yet.
        Unset = "",
        /// It waits.
        Pending = "Pending",
        /// The image is being made.
        Processing = "Processing",
        /// The image is in the registry.
        Completed = "Completed",
        /// There is no image.
        Failed = "Failed",
    }
);

/// What is made an image of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InstanceSnapshotSpec {
    /// The instance: a persistent virtual machine that is stopped.
    pub instance_ref: GenericRef,
    /// The environment of the instance; the first one if its name is empty.
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default)]
    pub environment_ref: GenericRef,
    /// The name of the image.
    #[schemars(length(min = 1))]
    pub image_name: String,
}

/// How a snapshot is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct InstanceSnapshotStatus {
    /// How far it is.
    pub phase: SnapshotPhase,
    /// The state of the snapshot in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}
