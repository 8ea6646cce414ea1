//! The plan of an Instance: a pure function of the observed state.
//!
//! The names of all objects derive from the Instance, and their owner references contain its uid. Each reconcile thus
//! finds the existing objects, and plans the missing ones.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::environment::EnvironmentContext;
use super::observe::Observed;
use super::pretty_name::pretty_name;
use super::validate::Validated;
use super::{
    access, exam_network, exposure_status, phase, requirements, restart, route_policy, told, workload,
};
use crate::api::names::{check_label_value, label_sized};
use crate::api::{labels, reason};
use crate::config::InstanceConfig;
use crate::kinds::IngressKind;
use crate::runtime::clock::rfc3339;
use crate::runtime::component::Component;
use crate::runtime::merge;
use crate::runtime::plan::{self, ObjectPatch};
use crate::runtime::problem::Problem;
use crate::runtime::reconcile::REFUSED_RETRY;

/// A plan of this loop.
pub type Plan = plan::Plan;

/// The plan of an Instance.
pub fn plan(observed: &Observed, config: &InstanceConfig, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let Validated { refusal, no_environment, environments, removed } = &*observed.validated;
    let contexts = EnvironmentContext::all(observed, config);
    if refusal.is_none() {
        plan.patches.extend(own_patch(observed, &contexts, now));
    }
    if let Some(problem) = refusal.as_ref().or(no_environment.as_ref()) {
        plan.problems.push(problem.clone());
        return plan;
    }
    plan.problems.extend(removed.iter().map(|name| {
        let message = format!("environment {name} is no longer in the Template; its objects are not changed");
        Problem::waiting(Component::environment(name), reason::ENVIRONMENT_REMOVED, message)
    }));
    let restart = restart::requested(&observed.instance, now, &mut plan);
    let mut usable = Vec::new();
    for (context, valid) in contexts.iter().zip(environments) {
        let found = phase::of_workload(context).map(|found| exposure_status::judge(context, found, now));
        let cause = found.and_then(|(_, cause)| cause);
        let left = cause.and_then(|cause| cause.left(&observed.instance.status.conditions, config, now));
        plan.requeue_after(left);
        plan.requeue_after(exposure_status::left(context, now));
        if let Some(requested) = restart {
            restart::plan(context, requested, &mut plan);
        }
        match &valid.inputs {
            Ok(inputs) => {
                expose(context, now, &mut plan);
                exam_network::plan(context, &mut plan);
                let first = plan.problems.len();
                workload::plan(context, inputs, &mut plan);
                requirements::report(context, first, &mut plan);
                usable.push(context);
            }
            Err(problem) => {
                if problem.reason == reason::NAME_CONFLICT {
                    // The other Instance may stop or be deleted before it has created anything.
                    plan.requeue_after(REFUSED_RETRY);
                }
                plan.problems.push(problem.clone());
            }
        }
    }
    access::plan(observed, config, &usable, &mut plan);
    told::plan(observed, config, &contexts, now, &mut plan);
    plan
}

/// The patch of the Instance itself: its labels, its pretty name, and the annotation with the time of its stop.
fn own_patch(observed: &Observed, chosen: &[EnvironmentContext<'_>], now: Timestamp) -> Option<ObjectPatch> {
    let (instance, template) = (&observed.instance, observed.template.as_ref()?);
    let spec = &instance.spec;
    let flag = |value: bool| Value::from(if value { "true" } else { "false" });
    let mut wanted = Map::new();
    wanted.insert(labels::MANAGED_BY.into(), labels::MANAGED_BY_INSTANCE.into());
    wanted.insert(labels::TEMPLATE.into(), label_sized(&spec.template_ref.name, "").into());
    wanted.insert(labels::PERSISTENT.into(), flag(chosen.iter().any(|c| c.environment.persistent)));
    wanted.insert(labels::HAS_NODE_SELECTOR.into(), flag(chosen.iter().any(|c| c.node_selector().is_some())));
    // A name that is invalid for a Workspace may also be invalid as a label, and the API server would reject the whole
    // patch.
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
    // An unparseable time is replaced.
    let stamp = match (spec.running, known.filter(|since| since.parse::<Timestamp>().is_ok())) {
        (true, _) => Value::Null,
        (false, Some(since)) => since.into(),
        (false, None) => rfc3339(now).into(),
    };
    let mut patch = json!({"metadata": {"labels": wanted, "annotations": {labels::LAST_POWERED_OFF: stamp}}});
    if spec.pretty_name.is_empty() {
        patch["spec"] = json!({"prettyName": pretty_name(instance.uid())});
    }
    let metadata = &instance.metadata;
    let current = json!({"metadata": {"labels": metadata.labels, "annotations": metadata.annotations}});
    let required = merge::required(&current, &patch)?;
    Some(ObjectPatch { resource_version: None, ..ObjectPatch::exactly(instance, required) })
}

/// Plans the Service and the Ingress or `HTTPRoute` while the Instance runs, and their removal while it is stopped.
fn expose(context: &EnvironmentContext<'_>, now: Timestamp, plan: &mut Plan) {
    let (service, ingress, route) = (context.service(), context.ingress(), context.route());
    if !context.observed.instance.spec.running {
        for child in [service, ingress, route] {
            child.remove(plan);
        }
        route_policy::stop(context, plan);
        return;
    }
    service.ensure(plan);
    let gui = context.environment.gui_enabled;
    if context.host().is_none() {
        // An existing Ingress or route keeps its address.
        if gui {
            context.observed.hosts.wait(plan);
        }
        return;
    }
    let is_routed = context.config.gateway_api.enabled && context.observed.has_routes;
    let is_served = context.own::<IngressKind>().is_some_and(|ingress| ingress.status.is_published);
    let policies = route_policy::in_use(context).filter(|_| is_routed);
    if let Some(policies) = policies.filter(|_| gui || route.is_own()) {
        route_policy::plan(context, policies, now, plan);
    } else if is_routed && gui {
        route.ensure(plan);
    } else if !is_routed && is_served {
        // An Ingress without an address may lead nowhere: the route of a former configuration stays until it has one.
        route.remove(plan);
    }
    if gui && is_routed && route_policy::is_accepted(context) {
        ingress.remove(plan);
    } else if gui && policies.is_none() {
        ingress.ensure(plan);
    } else {
        // It is kept when the Template switches the web interface off, because it may be in use. With policies, a new one
        // would be a way around them.
        ingress.keep(plan);
    }
}

#[cfg(test)]
pub mod tests;
