//! The plan of an Instance: a pure function of what is observed.
//!
//! What is planned, and what it takes for the next pass to finish the work if the process dies in
//! between: nothing. Every object is named after the Instance and carries its uid, so a pass finds
//! what an earlier one has made, and asks for what is missing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::container;
use super::environment::{EnvironmentContext, node_selector};
use super::exposure;
use super::machine;
use super::mounts;
use super::observe::{Observed, named, template_key};
use super::pretty_name::pretty_name;
use super::resources::Resources;
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::instance::InstanceKind;
use crate::api::{Kind, Object, labels};
use crate::config::InstanceConfig;
use crate::runtime::ObjectKey;
use crate::runtime::clock::rfc3339;
use crate::runtime::merge;
use crate::runtime::plan::{KindInfo, ObjectPatch, Plan, Removal};
use crate::runtime::problem::Problem;

/// An environment that belongs to the Instance, and how its objects are named.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    /// What the Template says.
    pub environment: &'a Environment,
    /// See [`EnvironmentContext::classic`].
    pub classic: bool,
}

/// The environments of the Instance: fixed when its objects are first made (00 decisions 2, 26).
/// The second part names those that the Template no longer has.
pub fn environments(observed: &Observed) -> (Vec<Chosen<'_>>, Vec<String>) {
    let all = observed.environments();
    let fixed = &observed.instance.status.environments;
    let canonical = observed.canonical();
    let suffixed =
        |environment: &Environment| has_workload(observed, &format!("{canonical}-{}", environment.name));
    if let (true, [only]) = (fixed.len() <= 1, all) {
        // The only environment keeps the names that it was made with.
        let classic = !suffixed(only) || has_workload(observed, &canonical);
        return (vec![Chosen { environment: only, classic }], Vec::new());
    }
    if fixed.is_empty() {
        // Made by an operator that knew only the first environment.
        if let (Some(first), true) = (all.first(), has_workload(observed, &canonical)) {
            return (vec![Chosen { environment: first, classic: true }], Vec::new());
        }
        return (all.iter().map(|environment| Chosen { environment, classic: false }).collect(), Vec::new());
    }
    let classic = fixed.len() == 1 && has_workload(observed, &canonical);
    let mut chosen = Vec::new();
    let mut removed = Vec::new();
    for status in fixed {
        match all.iter().find(|environment| environment.name == status.name) {
            Some(environment) => chosen.push(Chosen { environment, classic }),
            None => removed.push(status.name.clone()),
        }
    }
    (chosen, removed)
}

/// Whether the Instance has a workload or a disk of that name.
fn has_workload(observed: &Observed, name: &str) -> bool {
    let children = &observed.children;
    observed.own(&children.machines, name).is_some()
        || observed.own(&children.machine_instances, name).is_some()
        || observed.own(&children.deployments, name).is_some()
        || observed.own(&children.claims, name).is_some()
}

/// The plan. It must not be asked for an Instance that is being deleted: the garbage collector has
/// it (02 D10).
pub fn plan(observed: &Observed, config: &InstanceConfig, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if let Some(problem) = refusal(observed) {
        plan.problems.push(problem);
        return plan;
    }
    let (chosen, removed) = environments(observed);
    plan.patches.extend(own_patch(observed, &chosen, now));
    plan.problems.extend(removed.into_iter().map(|name| Problem {
        message: format!("environment {name} is no longer in the Template; its objects are left as they are"),
        component: name,
        reason: "EnvironmentRemoved",
        waiting: true,
    }));
    for Chosen { environment, classic } in chosen {
        let context = EnvironmentContext::new(observed, config, environment, classic);
        if let Some(problem) = conflict(observed, &context) {
            plan.problems.push(problem);
            continue;
        }
        expose(observed, config, &context, &mut plan);
        if context.is_machine() {
            virtual_machine(observed, config, &context, &mut plan);
        } else {
            container(observed, config, &context, &mut plan);
        }
    }
    plan
}

fn problem(reason: &'static str, message: String) -> Problem {
    Problem { component: String::new(), reason, message, waiting: false }
}

