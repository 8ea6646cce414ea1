//! Kinds of KubeVirt and of CDI, its importer of disks.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ForeignCondition, Unread, kind};

/// The fields that we read of the devices of a virtual machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Devices {
    /// The network interfaces, with all their fields: we write the list back with a fixed MAC address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Value>,
}

/// The fields that we read of a domain, the hardware of a virtual machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Domain {
    /// The devices of the virtual machine.
    pub devices: Devices,
}

/// The fields that we read of the spec in a template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSpec {
    /// The hardware of the virtual machine.
    pub domain: Domain,
}

/// The fields that we read of the template of a `VirtualMachine`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineTemplate {
    /// The spec of the `VirtualMachineInstance`.
    pub spec: MachineSpec,
}

/// The fields that we read of the spec of a `VirtualMachine`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualMachineSpec {
    /// Whether the virtual machine should run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<bool>,
    /// The template of its `VirtualMachineInstance`.
    pub template: MachineTemplate,
}

/// The fields that we read of the status of a `VirtualMachine`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineInterface {
    /// The name of the interface in the spec.
    pub name: String,
    /// The MAC address.
    pub mac: String,
}

/// The fields that we read of the status of a `VirtualMachineInstance`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataVolumeStatus {
    /// `Pending`, `ImportInProgress`, `Succeeded`, `Failed`, …
    pub phase: String,
    /// The progress of the import, for example `41.5%`, or `N/A`.
    pub progress: String,
}
kind!(/// A `DataVolume`: the import of a disk.
    DataVolumeKind, DataVolume, "cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes",
    namespaced: true, Unread, DataVolumeStatus);
