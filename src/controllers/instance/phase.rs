//! The phase of an environment, from the state of its workload; and the phase of the Instance, from those of
//! its environments.

use super::cause::{self, Cause};
use super::environment::EnvironmentContext;
use super::workload::Workload;
use crate::api::instance::InstancePhase as Phase;
use crate::kinds::{
    DataVolume, DataVolumeKind, Deployment, DeploymentKind, VirtualMachine, VirtualMachineInstance,
    VirtualMachineInstanceKind, VirtualMachineKind,
};

/// The phase of an environment, and why it does not run, if its objects say that. `None` while it has no workload.
///
/// The phase is that of the workload alone: [`Cause::phase`] comes before it.
pub fn of_workload(context: &EnvironmentContext<'_>) -> Option<(Phase, Option<Cause>)> {
    let (observed, name) = (context.observed, &context.name);
    let (running, persistent) = (observed.instance.spec.running, context.environment.persistent);
    let with = |phase: Phase, cause: &dyn Fn() -> Option<Cause>| {
        let is_settled = matches!(phase, Phase::Ready | Phase::Off | Phase::Stopping);
        (phase, if is_settled { None } else { cause() })
    };
    Some(match Workload::of(context.environment) {
        Workload::Deployment => {
            let found = observed.own::<DeploymentKind>(name)?;
            with(deployment(found, running, persistent), &|| cause::of_deployment(observed, found))
        }
        Workload::VirtualMachine => {
            let found = observed.own::<VirtualMachineKind>(name)?;
            let phase = virtual_machine(found, observed.named::<DataVolumeKind>(name));
            with(phase, &|| cause::of_machine(observed, found))
        }
        Workload::VirtualMachineInstance if running => {
            let found = observed.own::<VirtualMachineInstanceKind>(name)?;
            with(virtual_machine_instance(found), &|| cause::of_running_machine(observed, found))
        }
        Workload::VirtualMachineInstance => (Phase::Off, None),
    })
}

/// The phase of a `VirtualMachine` with this disk. A state in which it does not start or run has a [`Cause`].
pub fn virtual_machine(machine: &VirtualMachine, disk: Option<&DataVolume>) -> Phase {
    match &*machine.status.printable_status {
        // The import may have ended before the status of the machine shows that.
        "Provisioning" | "WaitingForVolumeBinding"
            if disk.is_none_or(|disk| disk.status.phase != "Succeeded") =>
        {
            Phase::Importing
        }
        "Running" | "Migrating" if machine.status.ready => Phase::Ready,
        "Running" | "Migrating" => Phase::Running,
        "Stopping" | "Terminating" => Phase::Stopping,
        "Stopped" => Phase::Off,
        // It has no status yet.
        "" => Phase::Unset,
        _ => Phase::Starting,
    }
}

/// The phase of a `VirtualMachineInstance` whose Instance runs. A phase in which it does not has a [`Cause`].
pub fn virtual_machine_instance(machine: &VirtualMachineInstance) -> Phase {
    let status = &machine.status;
    let is_ready =
        || status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    match &*status.phase {
        _ if machine.is_terminating() => Phase::Stopping,
        "Running" if is_ready() => Phase::Ready,
        "Running" => Phase::Running,
        "" => Phase::Unset,
        _ => Phase::Starting,
    }
}

/// The phase of a Deployment. `running` is that of the Instance, `persistent` that of the environment.
pub fn deployment(deployment: &Deployment, running: bool, persistent: bool) -> Phase {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let ready = deployment.status.ready_replicas.unwrap_or(0);
    if deployment.is_terminating() {
        Phase::Stopping
    } else if wanted == 0 || (!running && !persistent) {
        // A container without a disk keeps its pod when its Instance is stopped; to its user it is off.
        Phase::Off
    } else if wanted == ready {
        Phase::Ready
    } else {
        Phase::Starting
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
