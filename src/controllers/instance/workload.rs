//! The kinds of workloads, and the plan of a workload with its `PersistentVolumeClaim` or cloud-init Secret, and its mirrors.

use super::environment::EnvironmentContext;
use super::mirrors;
use super::mounts::Mount;
use super::plan::Plan;
use super::validate::Inputs;
use crate::api::environment::Environment;
use crate::api::resources::Resources;

/// The kind of the workload of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// A Deployment, of a container environment, persistent or not.
    Deployment,
    /// A `VirtualMachine`, of a persistent environment.
    VirtualMachine,
    /// A `VirtualMachineInstance`, of an environment without a disk.
    VirtualMachineInstance,
}

impl Workload {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::VirtualMachine, Self::VirtualMachineInstance];

    /// The kind of the workload of an environment.
    pub fn of(environment: &Environment) -> Self {
        match (environment.environment_type.is_vm(), environment.persistent) {
            (false, _) => Self::Deployment,
            (true, true) => Self::VirtualMachine,
            (true, false) => Self::VirtualMachineInstance,
        }
    }
}

/// The input for a new workload.
#[derive(Debug)]
pub struct Material {
    /// Its resources.
    pub resources: Resources,
    /// The size of the disk of a `VirtualMachine`.
    pub disk: String,
    /// The volumes that it mounts.
    pub mounts: Vec<Mount>,
}

/// Plans the workload of an environment, and its claim or Secret. An existing workload is kept even if the Template now
/// specifies other resources. A `VirtualMachineInstance` is created only while the Instance runs.
pub fn plan(context: &EnvironmentContext<'_>, inputs: &Inputs, plan: &mut Plan) {
    let Inputs { claim, cloud_init, material, problems } = inputs;
    plan.problems.extend_from_slice(problems);
    if let Some(disk) = claim {
        context.claim(disk).ensure(plan);
    }
    if let Some((keys, mounts)) = cloud_init {
        context.secret(keys, mounts).ensure(plan);
    }
    if material.is_some() || context.workload(None).is_own() {
        mirrors::plan_mirrors(context, plan);
    }
    let is_off = !context.observed.instance.spec.running;
    match (Workload::of(context.environment), material) {
        (_, None) => context.workload(None).keep(plan),
        (Workload::VirtualMachineInstance, Some(_)) if is_off => {}
        (_, Some(_)) => context.workload(material.as_ref()).ensure(plan),
    }
}
