//! Snapshots: container images made from the disks of stopped virtual machines.

use macro_rules_attribute::apply;

use super::condition::Condition;
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON, Rule};
use super::object::kind;
use super::reference::GenericRef;
use super::wire::{Optional, resource_part, wire_enum};

kind!(
    /// An `InstanceSnapshot` as it is stored in the API server.
    InstanceSnapshotKind, InstanceSnapshot, super::GROUP, "v1alpha2", "InstanceSnapshot", "instancesnapshots", namespaced: true,
    InstanceSnapshotSpec, InstanceSnapshotStatus
);

impl CustomResource for InstanceSnapshotKind {
    const SHORT_NAMES: &'static [&'static str] = &["isnap"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Phase", ".status.phase"),
        Column::text("ImageName", ".spec.imageName"),
        Column::wide("Instance", ".spec.instanceRef.name"),
        REASON,
        MESSAGE,
        AGE,
    ];
    const DESCRIPTION: &'static str = "A container image, made once from the disk of \
        a stopped virtual machine and pushed to the registry.";
    // Optional fields are tested for presence first. An expression that fails would reject the change, too.
    const RULES: &'static [Rule] = &[Rule {
        rule: "!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase != 'Completed' \
            || !has(oldSelf.spec) || (has(self.spec) && self.spec == oldSelf.spec)",
        message: "the snapshot is complete, so a change of the spec has no effect: create another snapshot",
    }];
}

wire_enum!(
    /// The phase of a snapshot.
    SnapshotPhase, default "", {
        /// The snapshot has not been processed yet.
        Unset = "",
        /// The snapshot waits, for example for the virtual machine to shut down.
        Pending = "Pending",
        /// A Job exports the disk and pushes the image.
        Processing = "Processing",
        /// The image is in the registry. Final.
        Completed = "Completed",
        /// No image was made. Final, unless the spec is changed.
        Failed = "Failed",
    }
);

/// Desired state of the snapshot.
#[apply(resource_part)]
pub struct InstanceSnapshotSpec {
    /// Instance to make the image from, for example `{name: server-1}`. Required. It must be stopped and in
    /// the namespace of the snapshot.
    pub instance_ref: GenericRef,
    /// Environment of the instance, for example `{name: server}`; it must be a persistent virtual machine.
    /// Default: the first environment of the template.
    pub environment_ref: Optional<GenericRef>,
    /// Name of the image, without registry and tag, for example `lab-1`. Required. The image is pushed as
    /// `REGISTRY/TENANT/NAME:TIME`; the condition `Ready` has the full name.
    #[schemars(length(min = 1))]
    pub image_name: String,
}

/// Observed state of the snapshot.
#[apply(resource_part)]
pub struct InstanceSnapshotStatus {
    /// Generation of the spec that the status describes. If it is less than `metadata.generation`, the last change
    /// has not been processed yet.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Phase of the snapshot. `Pending`: it waits, for example until the virtual machine has shut down. `Processing`:
    /// the image is being made. `Completed`: the image is in the registry. `Failed`: no image was made. Empty: not
    /// processed yet. The condition `Ready` contains the reason.
    pub phase: SnapshotPhase,
    /// Conditions of the snapshot: `Ready`.
    pub conditions: Optional<Vec<Condition>>,
}
