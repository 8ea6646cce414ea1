//! Why an Instance, or one of its environments, cannot be made: invalid input, missing objects, names that
//! other owners have taken, and features that the cluster or the configuration does not have.

use std::collections::BTreeSet;

use super::access;
use super::cloud_init::Keys;
use super::environment::EnvironmentContext;
use super::machine::keys;
use super::mounts::{self, Mount};
use super::observe::Observed;
use super::workload::Material;
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::names::{self, check_dns_label};
use crate::api::reason;
use crate::api::resources::Resources;
use crate::api::template_fault::TemplateFault;
use crate::config::{AccessMode, InstanceConfig};
use crate::controllers::shared::environments::{choose, refused_image};
use crate::controllers::shared::references::template_key;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// What is made for an Instance, as far as its Template and its names allow it.
pub struct Validated<'a> {
    /// Why nothing is made for the whole Instance.
    pub refusal: Option<Problem>,
    /// Its environments, in the order of the Template.
    pub environments: Vec<EnvironmentContext<'a>>,
    /// The names of those that have been removed from the Template.
    pub removed: Vec<String>,
}

/// Validates an Instance.
pub fn validate<'a>(observed: &'a Observed, config: &'a InstanceConfig) -> Validated<'a> {
    let (chosen, removed) =
        choose(&observed.instance, observed.environments(), config.layout, |name| observed.has_object(name));
    let environments = chosen.into_iter().map(|chosen| EnvironmentContext::new(observed, config, &chosen));
    Validated { refusal: refusal(observed), environments: environments.collect(), removed }
}

/// The problem that concerns the whole Instance, if there is one.
fn refusal(observed: &Observed) -> Option<Problem> {
    let spec = &observed.instance.spec;
    if let Some(fault) = &observed.instance.malformed {
        return Some(Problem::fault(
            Component::Whole,
            reason::INVALID_SPEC,
            format!("the Instance cannot be read: {fault}"),
        ));
    }
    if let Some(problem) = &observed.foreign_tenant {
        return Some(problem.clone());
    }
    let key = template_key(&observed.instance);
    let Some(template) = &observed.template else {
        return Some(Problem::elsewhere(
            Component::Whole,
            reason::TEMPLATE_NOT_FOUND,
            format!("Template {}/{} not found", key.namespace, key.name),
        ));
    };
    if observed.tenant.is_none() {
        return Some(Problem::elsewhere(
            Component::Whole,
            reason::TENANT_NOT_FOUND,
            format!("Tenant {} not found", spec.tenant_ref.name),
        ));
    }
    if let Some(fault) = &template.malformed {
        return Some(Problem::fault(
            Component::Whole,
            reason::INVALID_TEMPLATE,
            format!("Template {key} cannot be read: {fault}"),
        ));
    }
    let mut names = BTreeSet::new();
    for environment in &template.spec.environment_list {
        if !names.insert(&environment.name) {
            let message = format!("Template {key} has two environments named {}", environment.name);
            return Some(Problem::fault(Component::Whole, reason::INVALID_TEMPLATE, message));
        }
    }
    let name_owner = observed.name_owner.as_ref()?;
    let message = format!(
        "the objects of this Instance would have the names of those of Instance {name_owner}, which is older: \
         give it another name (dots and dashes count as the same)"
    );
    Some(Problem::fault(Component::Whole, reason::NAME_CONFLICT, message))
}

/// The problem that the Template has no environment: the Instance has its labels and its name, but no objects.
pub fn no_environment(observed: &Observed) -> Option<Problem> {
    let key = template_key(&observed.instance);
    observed.environments().is_empty().then(|| {
        let message =
            format!("Template {key} has no environment: spec.environmentList must name at least one");
        Problem::fault(Component::Whole, reason::INVALID_TEMPLATE, message)
    })
}

/// The problem of an environment whose name, or that of the Instance, cannot be a part of the names of its objects.
pub fn invalid_name(context: &EnvironmentContext<'_>) -> Option<Problem> {
    if let Err(error) = names::check_instance(context.observed.instance.name(), context.suffix()) {
        return Some(Problem::fault(context.component(), reason::INVALID_NAME, error.to_string()));
    }
    let environment = context.environment;
    let is_reserved =
        context.config.access.mode == AccessMode::PerInstance && environment.name == access::COMPONENT;
    let error = match check_dns_label(&environment.name) {
        Err(error) => error.to_string(),
        Ok(()) if is_reserved => {
            format!("name \"{}\" is reserved for the OAuth2 proxy of the Instance", environment.name)
        }
        Ok(()) => return None,
    };
    if context.classic {
        return None;
    }
    let message = format!("spec.environmentList of the Template: {error}");
    Some(Problem::fault(Component::environment(&environment.name), reason::INVALID_TEMPLATE, message))
}

