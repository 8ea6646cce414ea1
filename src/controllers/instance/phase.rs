//! From the state of a workload to the phase of its environment (02 §9.1), and from the phases of
//! environments to that of the Instance (01 §12).

use crate::api::instance::InstancePhase as Phase;
use crate::kinds::{DataVolume, Deployment, ForeignCondition, VirtualMachine, VirtualMachineInstance};

/// A phase, and its cause where there is one to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phased {
    /// The phase.
    pub phase: Phase,
    /// What the cluster says of it, for the condition.
    pub cause: String,
}

impl From<Phase> for Phased {
    fn from(phase: Phase) -> Self {
        Self { phase, cause: String::new() }
    }
}

fn exceeds_quota(conditions: &[ForeignCondition], type_: &str, status: &str) -> bool {
    conditions
        .iter()
        .find(|condition| {
            condition.type_ == type_ && condition.status == status && condition.reason == "FailedCreate"
        })
        .is_some_and(|condition| condition.message.contains("exceeded quota"))
}

fn machine_exceeds_quota(machine: Option<&VirtualMachineInstance>) -> bool {
    machine.is_some_and(|machine| exceeds_quota(&machine.status.conditions, "Synchronized", "False"))
}

/// Of a virtual machine with a disk.
pub fn virtual_machine(
    machine: &VirtualMachine,
    running: Option<&VirtualMachineInstance>,
    disk: Option<&DataVolume>,
) -> Phased {
    let status = machine.status.printable_status.as_str();
    let importing = || {
        // The importer may be done before the machine's own status says so (00 decision 17).
        match disk {
            Some(disk) if disk.status.phase == "Succeeded" => Phase::Starting.into(),
            Some(disk) if !disk.status.progress.is_empty() && disk.status.progress != "N/A" => {
                Phased { phase: Phase::Importing, cause: format!("{} imported", disk.status.progress) }
            }
            _ => Phase::Importing.into(),
        }
    };
    let up = || if machine.status.ready { Phase::Ready } else { Phase::Running };
    match status {
        "Provisioning" | "WaitingForVolumeBinding" => importing(),
        "Starting" if machine_exceeds_quota(running) => Phase::ResourceQuotaExceeded.into(),
        "Starting" => Phase::Starting.into(),
        "Running" | "Migrating" => up().into(),
        "Stopping" | "Terminating" => Phase::Stopping.into(),
        "Stopped" => Phase::Off.into(),
        "ErrImagePull" | "ImagePullBackOff" | "DataVolumeError" | "ErrorPvcNotFound" | "CrashLoopBackOff"
        | "ErrorUnschedulable" => Phased { phase: Phase::Failed, cause: failure_cause(machine) },
        _ => Phase::Unset.into(),
    }
}

/// Why a machine failed, in `KubeVirt`'s words.
fn failure_cause(machine: &VirtualMachine) -> String {
    let status = &machine.status;
    let told = status
        .conditions
        .iter()
        .find(|condition| condition.status != "True" && !condition.message.is_empty())
        .map(|condition| condition.message.as_str());
    match told {
        Some(message) => format!("{}: {message}", status.printable_status),
        None => status.printable_status.clone(),
    }
}

/// Of a virtual machine without a disk, while it should run.
pub fn virtual_machine_instance(machine: &VirtualMachineInstance) -> Phased {
    if machine.is_terminating() {
        return Phase::Stopping.into();
    }
    let ready = machine
        .status
        .conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    match machine.status.phase.as_str() {
        "Pending" if machine_exceeds_quota(Some(machine)) => Phase::ResourceQuotaExceeded.into(),
        "Pending" | "Scheduling" | "Scheduled" => Phase::Starting.into(),
        "Running" if ready => Phase::Ready.into(),
        "Running" => Phase::Running.into(),
        state @ ("Succeeded" | "Failed" | "Unknown") => Phased {
            phase: Phase::Failed,
            cause: format!("the virtual machine is {state}; delete the Instance and make it anew"),
        },
        _ => Phase::Unset.into(),
    }
}

/// Of a container, which should run or not.
pub fn deployment(deployment: &Deployment, running: bool, persistent: bool) -> Phased {
    if deployment.is_terminating() {
        return Phase::Stopping.into();
    }
    // Stopping a container that has no disk leaves its pod alone; for its user it is off.
    if !running && !persistent {
        return Phase::Off.into();
    }
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let ready = deployment.status.ready_replicas.unwrap_or(0);
    if wanted == 0 {
        Phase::Off.into()
    } else if wanted == ready {
        Phase::Ready.into()
    } else if exceeds_quota(&deployment.status.conditions, "ReplicaFailure", "True") {
        Phase::ResourceQuotaExceeded.into()
    } else {
        Phase::Starting.into()
    }
}

/// Of an Instance with these environments. One environment's phase is the Instance's.
pub fn overall(phases: &[Phase]) -> Phase {
    let any = |wanted: &[Phase]| phases.iter().any(|phase| wanted.contains(phase));
    let all = |wanted: Phase| !phases.is_empty() && phases.iter().all(|phase| *phase == wanted);
    if let [only] = phases {
        only.clone()
    } else if any(&[Phase::Failed, Phase::CreationLoopBackoff]) {
        Phase::Failed
    } else if any(&[Phase::ResourceQuotaExceeded]) {
        Phase::ResourceQuotaExceeded
    } else if all(Phase::Ready) {
        Phase::Ready
    } else if any(&[Phase::Ready, Phase::Running]) {
        Phase::Running
    } else if any(&[Phase::Starting, Phase::Importing]) {
        Phase::Starting
    } else if any(&[Phase::Stopping]) {
        Phase::Stopping
    } else if all(Phase::Off) {
        Phase::Off
    } else {
        Phase::Unset
    }
}
