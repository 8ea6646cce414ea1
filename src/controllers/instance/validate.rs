//! The reasons why an Instance or one of its environments cannot be created: invalid input, missing objects, names of
//! other owners, and features that the cluster or the configuration lacks.

use std::collections::BTreeSet;

use super::children::shows_naming;
use super::cloud_init::Keys;
use super::environment::EnvironmentContext;
use super::machine::keys;
use super::mounts::{self, Mount};
use super::observe::Observed;
use super::workload::Material;
use super::{access, exam_network};
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::names::{self, check_dns_label};
use crate::api::parts::{OAUTH2_PROXY, reserved_for};
use crate::api::resources::Resources;
use crate::api::template_fault::TemplateFault;
use crate::api::text::Text;
use crate::api::{reason, requirements};
use crate::config::{AccessMode, InstanceConfig};
use crate::controllers::shared::environments::{Chosen, choose, refused_image};
use crate::controllers::shared::references::template_key;
use crate::kinds::PersistentVolumeClaimKind;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The parts of an Instance that its Template and its names allow. A reconcile validates once: its plan and its report
/// read the same value.
#[derive(Debug, Default)]
pub struct Validated {
    /// The reason why nothing is created for the Instance.
    pub refusal: Option<Problem>,
    /// The problem that the Template has no environment. The Instance gets its labels and its name, but no objects.
    pub no_environment: Option<Problem>,
    /// Its environments, in the order of the Template.
    pub environments: Vec<ValidEnvironment>,
    /// The names of the environments that were removed from the Template.
    pub removed: Vec<Text>,
}

/// An environment of an Instance whose Template is valid.
#[derive(Debug)]
pub struct ValidEnvironment {
    /// The environment as the Template specifies it.
    pub environment: Environment,
    /// See [`Chosen`].
    pub classic: bool,
    /// The inputs for its workload, or the reason why nothing is created for it: an invalid name or a name conflict.
    pub inputs: Result<Inputs, Problem>,
}

/// Validates an Instance.
pub fn validate(observed: &Observed, config: &InstanceConfig) -> Validated {
    let refusal = refusal(observed);
    if refusal.is_some() {
        return Validated { refusal, ..Validated::default() };
    }
    let all = observed.environments();
    let has_object = |name: &str| shows_naming(&observed.children, &observed.instance, name);
    let (chosen, removed) = choose(&observed.instance, all, config.layout, has_object);
    let validated = |Chosen { environment, classic }: Chosen<'_>| {
        let context = EnvironmentContext::new(observed, config, environment, classic);
        let refusal = invalid_name(&context).or_else(|| conflict(&context));
        let inputs = refusal.map_or_else(|| Ok(inputs(&context)), Err);
        ValidEnvironment { environment: environment.clone(), classic, inputs }
    };
    let no_environment = all.is_empty().then(|| {
        let key = template_key(&observed.instance);
        let message =
            format!("Template {key} has no environment: spec.environmentList must name at least one");
        Problem::fault(Component::Whole, reason::INVALID_TEMPLATE, message)
    });
    let environments = chosen.into_iter().map(validated).collect();
    Validated { refusal, no_environment, environments, removed }
}

/// The problem that concerns the whole Instance, if there is one.
fn refusal(observed: &Observed) -> Option<Problem> {
    let fault = |reason, message: String| Some(Problem::fault(Component::Whole, reason, message));
    let missing = |reason, message: String| Some(Problem::elsewhere(Component::Whole, reason, message));
    let (instance, key) = (&observed.instance, template_key(&observed.instance));
    if let Some(malformed) = &instance.malformed {
        return fault(reason::INVALID_SPEC, format!("the Instance cannot be read: {malformed}"));
    }
    if observed.foreign_tenant.is_some() {
        return observed.foreign_tenant.clone();
    }
    let Some(template) = &observed.template else {
        let message = format!("Template {}/{} not found", key.namespace, key.name);
        return missing(reason::TEMPLATE_NOT_FOUND, message);
    };
    if observed.tenant.is_none() {
        let tenant = &instance.spec.tenant_ref.name;
        return missing(reason::TENANT_NOT_FOUND, format!("Tenant {tenant} not found"));
    }
    if let Some(malformed) = &template.malformed {
        let message = format!("Template {key} cannot be read: {malformed}");
        return fault(reason::INVALID_TEMPLATE, message);
    }
    let mut names = BTreeSet::new();
    let mut environments = template.spec.environment_list.iter();
    if let Some(twice) = environments.find(|environment| !names.insert(&environment.name)) {
        let message = format!("Template {key} has two environments named {}", twice.name);
        return fault(reason::INVALID_TEMPLATE, message);
    }
    let name_owner = observed.name_owner.as_ref()?;
    let message = format!(
        "the objects of this Instance would have the same names as those of Instance {name_owner}, which is older: \
         give it another name (dots and dashes count as the same)"
    );
    fault(reason::NAME_CONFLICT, message)
}