/// What makes it impossible to do anything for the Instance.
fn refusal(observed: &Observed) -> Option<Problem> {
    let spec = &observed.instance.spec;
    if let Some(fault) = &observed.instance.malformed {
        return Some(problem("InvalidSpec", format!("the Instance cannot be read: {fault}")));
    }
    let key = template_key(&observed.instance);
    let Some(template) = &observed.template else {
        return Some(problem(
            "TemplateNotFound",
            format!("Template {}/{} not found", key.namespace, key.name),
        ));
    };
    if observed.tenant.is_none() {
        return Some(problem("TenantNotFound", format!("Tenant {} not found", spec.tenant_ref.name)));
    }
    if let Some(fault) = &template.malformed {
        return Some(problem("InvalidTemplate", format!("Template {key} cannot be read: {fault}")));
    }
    if template.spec.environment_list.is_empty() {
        let message =
            format!("Template {key} has no environment: spec.environmentList must name at least one");
        return Some(problem("InvalidTemplate", message));
    }
    let mut names = BTreeSet::new();
    for environment in &template.spec.environment_list {
        if !names.insert(&environment.name) {
            let message = format!("Template {key} has two environments named {}", environment.name);
            return Some(problem("InvalidTemplate", message));
        }
    }
    let name_owner = observed.name_owner.as_ref()?;
    let message = format!(
        "the objects of this Instance would have the names of those of Instance {name_owner}, which is older: \
         give it another name (dots and dashes count as the same)"
    );
    Some(problem("NameConflict", message))
}

/// Whether something of another owner stands where an object of the environment should.
fn conflict(observed: &Observed, context: &EnvironmentContext<'_>) -> Option<Problem> {
    fn other<T: Kind>(observed: &Observed, list: &[std::sync::Arc<Object<T>>], name: &str) -> Option<String> {
        let object = named(list, name)?;
        let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
        let controller = owners.iter().find(|owner| owner.controller == Some(true))?;
        let leftover = controller.kind == InstanceKind::KIND && controller.name == observed.instance.name();
        if observed.owns(object) || leftover {
            return None;
        }
        Some(format!("{} {name} belongs to {} {}", T::KIND, controller.kind, controller.name))
    }
    let children = &observed.children;
    let name = &context.name;
    let taken = other(observed, &children.services, name)
        .or_else(|| other(observed, &children.ingresses, &context.ingress_name()))
        .or_else(|| {
            if context.is_machine() && context.environment.persistent {
                other(observed, &children.machines, name)
            } else if context.is_machine() {
                other(observed, &children.machine_instances, name)
            } else {
                other(observed, &children.deployments, name)
                    .or_else(|| other(observed, &children.claims, name))
            }
        })
        .or_else(|| other(observed, &children.secrets, name).filter(|_| context.is_machine()))?;
    Some(Problem {
        component: context.environment.name.clone(),
        reason: "NameConflict",
        message: format!("{taken}: it is left alone, and nothing is made for this Instance"),
        waiting: false,
    })
}

