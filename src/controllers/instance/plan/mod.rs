//! The plan of an Instance: a pure function of what is observed.
//!
//! The names of all objects derive from the Instance, and their owner references contain its uid, so each
//! reconcile finds what earlier ones have made and plans what is missing.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::access;
use super::environment::EnvironmentContext;
use super::exposure;
use super::observe::Observed;
use super::phase;
use super::pretty_name::pretty_name;
use super::validate::{Validated, conflict, invalid_name, no_environment, validate};
use super::workload;
use crate::api::instance::InstanceKind;
use crate::api::names::{check_label_value, label_sized};
use crate::api::{labels, reason};
use crate::config::InstanceConfig;
use crate::runtime::ObjectKey;
use crate::runtime::clock::rfc3339;
use crate::runtime::component::Component;
use crate::runtime::merge;
use crate::runtime::plan::{KindInfo, ObjectPatch, Plan};
use crate::runtime::problem::Problem;

/// The plan of an Instance.
pub fn plan(observed: &Observed, config: &InstanceConfig, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let Validated { refusal, environments, removed } = validate(observed, config);
    if let Some(problem) = refusal {
        plan.problems.push(problem);
        return plan;
    }
    plan.patches.extend(own_patch(observed, &environments, now));
    if let Some(problem) = no_environment(observed) {
        plan.problems.push(problem);
        return plan;
    }
    plan.problems.extend(removed.into_iter().map(|name| {
        let message =
            format!("environment {name} is no longer in the Template; its objects are left as they are");
        Problem::waiting(Component::environment(&name), reason::ENVIRONMENT_REMOVED, message)
    }));
    let mut usable = Vec::new();
    for context in &environments {
        let cause = phase::of_workload(context).and_then(|(_, cause)| cause);
        let left = cause.and_then(|cause| cause.left(&observed.instance.status.conditions, config, now));
        if let Some(left) = left {
            plan.requeue_after(left);
        }
        if let Some(problem) = invalid_name(context).or_else(|| conflict(context)) {
            plan.problems.push(problem);
            continue;
        }
        expose(context, &mut plan);
        workload::plan(context, &mut plan);
        usable.push(context);
    }
    access::plan(observed, config, &usable, &mut plan);
    plan
}

/// The patch of the Instance itself: its labels, its pretty name, and the annotation with the time at which
/// it was stopped.
fn own_patch(observed: &Observed, chosen: &[EnvironmentContext<'_>], now: Timestamp) -> Option<ObjectPatch> {
    let (instance, template) = (&observed.instance, observed.template.as_ref()?);
    let spec = &instance.spec;
    let flag = |value: bool| Value::from(if value { "true" } else { "false" });
    let selects = |context: &EnvironmentContext<'_>| {
        context.node_selector().is_some_and(|selector| !selector.is_empty())
    };
    let mut wanted = Map::new();
    wanted.insert(labels::MANAGED_BY.into(), labels::MANAGED_BY_INSTANCE.into());
    wanted.insert(labels::TEMPLATE.into(), label_sized(&spec.template_ref.name, "").into());
    wanted.insert(labels::PERSISTENT.into(), flag(chosen.iter().any(|c| c.environment.persistent)));
    wanted.insert(labels::HAS_NODE_SELECTOR.into(), flag(chosen.iter().any(selects)));
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
    let known = instance.annotation(labels::LAST_POWERED_OFF);
    // What is no time is repaired.
    let stamp = match (spec.running, known.filter(|since| since.parse::<Timestamp>().is_ok())) {
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

/// Plans the Service and the Ingress or `HTTPRoute` while the Instance runs, and their removal while it does
/// not.
fn expose(context: &EnvironmentContext<'_>, plan: &mut Plan) {
    let (service, ingress, route) = (context.service(), context.ingress(), context.route());
    if !context.observed.instance.spec.running {
        for child in [service, ingress, route] {
            child.remove(plan);
        }
        return;
    }
    service.ensure(plan);
    let gui = context.environment.gui_enabled;
    let is_routed = context.config.gateway_api.enabled && context.observed.platform.gateway;
    if !is_routed {
        route.remove(plan);
    } else if gui {
        route.ensure(plan);
    }
    if gui && is_routed && context.own_route().is_some_and(exposure::is_accepted) {
        ingress.remove(plan);
    } else if gui {
        ingress.ensure(plan);
    } else {
        // It is kept when the Template switches the web interface off: it may be in use.
        ingress.keep(plan);
    }
}

#[cfg(test)]
pub mod tests;
