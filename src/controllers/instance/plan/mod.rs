//! The plan of an Instance: a pure function of what is observed.
//!
//! The names of all objects derive from the Instance, and their owner references contain its uid, so each
//! reconcile finds what earlier ones have made and plans what is missing.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::access;
use super::environment::{EnvironmentContext, node_selector};
use super::exposure;
use super::observe::Observed;
use super::pretty_name::pretty_name;
use super::refusal::{conflict, invalid_name, no_environment, refusal};
use super::workload;
use crate::api::environment::Environment;
use crate::api::instance::InstanceKind;
use crate::api::names::check_label_value;
use crate::api::{Kind, Object, labels, reason};
use crate::config::InstanceConfig;
use crate::controllers::shared::environments::{Chosen, choose};
use crate::runtime::ObjectKey;
use crate::runtime::clock::rfc3339;
use crate::runtime::component::Component;
use crate::runtime::merge;
use crate::runtime::plan::{KindInfo, ObjectPatch, Plan, Removal};
use crate::runtime::problem::Problem;

/// The environments of the Instance, and the names of those that have been removed from the Template.
pub fn environments(observed: &Observed) -> (Vec<Chosen<'_>>, Vec<String>) {
    choose(&observed.instance, observed.environments(), |name| has_object(observed, name))
}

/// Whether the Instance has an object of that name that shows how its objects are named: a workload, a disk, or the
/// Service, which is made first. A Secret shows nothing: the Go operator that knows several environments makes one for
/// all of them.
fn has_object(observed: &Observed, name: &str) -> bool {
    // What has the label is for something else, such as a public exposure, whatever its name looks like.
    fn is_there<T: Kind>(observed: &Observed, list: &[Arc<Object<T>>], name: &str) -> bool {
        observed.own(list, name).is_some_and(|object| object.label(labels::COMPONENT).is_none())
    }
    let children = &observed.children;
    is_there(observed, &children.machines, name)
        || is_there(observed, &children.machine_instances, name)
        || is_there(observed, &children.deployments, name)
        || is_there(observed, &children.claims, name)
        || is_there(observed, &children.data_volumes, name)
        || is_there(observed, &children.services, name)
}

/// The plan of an Instance.
pub fn plan(observed: &Observed, config: &InstanceConfig, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if let Some(problem) = refusal(observed) {
        plan.problems.push(problem);
        return plan;
    }
    let (chosen, removed) = environments(observed);
    plan.patches.extend(own_patch(observed, &chosen, now));
    if let Some(problem) = no_environment(observed) {
        plan.problems.push(problem);
        return plan;
    }
    plan.problems.extend(removed.into_iter().map(|name| {
        let message =
            format!("environment {name} is no longer in the Template; its objects are left as they are");
        Problem::waiting(Component::environment(&name), reason::ENVIRONMENT_REMOVED, message)
    }));
    let mut contexts = Vec::new();
    for Chosen { environment, classic } in chosen {
        let context = EnvironmentContext::new(observed, config, environment, classic);
        let fault = if classic { None } else { invalid_name(environment, config) };
        if let Some(problem) = fault.or_else(|| conflict(observed, &context)) {
            plan.problems.push(problem);
            continue;
        }
        expose(observed, config, &context, &mut plan);
        workload::plan(observed, config, &context, &mut plan);
        contexts.push(context);
    }
    access::plan(observed, config, &contexts, &mut plan);
    plan
}

/// The patch of the Instance itself: its labels, its pretty name, and the annotation with the time at which
/// it was stopped.
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
    // A name that no Workspace can have may be no label either, and the API server would refuse all of the patch.
    let workspace = Some(&*template.spec.workspace_ref.name).filter(|name| check_label_value(name).is_ok());
    let workspace = workspace.unwrap_or_default();
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
        component: Component::Whole,
        kind: KindInfo::of::<InstanceKind>(),
        key: ObjectKey::of(instance),
        subresource: None,
        uid: instance.uid().to_owned(),
        resource_version: None,
        patch: merge::required(&current, &patch)?,
    })
}

/// The removal of the object of that name, if the Instance owns it and it is not being deleted already.
fn removal<T: Kind>(
    observed: &Observed,
    list: &[Arc<Object<T>>],
    name: &str,
    component: &Component,
) -> Option<Removal> {
    let object = observed.own(list, name)?;
    (!object.is_terminating()).then(|| Removal::of(object, component.clone()))
}

/// Plans the Service and the Ingress or `HTTPRoute` while the Instance runs, and their removal while it does
/// not.
fn expose(observed: &Observed, config: &InstanceConfig, context: &EnvironmentContext<'_>, plan: &mut Plan) {
    let children = &observed.children;
    let component = &context.component();
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
    // An existing Ingress is kept when the Template switches its web interface off: it may be in use.
    if context.environment.gui_enabled || observed.own(&children.ingresses, &ingress).is_some() {
        plan.ensure.push(exposure::ingress(observed, config, context));
    }
}

#[cfg(test)]
pub mod tests;