/// Labels, pretty name and power-off stamp of the Instance itself (02 §2.2, §15).
fn own_patch(observed: &Observed, chosen: &[Chosen<'_>], now: Timestamp) -> Option<ObjectPatch> {
    let (instance, template) = (&observed.instance, observed.template.as_ref()?);
    let spec = &instance.spec;
    let flag = |value: bool| Value::from(if value { "true" } else { "false" });
    let selects = |environment: &Environment| {
        node_selector(observed, environment).is_some_and(|selector| !selector.is_empty())
    };
    let mut wanted = Map::new();
    wanted.insert(labels::MANAGED_BY.into(), labels::MANAGED_BY_INSTANCE.into());
    wanted.insert(labels::TEMPLATE.into(), spec.template_ref.name.clone().into());
    wanted.insert(labels::PERSISTENT.into(), flag(chosen.iter().any(|c| c.environment.persistent)));
    wanted.insert(labels::HAS_NODE_SELECTOR.into(), flag(chosen.iter().any(|c| selects(c.environment))));
    let workspace = template.spec.workspace_ref.name.as_str();
    if !workspace.is_empty() || instance.label(labels::WORKSPACE).is_some() {
        wanted.insert(labels::WORKSPACE.into(), workspace.into());
    }
    let watched = instance.label(labels::WATCH_FOR_TERMINATION).is_some_and(|value| !value.is_empty());
    if !spec.effective_status_check_url().is_empty() && !watched {
        wanted.insert(labels::WATCH_FOR_TERMINATION.into(), "true".into());
    }
    let stamp = match (spec.running, instance.annotation(labels::LAST_POWERED_OFF)) {
        (true, _) => Value::Null,
        (false, Some(since)) => since.into(),
        (false, None) => rfc3339(now).into(),
    };
    let mut patch = json!({"metadata": {"labels": wanted, "annotations": {labels::LAST_POWERED_OFF: stamp}}});
    if spec.pretty_name.is_empty()
        && let Some(patch) = patch.as_object_mut()
    {
        patch.insert("spec".into(), json!({"prettyName": pretty_name(instance.uid())}));
    }
    let metadata = &instance.metadata;
    let current = json!({"metadata": {"labels": metadata.labels, "annotations": metadata.annotations}});
    Some(ObjectPatch {
        component: String::new(),
        kind: KindInfo::of::<InstanceKind>(),
        key: ObjectKey::of(instance),
        subresource: None,
        uid: instance.uid().to_owned(),
        resource_version: None,
        patch: merge::required(&current, &patch)?,
    })
}

/// The removal of the Instance's object of that name, if there is one that is not going already.
fn removal<T: Kind>(
    observed: &Observed,
    list: &[std::sync::Arc<Object<T>>],
    name: &str,
    component: &str,
) -> Option<Removal> {
    let object = observed.own(list, name)?;
    (!object.is_terminating()).then(|| Removal::of(object, component))
}

/// Service and Ingress or route while the Instance runs, none of them while it does not.
fn expose(observed: &Observed, config: &InstanceConfig, context: &EnvironmentContext<'_>, plan: &mut Plan) {
    let children = &observed.children;
    let component = &context.environment.name;
    let ingress = context.ingress_name();
    if !observed.instance.spec.running {
        plan.remove.extend(removal(observed, &children.services, &context.name, component));
        plan.remove.extend(removal(observed, &children.ingresses, &ingress, component));
        plan.remove.extend(removal(observed, &children.routes, &context.name, component));
        return;
    }
    plan.ensure.push(exposure::service(observed, context));
    let route = observed.own(&children.routes, &context.name);
    let routed = config.gateway_api.enabled && observed.platform.gateway;
    if !routed {
        plan.remove.extend(removal(observed, &children.routes, &context.name, component));
    } else if context.environment.gui_enabled {
        plan.ensure.push(exposure::route(observed, config, context));
        if route.is_some_and(|route| exposure::is_accepted(route)) {
            plan.remove.extend(removal(observed, &children.ingresses, &ingress, component));
            return;
        }
    }
    // A Template that loses its web interface does not cut off those who are using it.
    if context.environment.gui_enabled || observed.own(&children.ingresses, &ingress).is_some() {
        plan.ensure.push(exposure::ingress(observed, config, context));
    }
}

fn container(
    observed: &Observed,
    config: &InstanceConfig,
    context: &EnvironmentContext<'_>,
    plan: &mut Plan,
) {
    let children = &observed.children;
    if let EnvironmentType::Other(name) = &context.environment.environment_type {
        let message = format!(
            "environment {}: environmentType \"{name}\" is not known; VirtualMachine, CloudVM, LocalVM, \
             Container or Standalone is expected",
            context.environment.name
        );
        plan.problems.push(Problem {
            component: context.environment.name.clone(),
            ..problem("InvalidTemplate", message)
        });
        return;
    }
    let mut complete = true;
    if context.environment.persistent {
        let disk = if observed.own(&children.claims, &context.name).is_some() {
            Ok(String::new()) // it has its size; the Template's matters at creation only
        } else {
            Resources::disk(context.environment)
        };
        match disk {
            Ok(disk) => plan.ensure.push(container::claim(observed, context, &disk)),
            Err(problem) => {
                plan.problems.push(problem);
                complete = false;
            }
        }
    }
    if observed.own(&children.deployments, &context.name).is_some() {
        plan.ensure.push(container::deployment(observed, config, context, None));
        return;
    }
    match (Resources::of(context.environment), mounts::resolve(observed, context.environment)) {
        (Ok(resources), Ok(mounts)) if complete => {
            let built = Some((&resources, mounts.as_slice()));
            plan.ensure.push(container::deployment(observed, config, context, built));
        }
        (resources, mounts) => plan.problems.extend(resources.err().into_iter().chain(mounts.err())),
    }
}

fn virtual_machine(
    observed: &Observed,
    config: &InstanceConfig,
    context: &EnvironmentContext<'_>,
    plan: &mut Plan,
) {
    let children = &observed.children;
    let environment = context.environment;
    let running = observed.instance.spec.running;
    let exists = if environment.persistent {
        observed.own(&children.machines, &context.name).is_some()
    } else {
        observed.own(&children.machine_instances, &context.name).is_some()
    };
    if !exists && let Some(problem) = unsupported(observed, config, environment) {
        plan.problems.push(problem);
        return;
    }
    if context.is_standard() {
        let keys = machine::keys(observed);
        plan.problems.extend(keys.rejected.iter().map(|(tenant, count)| Problem {
            component: environment.name.clone(),
            reason: "InvalidPublicKey",
            message: format!(
                "{count} of the public keys of Tenant {tenant} cannot be parsed and are left out"
            ),
            waiting: true,
        }));
        match mounts::resolve(observed, environment) {
            Ok(mounts) => plan.ensure.push(machine::secret(observed, config, context, &keys, &mounts)),
            Err(problem) => {
                plan.problems.push(problem);
                if !exists {
                    return;
                }
            }
        }
    }
    if exists {
        plan.ensure.push(if environment.persistent {
            machine::virtual_machine(observed, context, None)
        } else {
            machine::virtual_machine_instance(context, None)
        });
        return;
    }
    let resources = match Resources::of(environment) {
        Ok(resources) => resources,
        Err(problem) => {
            plan.problems.push(problem);
            return;
        }
    };
    if environment.persistent {
        match Resources::disk(environment) {
            Ok(disk) => {
                plan.ensure.push(machine::virtual_machine(observed, context, Some((&resources, &disk))))
            }
            Err(problem) => plan.problems.push(problem),
        }
    } else if running {
        plan.ensure.push(machine::virtual_machine_instance(context, Some(&resources)));
    }
}

/// Why a virtual machine of that kind cannot be made.
fn unsupported(observed: &Observed, config: &InstanceConfig, environment: &Environment) -> Option<Problem> {
    let name = &environment.name;
    if environment.environment_type == EnvironmentType::LocalVm
        && environment.persistent
        && let Some(problem) = local_image(observed, config, environment)
    {
        return Some(problem);
    }
    let (reason, message, waiting) = match environment.environment_type {
        EnvironmentType::CloudVm | EnvironmentType::LocalVm if !environment.persistent => {
            let kind = &environment.environment_type;
            (
                "NotPersistent",
                format!("environment {name}: a {kind} must be persistent, its image is a disk"),
                false,
            )
        }
        _ if !observed.platform.kubevirt => {
            let message = format!(
                "environment {name}: the cluster has no virtual machines (KubeVirt's CRDs are not installed); \
                 it starts when they are"
            );
            ("KubeVirtMissing", message, true)
        }
        _ => return None,
    };
    Some(Problem { component: name.clone(), reason, message, waiting })
}

/// Whether the volume of a `LocalVM` may be cloned: its owner decides, by the namespace that it is
/// in (02 §15).
fn local_image(observed: &Observed, config: &InstanceConfig, environment: &Environment) -> Option<Problem> {
    let (name, image) = (&environment.name, &environment.image);
    let own = observed.template.as_ref().map_or("", |template| template.namespace());
    let refuse = |reason, message| Some(Problem { component: name.clone(), reason, message, waiting: false });
    if !config.local_vm.enabled {
        let message =
            format!("environment {name}: LocalVM is switched off (controllers.instance.localVm.enabled)");
        return refuse("LocalVMDisabled", message);
    }
    let Some((namespace, claim)) = image.split_once('/').filter(|(_, claim)| !claim.contains('/')) else {
        let message =
            format!("environment {name}: the image of a LocalVM is \"{image}\"; NAMESPACE/CLAIM is expected");
        return refuse("InvalidImage", message);
    };
    if namespace.is_empty() || claim.is_empty() {
        let message = format!("environment {name}: image \"{image}\" lacks a namespace or a claim");
        return refuse("InvalidImage", message);
    }
    if namespace != own && !config.local_vm.namespaces.iter().any(|allowed| allowed == namespace) {
        let message = format!(
            "environment {name}: volumes of namespace {namespace} may not be cloned; only those of {own}, or \
             of controllers.instance.localVm.namespaces"
        );
        return refuse("ImageNotAllowed", message);
    }
    None
}

#[cfg(test)]
mod tests;
