//! Why an Instance, or one of its environments, cannot be made: invalid input, missing objects, names that
//! other owners have taken, and features that the cluster or the configuration does not have.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::access;
use super::environment::EnvironmentContext;
use super::observe::{Observed, named};
use super::workload::Workload;
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::instance::InstanceKind;
use crate::api::names::check_dns_label;
use crate::api::reason;
use crate::api::{Kind, Object};
use crate::config::{AccessMode, InstanceConfig};
use crate::controllers::shared::references::template_key;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The problem that concerns the whole Instance, if there is one.
pub fn refusal(observed: &Observed) -> Option<Problem> {
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
pub fn invalid_name(environment: &Environment, config: &InstanceConfig) -> Option<Problem> {
    let is_reserved = config.access.mode == AccessMode::PerInstance && environment.name == access::COMPONENT;
    let error = match check_dns_label(&environment.name) {
        Err(error) => error.to_string(),
        Ok(()) if is_reserved => {
            format!("name \"{}\" is reserved for the OAuth2 proxy of the Instance", environment.name)
        }
        Ok(()) => return None,
    };
    let message = format!("spec.environmentList of the Template: {error}");
    Some(Problem::fault(Component::environment(&environment.name), reason::INVALID_TEMPLATE, message))
}

/// The name conflict of an environment: an object of another owner that has the name of one of its objects.
pub fn conflict(observed: &Observed, context: &EnvironmentContext<'_>) -> Option<Problem> {
    fn other<T: Kind>(observed: &Observed, list: &[Arc<Object<T>>], name: &str) -> Option<String> {
        let object = named(list, name)?;
        let controller = object.metadata.controller()?;
        let leftover = controller.kind == InstanceKind::KIND && controller.name == observed.instance.name();
        if object.is_controlled_by(&observed.instance) || leftover {
            return None;
        }
        Some(format!("{} {name} belongs to {} {}", T::KIND, controller.kind, controller.name))
    }
    let children = &observed.children;
    let name = &context.name;
    let taken = other(observed, &children.services, name)
        .or_else(|| other(observed, &children.ingresses, &context.ingress_name()))
        .or_else(|| match Workload::of(context.environment) {
            Workload::VirtualMachine => other(observed, &children.machines, name),
            Workload::VirtualMachineInstance => other(observed, &children.machine_instances, name),
            Workload::Deployment => other(observed, &children.deployments, name)
                .or_else(|| other(observed, &children.claims, name)),
        })
        .or_else(|| other(observed, &children.secrets, name).filter(|_| context.is_machine()))?;
    let message = format!("{taken}: it is left alone, and nothing is made for this Instance");
    Some(Problem::fault(Component::environment(&context.environment.name), reason::NAME_CONFLICT, message))
}

/// Why the virtual machine of an environment cannot be made.
pub fn unsupported(
    observed: &Observed,
    config: &InstanceConfig,
    environment: &Environment,
) -> Option<Problem> {
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
