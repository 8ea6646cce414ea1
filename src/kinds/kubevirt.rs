//! Kinds of KubeVirt and of CDI, its disk importer.

use macro_rules_attribute::apply;
use serde::Deserializer;
use serde_json::Value;

use super::{ForeignCondition, Unread, foreign_part, kept, kind};
use crate::api::text::Text;
use crate::api::wire::Optional;

/// The fields of the devices of a virtual machine that we read.
#[apply(foreign_part)]
pub struct Devices {
    /// The network interfaces, with all their fields: we write the list back with a fixed MAC address.
    pub interfaces: Optional<Vec<Value>>,
    /// The mirrored volumes.
    pub filesystems: Optional<Vec<Filesystem>>,
}

/// A folder that a virtual machine mounts over virtiofs.
#[apply(foreign_part)]
pub struct Filesystem {
    /// The name of its volume.
    pub name: String,
}

/// The fields of a domain that we read. A domain is the hardware of a virtual machine.
#[apply(foreign_part)]
pub struct Domain {
    /// The devices of the virtual machine.
    pub devices: Devices,
}

/// The fields of the spec in a template that we read.
#[apply(foreign_part)]
pub struct MachineSpec {
    /// The hardware of the virtual machine.
    pub domain: Domain,
}

/// The fields of the template of a `VirtualMachine` that we read.
#[apply(foreign_part)]
pub struct MachineTemplate {
    /// The spec of the `VirtualMachineInstance`.
    pub spec: MachineSpec,
}

/// The fields of a `VirtualMachine`'s spec that we read.
#[apply(foreign_part)]
pub struct VirtualMachineSpec {
    /// Whether the virtual machine should run; KubeVirt accepts either this or the strategy.
    pub running: Option<bool>,
    /// When the virtual machine should run: `Always`, `Halted`, `Manual`, `RerunOnFailure`, `Once`, …
    pub run_strategy: Option<Text>,
    /// The template of its `VirtualMachineInstance`.
    pub template: MachineTemplate,
}

/// The fields of a `VirtualMachine`'s status that we read.
#[apply(foreign_part)]
pub struct VirtualMachineStatus {
    /// The state for users: `Provisioning`, `Starting`, `Running`, …
    pub printable_status: String,
    /// Whether the readiness probe succeeds.
    pub ready: bool,
    /// The conditions, which report the cause of a failure.
    pub conditions: Vec<ForeignCondition>,
}
kind!(/// A `VirtualMachine`: a persistent virtual machine, running or stopped.
    VirtualMachineKind, VirtualMachine, "kubevirt.io", "v1", "VirtualMachine", "virtualmachines",
    namespaced: true, VirtualMachineSpec, VirtualMachineStatus);

/// A network interface of a running virtual machine.
#[apply(foreign_part)]
pub struct MachineInterface {
    /// The name of the interface in the spec.
    pub name: String,
    /// The MAC address.
    pub mac: String,
}

/// The fields of a `VirtualMachineInstance`'s status that we read.
#[apply(foreign_part)]
pub struct VirtualMachineInstanceStatus {
    /// `Pending`, `Scheduling`, `Scheduled`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// The conditions, such as `Ready` and `Synchronized`.
    pub conditions: Vec<ForeignCondition>,
    /// The network interfaces.
    pub interfaces: Vec<MachineInterface>,
}
kind!(/// A `VirtualMachineInstance`: a running virtual machine.
    VirtualMachineInstanceKind, VirtualMachineInstance, "kubevirt.io", "v1", "VirtualMachineInstance",
    "virtualmachineinstances", namespaced: true, Unread, VirtualMachineInstanceStatus);

/// The fields of a `DataVolume`'s status that we read.
#[apply(foreign_part)]
pub struct DataVolumeStatus {
    /// `Pending`, `ImportInProgress`, `Succeeded`, `Failed`, …
    pub phase: String,
    /// The progress of the import, for example `41.5%`, or `N/A`.
    pub progress: String,
    /// The number of restarts of the importer.
    pub restart_count: i32,
    /// The condition `Running` while it is false, except while the import is about to begin or is complete.
    #[serde(deserialize_with = "failed_import")]
    pub conditions: Vec<ForeignCondition>,
}

/// The reasons of imports that are about to begin or are complete.
const EXPECTED: [&str; 5] = ["", "Pending", "ContainerCreating", "PodInitializing", "Completed"];

fn failed_import<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| {
        condition.type_ == "Running" && condition.status == "False" && !EXPECTED.contains(&&*condition.reason)
    })
}
kind!(/// A `DataVolume`: the import of a disk.
    DataVolumeKind, DataVolume, "cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes",
    namespaced: true, Unread, DataVolumeStatus);
