//! Kinds of `KubeVirt` and of its importer, CDI.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ForeignCondition, Unread, kind};

/// The part of a machine's devices that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Devices {
    /// Network interfaces, as they are: one of them may get its address pinned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Value>,
}

/// The part of a domain that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Domain {
    /// Devices.
    pub devices: Devices,
}

/// The part of a machine's spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSpec {
    /// Domain.
    pub domain: Domain,
}

/// The part of a machine's template that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineTemplate {
    /// The machine.
    pub spec: MachineSpec,
}

/// The part of a `VirtualMachine`'s spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualMachineSpec {
    /// Whether it should run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<bool>,
    /// What it runs.
    pub template: MachineTemplate,
}

/// The part of a `VirtualMachine`'s status that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualMachineStatus {
    /// `Provisioning`, `Starting`, `Running`, …
    pub printable_status: String,
    /// Whether its readiness probe succeeds.
    pub ready: bool,
    /// Conditions, for the cause of a failure.
    pub conditions: Vec<ForeignCondition>,
}
kind!(/// A virtual machine with a disk of its own.
    VirtualMachineKind, VirtualMachine, "kubevirt.io", "v1", "VirtualMachine", "virtualmachines",
    namespaced: true, VirtualMachineSpec, VirtualMachineStatus);

/// A network interface of a running machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineInterface {
    /// The name of its network.
    pub name: String,
    /// Its hardware address.
    pub mac: String,
}

/// The part of a `VirtualMachineInstance`'s status that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VirtualMachineInstanceStatus {
    /// `Pending`, `Scheduling`, `Scheduled`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// `Ready`, `Synchronized`.
    pub conditions: Vec<ForeignCondition>,
    /// Network interfaces.
    pub interfaces: Vec<MachineInterface>,
}
kind!(/// A running virtual machine.
    VirtualMachineInstanceKind, VirtualMachineInstance, "kubevirt.io", "v1", "VirtualMachineInstance",
    "virtualmachineinstances", namespaced: true, Unread, VirtualMachineInstanceStatus);

/// The part of a `DataVolume`'s status that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataVolumeStatus {
    /// `Pending`, `ImportInProgress`, `Succeeded`, `Failed`, …
    pub phase: String,
    /// How much is imported, for example `41.5%`.
    pub progress: String,
}
kind!(/// A disk that is being filled.
    DataVolumeKind, DataVolume, "cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes",
    namespaced: true, Unread, DataVolumeStatus);
