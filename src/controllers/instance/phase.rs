//! The phase of an environment, from the state of its workload; and the phase of the Instance, from those of
//! its environments.

use crate::api::instance::InstancePhase as Phase;
use crate::kinds::{DataVolume, Deployment, ForeignCondition, VirtualMachine, VirtualMachineInstance};

/// A phase, and the reason for it where there is one to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phased {
    /// The phase.
    pub phase: Phase,
    /// The reason, for the message of a condition; empty for none.
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

/// The phase of a `VirtualMachine`.
pub fn virtual_machine(
    machine: &VirtualMachine,
    running: Option<&VirtualMachineInstance>,
    disk: Option<&DataVolume>,
) -> Phased {
    let status = machine.status.printable_status.as_str();
    let importing = || {
        // The import may have ended before the status of the machine shows that.
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

/// Why a machine failed: its status and the message of its first condition that is not true.
fn failure_cause(machine: &VirtualMachine) -> String {
    let status = &machine.status;
    let message = status
        .conditions
        .iter()
        .find(|condition| condition.status != "True" && !condition.message.is_empty())
        .map(|condition| condition.message.as_str());
    match message {
        Some(message) => format!("{}: {message}", status.printable_status),
        None => status.printable_status.clone(),
    }
}

/// The phase of a `VirtualMachineInstance` whose Instance runs.
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

/// The phase of a Deployment. `running` is that of the Instance, `persistent` that of the environment.
pub fn deployment(deployment: &Deployment, running: bool, persistent: bool) -> Phased {
    if deployment.is_terminating() {
        return Phase::Stopping.into();
    }
    // A container without a disk keeps its pod when its Instance is stopped; to its user it is off.
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

/// The phase of an Instance whose environments have these phases. The phase of a single environment is that
/// of the Instance.
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