/// The problem that the name of an environment or of the Instance is invalid as a part of object names.
fn invalid_name(context: &EnvironmentContext<'_>) -> Option<Problem> {
    if let Err(error) = names::check_instance(context.observed.instance.name(), context.suffix()) {
        return Some(Problem::fault(context.component(), reason::INVALID_NAME, error.to_string()));
    }
    let environment = context.environment;
    let is_reserved = context.config.access.mode == AccessMode::PerInstance
        && reserved_for(&environment.name) == Some(&OAUTH2_PROXY);
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

/// The name conflict of an environment: a foreign object has the name of one of its objects or of the proxy
/// that it needs, or another Instance owns the name of one of their Services.
fn conflict(context: &EnvironmentContext<'_>) -> Option<Problem> {
    let existing = context.conflict().or_else(|| access::conflict(context));
    let existing = existing.or_else(|| exam_network::conflict(context));
    let existing =
        existing.map(|taken| format!("{taken}: it is not changed, and nothing is created for this Instance"));
    let message = existing.or_else(|| {
        let mut names = [Some(context.name.to_string()), access::name(context)].into_iter().flatten();
        names.find_map(|name| {
            let owner = context.observed.taken.get(&name)?;
            Some(format!(
                "Service {name} belongs to Instance {owner}, which is older: nothing is created for this Instance; create it \
                 again under another name"
            ))
        })
    })?;
    Some(Problem::fault(context.component(), reason::NAME_CONFLICT, message))
}

/// The inputs for the workload of an environment and its claim or Secret, as far as they are valid.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The size of the claim of a container. An existing claim keeps its size.
    pub claim: Option<String>,
    /// The keys and mounts in the cloud-init document of a virtual machine.
    pub cloud_init: Option<(Keys, Vec<Mount>)>,
    /// The input for a new workload. An existing workload needs none.
    pub material: Option<Material>,
    /// The problems.
    pub problems: Vec<Problem>,
}

/// Validates the inputs for the workload of an environment.
fn inputs(context: &EnvironmentContext<'_>) -> Inputs {
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
        // The size in the Template is used only when the claim is created.
        let disk = if context.own::<PersistentVolumeClaimKind>().is_some() {
            Ok(String::new())
        } else {
            disk(environment)
        };
        inputs.claim = disk.map_err(|fault| inputs.problems.push(fault.into())).ok();
    }
    if context.workload(None).is_own() {
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
    let exists = context.workload(None).is_own();
    if !exists && let Some(problem) = unsupported(observed, context.config, environment) {
        return Err(problem);
    }
    if context.is_standard() {
        let keys = keys(observed);
        inputs.problems.extend(keys.rejected.iter().map(|(tenant, count)| {
            let message = format!("{count} of the public keys of Tenant {tenant} are invalid and ignored");
            Problem::waiting(context.component(), reason::INVALID_PUBLIC_KEY, message)
        }));
        inputs.cloud_init = Some((keys, mounts::resolve(observed, environment)?));
    }
    if !exists {
        let resources = Resources::of(environment)?;
        let disk = if environment.persistent { disk(environment)? } else { String::new() };
        let mounts = inputs.cloud_init.as_ref().map(|(_, mounts)| mounts.clone()).unwrap_or_default();
        inputs.material = Some(Material { resources, disk, mounts });
    }
    Ok(())
}

/// The size of the disk of an environment, in the format of a claim.
fn disk(environment: &Environment) -> Result<String, TemplateFault> {
    Resources::disk(environment).map(|disk| disk.to_string())
}

/// The problem that the virtual machine of an environment cannot be created.
fn unsupported(observed: &Observed, config: &InstanceConfig, environment: &Environment) -> Option<Problem> {
    let own = observed.template.as_ref().map_or("", |template| template.namespace());
    let is_clone = environment.environment_type == EnvironmentType::LocalVm && environment.persistent;
    let refused = is_clone.then(|| refused_image(&config.local_vm, own, environment)).flatten();
    let fault = refused.or_else(|| TemplateFault::of_persistence(environment)).map(Problem::from);
    fault.or_else(|| requirements::kubevirt(&observed.cluster, environment).map(Problem::from))
}
