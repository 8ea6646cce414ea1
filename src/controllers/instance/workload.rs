//! The kinds of workloads, and the plan of a workload together with its `PersistentVolumeClaim` or cloud-init
//! Secret.

use super::environment::EnvironmentContext;
use super::machine::keys;
use super::mounts;
use super::resources::Resources;
use super::validate::unsupported;
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::reason;
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;

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
    /// The kind of the workload of an environment.
    pub fn of(environment: &Environment) -> Self {
        match (environment.environment_type.is_vm(), environment.persistent) {
            (false, _) => Self::Deployment,
            (true, true) => Self::VirtualMachine,
            (true, false) => Self::VirtualMachineInstance,
        }
    }
}

/// Plans the workload of an environment, and its claim or Secret. A workload that exists is kept, whatever the Template says
/// of its resources by now.
pub fn plan(context: &EnvironmentContext<'_>, plan: &mut Plan) {
    let problems = if context.is_machine() {
        machine(context, plan).err().into_iter().collect()
    } else {
        container(context, plan)
    };
    plan.problems.extend(problems);
}

/// Plans the `PersistentVolumeClaim` of a persistent environment, and its Deployment. Returns what prevents either.
fn container(context: &EnvironmentContext<'_>, plan: &mut Plan) -> Vec<Problem> {
    let environment = context.environment;
    if let EnvironmentType::Other(name) = &environment.environment_type {
        let message = format!(
            "environment {}: environmentType \"{name}\" is not known; VirtualMachine, CloudVM, LocalVM, \
             Container or Standalone is expected",
            environment.name
        );
        return vec![Problem::fault(context.component(), reason::INVALID_TEMPLATE, message)];
    }
    let mut problems = Vec::new();
    if environment.persistent {
        // The size in the Template is used at the creation of the claim only.
        match if context.has_claim() { Ok(String::new()) } else { Resources::disk(environment) } {
            Ok(disk) => context.claim(&disk).ensure(plan),
            Err(problem) => problems.push(problem),
        }
    }
    if context.has_workload() {
        context.workload().keep(plan);
        return problems;
    }
    match (Resources::of(environment), mounts::resolve(context.observed, environment)) {
        (Ok(resources), Ok(mounts)) if problems.is_empty() => {
            context.deployment(Some((&resources, &mounts))).ensure(plan);
        }
        (resources, mounts) => problems.extend(resources.err().into_iter().chain(mounts.err())),
    }
    problems
}

/// Plans the cloud-init Secret, and the machine. A `VirtualMachineInstance` is made only while the Instance runs.
fn machine(context: &EnvironmentContext<'_>, plan: &mut Plan) -> Result<(), Problem> {
    let (observed, environment) = (context.observed, context.environment);
    let exists = context.has_workload();
    if !exists && let Some(problem) = unsupported(observed, context.config, environment) {
        return Err(problem);
    }
    if context.is_standard() {
        let keys = keys(observed);
        plan.problems.extend(keys.rejected.iter().map(|(tenant, count)| {
            let message =
                format!("{count} of the public keys of Tenant {tenant} cannot be used and are left out");
            Problem::waiting(context.component(), reason::INVALID_PUBLIC_KEY, message)
        }));
        match mounts::resolve(observed, environment) {
            Ok(mounts) => context.secret(&keys, &mounts).ensure(plan),
            Err(problem) if exists => plan.problems.push(problem),
            Err(problem) => return Err(problem),
        }
    }
    if exists {
        context.workload().keep(plan);
        return Ok(());
    }
    let resources = Resources::of(environment)?;
    if environment.persistent {
        let disk = Resources::disk(environment)?;
        context.virtual_machine(Some((&resources, &disk))).ensure(plan);
    } else if observed.instance.spec.running {
        context.virtual_machine_instance(Some(&resources)).ensure(plan);
    }
    Ok(())
}
