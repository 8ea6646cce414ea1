//! The kinds of workloads, and the plan of a workload together with its `PersistentVolumeClaim` or cloud-init
//! Secret.

use super::container;
use super::environment::EnvironmentContext;
use super::machine;
use super::mounts;
use super::observe::Observed;
use super::refusal::unsupported;
use super::resources::Resources;
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::reason;
use crate::config::InstanceConfig;
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, Plan};
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

    /// Whether the Instance has a workload of this kind and name.
    fn exists(self, observed: &Observed, name: &str) -> bool {
        let children = &observed.children;
        match self {
            Self::Deployment => observed.own(&children.deployments, name).is_some(),
            Self::VirtualMachine => observed.own(&children.machines, name).is_some(),
            Self::VirtualMachineInstance => observed.own(&children.machine_instances, name).is_some(),
        }
    }
}

/// Plans the workload of an environment.
pub fn plan(observed: &Observed, config: &InstanceConfig, context: &EnvironmentContext<'_>, plan: &mut Plan) {
    let workload = Workload::of(context.environment);
    let exists = workload.exists(observed, &context.name);
    let planned = match workload {
        Workload::Deployment => deployment(observed, config, context, exists, plan),
        _ => virtual_machine(observed, config, context, workload, exists, plan),
    };
    match planned {
        Ok(workload) => plan.ensure.extend(workload),
        Err(problems) => plan.problems.extend(problems),
    }
}

/// Plans the `PersistentVolumeClaim` of a persistent environment and returns its Deployment. The manifest of
/// the Deployment is built only if it does not exist.
fn deployment(
    observed: &Observed,
    config: &InstanceConfig,
    context: &EnvironmentContext<'_>,
    exists: bool,
    plan: &mut Plan,
) -> Result<Option<Desired>, Vec<Problem>> {
    let environment = context.environment;
    if let EnvironmentType::Other(name) = &environment.environment_type {
        let message = format!(
            "environment {}: environmentType \"{name}\" is not known; VirtualMachine, CloudVM, LocalVM, \
             Container or Standalone is expected",
            environment.name
        );
        return Err(vec![Problem::fault(
            Component::environment(&environment.name),
            reason::INVALID_TEMPLATE,
            message,
        )]);
    }
    let mut problems = Vec::new();
    if environment.persistent {
        // The size in the Template is used at the creation of the claim only.
        let has_claim = observed.own(&observed.children.claims, &context.name).is_some();
        let disk = if has_claim { Ok(String::new()) } else { Resources::disk(environment) };
        match disk {
            Ok(disk) => plan.ensure.push(container::claim(observed, context, &disk)),
            Err(problem) => problems.push(problem),
        }
    }
    if exists {
        plan.problems.extend(problems);
        return Ok(Some(container::deployment(observed, config, context, None)));
    }
    match (Resources::of(environment), mounts::resolve(observed, environment)) {
        (Ok(resources), Ok(mounts)) if problems.is_empty() => {
            let built = Some((&resources, mounts.as_slice()));
            Ok(Some(container::deployment(observed, config, context, built)))
        }
        (resources, mounts) => {
            problems.extend(resources.err().into_iter().chain(mounts.err()));
            Err(problems)
        }
    }
}

/// Plans the cloud-init Secret and returns the machine. Its manifest is built only if it does not exist; a
/// `VirtualMachineInstance` is created only while the Instance runs.
fn virtual_machine(
    observed: &Observed,
    config: &InstanceConfig,
    context: &EnvironmentContext<'_>,
    workload: Workload,
    exists: bool,
    plan: &mut Plan,
) -> Result<Option<Desired>, Vec<Problem>> {
    let environment = context.environment;
    if !exists && let Some(problem) = unsupported(observed, config, environment) {
        return Err(vec![problem]);
    }
    if context.is_standard() {
        let keys = machine::keys(observed);
        plan.problems.extend(keys.rejected.iter().map(|(tenant, count)| {
            let message =
                format!("{count} of the public keys of Tenant {tenant} cannot be used and are left out");
            Problem::waiting(Component::environment(&environment.name), reason::INVALID_PUBLIC_KEY, message)
        }));
        match mounts::resolve(observed, environment) {
            Ok(mounts) => plan.ensure.push(machine::secret(observed, config, context, &keys, &mounts)),
            Err(problem) if exists => plan.problems.push(problem),
            Err(problem) => return Err(vec![problem]),
        }
    }
    let resources =
        if exists { None } else { Some(Resources::of(environment).map_err(|problem| vec![problem])?) };
    match workload {
        Workload::VirtualMachine => {
            let disk = if exists {
                String::new()
            } else {
                Resources::disk(environment).map_err(|problem| vec![problem])?
            };
            let built = resources.as_ref().map(|resources| (resources, disk.as_str()));
            Ok(Some(machine::virtual_machine(observed, context, built)))
        }
        _ if exists || observed.instance.spec.running => {
            Ok(Some(machine::virtual_machine_instance(context, resources.as_ref())))
        }
        _ => Ok(None),
    }
}
