//! Kinds of KubeVirt and of CDI, its importer of disks.

use macro_rules_attribute::apply;
use serde::Deserializer;
use serde_json::Value;

use super::{ForeignCondition, Unread, foreign_part, kept, kind};
use crate::api::text::Text;
use crate::api::wire::Optional;

/// The fields that we read of the devices of a virtual machine.
#[apply(foreign_part)]
pub struct Devices {
    /// The network interfaces, with all their fields: we write the list back with a fixed MAC address.
    pub interfaces: Optional<Vec<Value>>,
}

/// The fields that we read of a domain, the hardware of a virtual machine.
#[apply(foreign_part)]
pub struct Domain {
    /// The devices of the virtual machine.
    pub devices: Devices,
}

/// The fields that we read of the spec in a template.
#[apply(foreign_part)]
pub struct MachineSpec {
    /// The hardware of the virtual machine.
    pub domain: Domain,
}

/// The fields that we read of the template of a `VirtualMachine`.
#[apply(foreign_part)]
pub struct MachineTemplate {
    /// The spec of the `VirtualMachineInstance`.
    pub spec: MachineSpec,
}

/// The fields that we read of the spec of a `VirtualMachine`.
#[apply(foreign_part)]
pub struct VirtualMachineSpec {
    /// Whether the virtual machine should run; KubeVirt accepts either this or the strategy.
    pub running: Option<bool>,
    /// When the virtual machine should run: `Always`, `Halted`, `Manual`, `RerunOnFailure`, `Once`, …
    pub run_strategy: Option<Text>,
    /// The template of its `VirtualMachineInstance`.
    pub template: MachineTemplate,
}

/// The fields that we read of the status of a `VirtualMachine`.
#[apply(foreign_part)]
pub struct VirtualMachineStatus {
    /// The state for users: `Provisioning`, `Starting`, `Running`, …
    pub printable_status: String,
    /// Whether the readiness probe succeeds.
    pub ready: bool,
    /// The conditions, from which the cause of a failure is taken.
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

/// The fields that we read of the status of a `VirtualMachineInstance`.
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

/// The fields that we read of the status of a `DataVolume`.
#[apply(foreign_part)]
pub struct DataVolumeStatus {
    /// `Pending`, `ImportInProgress`, `Succeeded`, `Failed`, …
    pub phase: String,
    /// The progress of the import, for example `41.5%`, or `N/A`.
    pub progress: String,
    /// How often the importer was started again.
    pub restart_count: i32,
    /// The condition `Running` while it is false for another reason than that the import is about to begin or complete.
    #[serde(deserialize_with = "failed_import")]
    pub conditions: Vec<ForeignCondition>,
}

/// The reasons of imports that begin or are complete.
const EXPECTED: [&str; 5] = ["", "Pending", "ContainerCreating", "PodInitializing", "Completed"];

fn failed_import<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| {
        condition.type_ == "Running" && condition.status == "False" && !EXPECTED.contains(&&*condition.reason)
    })
}
kind!(/// A `DataVolume`: the import of a disk.
    DataVolumeKind, DataVolume, "cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes",
    namespaced: true, Unread, DataVolumeStatus);