/// The name conflict of an environment: an object of another owner that has the name of one of its objects.
pub fn conflict(context: &EnvironmentContext<'_>) -> Option<Problem> {
    let taken = context.conflict()?;
    let message = format!("{taken}: it is left alone, and nothing is made for this Instance");
    Some(Problem::fault(context.component(), reason::NAME_CONFLICT, message))
}

/// What the workload of an environment, and its claim or Secret, are made of, as far as nothing is wrong with it.
#[derive(Default)]
pub struct Inputs {
    /// The size of the claim of a container. An existing one keeps what it has.
    pub claim: Option<String>,
    /// The keys and mounts in the cloud-init document of a virtual machine.
    pub cloud_init: Option<(Keys, Vec<Mount>)>,
    /// What the workload is made of. One that exists needs nothing.
    pub material: Option<Material>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// What the workload of an environment is made of.
pub fn inputs(context: &EnvironmentContext<'_>) -> Inputs {
    let mut inputs = Inputs::default();
    let result =
        if context.is_machine() { machine(context, &mut inputs) } else { container(context, &mut inputs) };
    inputs.problems.extend(result.err());
    inputs
}

fn container(context: &EnvironmentContext<'_>, inputs: &mut Inputs) -> Result<(), Problem> {
    let environment = context.environment;
    if let Some(fault) = TemplateFault::of_type(environment) {
        return Err(fault.into());
    }
    if environment.persistent {
        // The size in the Template is used at the creation of the claim only.
        let disk = if context.has_claim() { Ok(String::new()) } else { disk(environment) };
        inputs.claim = disk.map_err(|fault| inputs.problems.push(fault.into())).ok();
    }
    if context.has_workload() {
        return Ok(());
    }
    match (Resources::of(environment), mounts::resolve(context.observed, environment)) {
        (Ok(resources), Ok(mounts)) if inputs.problems.is_empty() => {
            inputs.material = Some(Material { resources, disk: String::new(), mounts });
        }
        (resources, mounts) => {
            inputs.problems.extend(resources.err().map(Problem::from).into_iter().chain(mounts.err()));
        }
    }
    Ok(())
}

fn machine(context: &EnvironmentContext<'_>, inputs: &mut Inputs) -> Result<(), Problem> {
    let (observed, environment) = (context.observed, context.environment);
    let exists = context.has_workload();
    if !exists && let Some(problem) = unsupported(observed, context.config, environment) {
        return Err(problem);
    }
    if context.is_standard() {
        let keys = keys(observed);
        inputs.problems.extend(keys.rejected.iter().map(|(tenant, count)| {
            let message =
                format!("{count} of the public keys of Tenant {tenant} cannot be used and are left out");
            Problem::waiting(context.component(), reason::INVALID_PUBLIC_KEY, message)
        }));
        inputs.cloud_init = Some((keys, mounts::resolve(observed, environment)?));
    }
    if !exists {
        let resources = Resources::of(environment)?;
        let disk = if environment.persistent { disk(environment)? } else { String::new() };
        inputs.material = Some(Material { resources, disk, mounts: Vec::new() });
    }
    Ok(())
}

/// The size of the disk of an environment, as a claim names it.
fn disk(environment: &Environment) -> Result<String, TemplateFault> {
    Resources::disk(environment).map(|disk| disk.to_string())
}

/// Why the virtual machine of an environment cannot be made.
fn unsupported(observed: &Observed, config: &InstanceConfig, environment: &Environment) -> Option<Problem> {
    let name = &environment.name;
    let own = observed.template.as_ref().map_or("", |template| template.namespace());
    if environment.environment_type == EnvironmentType::LocalVm
        && environment.persistent
        && let Some(fault) = refused_image(&config.local_vm, own, environment)
    {
        return Some(fault.into());
    }
    if let Some(fault) = TemplateFault::of_persistence(environment) {
        return Some(fault.into());
    }
    let message = format!(
        "environment {name}: the cluster has no virtual machines (KubeVirt's CRDs are not installed); it starts when \
         they are"
    );
    let missing = Problem::waiting(Component::environment(name), reason::KUBEVIRT_MISSING, message);
    (!observed.platform.kubevirt).then_some(missing)
}
