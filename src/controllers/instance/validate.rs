//! Why an Instance, or one of its environments, cannot be made: invalid input, missing objects, names that
//! other owners have taken, and features that the cluster or the configuration does not have.

use std::collections::BTreeSet;

use super::access;
use super::cloud_init::Keys;
use super::environment::EnvironmentContext;
use super::machine::keys;
use super::mounts::{self, Mount};
use super::observe::Observed;
use super::resources::Resources;
use super::workload::Material;
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::names::check_dns_label;
use crate::api::reason;
use crate::config::{AccessMode, InstanceConfig};
use crate::controllers::shared::environments::choose;
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
        choose(&observed.instance, observed.environments(), |name| observed.has_object(name));
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

/// The problem of an environment whose name cannot be a part of the names of its objects.
pub fn invalid_name(context: &EnvironmentContext<'_>) -> Option<Problem> {
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
    if let EnvironmentType::Other(name) = &environment.environment_type {
        let message = format!(
            "environment {}: environmentType \"{name}\" is not known; VirtualMachine, CloudVM, LocalVM, \
             Container or Standalone is expected",
            environment.name
        );
        return Err(Problem::fault(context.component(), reason::INVALID_TEMPLATE, message));
    }
    if environment.persistent {
        // The size in the Template is used at the creation of the claim only.
        let disk = if context.has_claim() { Ok(String::new()) } else { Resources::disk(environment) };
        inputs.claim = disk.map_err(|problem| inputs.problems.push(problem)).ok();
    }
    if context.has_workload() {
        return Ok(());
    }
    match (Resources::of(environment), mounts::resolve(context.observed, environment)) {
        (Ok(resources), Ok(mounts)) if inputs.problems.is_empty() => {
            inputs.material = Some(Material { resources, disk: String::new(), mounts });
        }
        (resources, mounts) => inputs.problems.extend(resources.err().into_iter().chain(mounts.err())),
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
        let disk = if environment.persistent { Resources::disk(environment)? } else { String::new() };
        inputs.material = Some(Material { resources, disk, mounts: Vec::new() });
    }
    Ok(())
}

/// Why the virtual machine of an environment cannot be made.
fn unsupported(observed: &Observed, config: &InstanceConfig, environment: &Environment) -> Option<Problem> {
    let name = &environment.name;
    if environment.environment_type == EnvironmentType::LocalVm
        && environment.persistent
        && let Some(problem) = local_image(observed, config, environment)
    {
        return Some(problem);
    }
    match environment.environment_type {
        EnvironmentType::CloudVm | EnvironmentType::LocalVm if !environment.persistent => {
            let kind = &environment.environment_type;
            let message = format!("environment {name}: a {kind} must be persistent, its image is a disk");
            Some(Problem::fault(Component::environment(name), reason::NOT_PERSISTENT, message))
        }
        _ if !observed.platform.kubevirt => {
            let message = format!(
                "environment {name}: the cluster has no virtual machines (KubeVirt's CRDs are not installed); \
                 it starts when they are"
            );
            Some(Problem::waiting(Component::environment(name), reason::KUBEVIRT_MISSING, message))
        }
        _ => None,
    }
}

/// Why the volume of a `LocalVM` may not be cloned. Only volumes in the namespace of the Template, or in one
/// of the configured namespaces, may be.
fn local_image(observed: &Observed, config: &InstanceConfig, environment: &Environment) -> Option<Problem> {
    let (name, image) = (&environment.name, &environment.image);
    let own = observed.template.as_ref().map_or("", |template| template.namespace());
    let refuse = |reason, message| Some(Problem::fault(Component::environment(name), reason, message));
    if !config.local_vm.enabled {
        let message =
            format!("environment {name}: LocalVM is switched off (controllers.instance.localVm.enabled)");
        return refuse(reason::LOCAL_VM_DISABLED, message);
    }
    let Some((namespace, claim)) = image.split_once('/').filter(|(_, claim)| !claim.contains('/')) else {
        let message =
            format!("environment {name}: the image of a LocalVM is \"{image}\"; NAMESPACE/CLAIM is expected");
        return refuse(reason::INVALID_IMAGE, message);
    };
    if namespace.is_empty() || claim.is_empty() {
        let message = format!("environment {name}: image \"{image}\" lacks a namespace or a claim");
        return refuse(reason::INVALID_IMAGE, message);
    }
    if namespace != own && !config.local_vm.namespaces.iter().any(|allowed| allowed == namespace) {
        let message = format!(
            "environment {name}: volumes of namespace {namespace} may not be cloned; only those of {own}, or \
             of controllers.instance.localVm.namespaces"
        );
        return refuse(reason::IMAGE_NOT_ALLOWED, message);
    }
    None
}
