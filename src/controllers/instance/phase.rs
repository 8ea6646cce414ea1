//! The phase of an environment, derived from the state of its workload, and the phase of the Instance, derived from its
//! environments.

use super::cause::{self, Cause};
use super::environment::EnvironmentContext;
use super::observe::Observed;
use super::told;
use super::workload::Workload;
use crate::api::instance::{InstancePhase as Phase, StartStep};
use crate::api::labels;
use crate::kinds::{
    DataVolume, DataVolumeKind, Deployment, DeploymentKind, VirtualMachine, VirtualMachineInstance,
    VirtualMachineInstanceKind, VirtualMachineKind,
};

/// The phase of an environment, and the cause if its objects report why it does not run. `None` while it has no
/// workload.
///
/// The phase depends only on the workload. [`Cause::phase`] takes precedence over it.
pub fn of_workload(context: &EnvironmentContext<'_>) -> Option<(Phase, Option<Cause>)> {
    let observed = context.observed;
    let (running, persistent) = (observed.instance.spec.running, context.environment.persistent);
    let with = |phase: Phase, cause: &dyn Fn() -> Option<Cause>| {
        let is_settled = is_settled(&phase);
        (phase, if is_settled { None } else { told::explained(context, cause()) })
    };
    Some(match Workload::of(context.environment) {
        Workload::Deployment => {
            let found = context.own::<DeploymentKind>()?;
            with(deployment(found, running, persistent), &|| cause::of_deployment(observed, found))
        }
        Workload::VirtualMachine => {
            let found = context.own::<VirtualMachineKind>()?;
            let phase = virtual_machine(found, context.named::<DataVolumeKind>());
            let class = &context.environment.storage_class_name;
            let of_class = || cause::of_disk_class(observed, found, class);
            with(phase, &|| cause::of_machine(observed, found).or_else(of_class))
        }
        Workload::VirtualMachineInstance if running => {
            let found = context.own::<VirtualMachineInstanceKind>()?;
            with(virtual_machine_instance(found), &|| cause::of_running_machine(observed, found))
        }
        Workload::VirtualMachineInstance => (Phase::Off, None),
    })
}

/// The phase of an environment whose Template is unknown, according to the workload with this name.
pub fn of_name(observed: &Observed, name: &str) -> Option<Phase> {
    let instance = &observed.instance;
    let persistent = instance.label(labels::PERSISTENT) == Some("true");
    let container = observed.own::<DeploymentKind>(name);
    let machine = observed.own::<VirtualMachineKind>(name);
    container
        .map(|found| deployment(found, instance.spec.running, persistent))
        .or_else(|| machine.map(|found| virtual_machine(found, observed.named::<DataVolumeKind>(name))))
        .or_else(|| observed.own::<VirtualMachineInstanceKind>(name).map(virtual_machine_instance))
}

/// The step of the start of an environment, according to the newest live pod of its workload.
pub fn step(context: &EnvironmentContext<'_>, phase: &Phase) -> StartStep {
    if !matches!(phase, Phase::Starting | Phase::Running) {
        return StartStep::Unset;
    }
    let observed = context.observed;
    let pod = if context.is_machine() {
        let machine = context.named::<VirtualMachineInstanceKind>();
        machine.and_then(|machine| cause::live_pod(observed, machine))
    } else {
        context.own::<DeploymentKind>().and_then(|container| cause::live_pod(observed, container))
    };
    let Some(pod) = pod else { return StartStep::Scheduling };
    let status = &pod.status;
    if status.phase.as_deref() == Some("Running") {
        StartStep::Booting
    } else if pod.spec.node_name.as_deref().unwrap_or_default().is_empty() {
        StartStep::Scheduling
    } else if cause::condition(&status.conditions, ("PodReadyToStartContainers", "False")).is_some() {
        StartStep::Preparing
    } else {
        StartStep::Pulling
    }
}

/// Whether an environment in this phase is not waiting, so that it has no [`Cause`].
pub fn is_settled(phase: &Phase) -> bool {
    matches!(phase, Phase::Ready | Phase::Off | Phase::Stopping)
}

/// The phase of a `VirtualMachine` with this disk. A state that prevents starting or running has a [`Cause`].
pub fn virtual_machine(machine: &VirtualMachine, disk: Option<&DataVolume>) -> Phase {
    match &*machine.status.printable_status {
        // The import may end before the machine's status shows it.
        "Provisioning" | "WaitingForVolumeBinding"
            if disk.is_none_or(|disk| disk.status.phase != "Succeeded") =>
        {
            Phase::Importing
        }
        "Running" | "Migrating" if machine.status.ready => Phase::Ready,
        "Running" | "Migrating" => Phase::Running,
        "Stopping" | "Terminating" => Phase::Stopping,
        "Stopped" => Phase::Off,
        // The machine has no status yet.
        "" => Phase::Unset,
        _ => Phase::Starting,
    }
}

/// The phase of a `VirtualMachineInstance` whose Instance runs. A phase that prevents running has a [`Cause`].
pub fn virtual_machine_instance(machine: &VirtualMachineInstance) -> Phase {
    let status = &machine.status;
    let is_ready = || cause::condition(&status.conditions, ("Ready", "True")).is_some();
    match &*status.phase {
        _ if machine.is_terminating() => Phase::Stopping,
        "Running" if is_ready() => Phase::Ready,
        "Running" => Phase::Running,
        "" => Phase::Unset,
        _ => Phase::Starting,
    }
}

/// The phase of a Deployment. `running` refers to the Instance, `persistent` to the environment.
pub fn deployment(deployment: &Deployment, running: bool, persistent: bool) -> Phase {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let ready = deployment.status.ready_replicas.unwrap_or(0);
    if deployment.is_terminating() {
        Phase::Stopping
    } else if wanted == 0 || (!running && !persistent) {
        // A container without a disk keeps its pod when its Instance is stopped. For its user, it is off.
        Phase::Off
    } else if wanted == ready {
        Phase::Ready
    } else {
        Phase::Starting
    }
}

/// The phase of an Instance whose environments have these phases. With a single environment, the Instance has the same
/// phase.
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
