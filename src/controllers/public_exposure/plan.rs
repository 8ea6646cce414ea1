//! The plan of an exposure: its objects, or their removal.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::Settings;
use super::allocator::Transport;
use super::observe::{Allocation, Observed, policy_name, service_name};
use super::validate::{Validated, no_free_port};
use crate::api::labels;
use crate::controllers::shared::children::{ChildBuilder, Place, owner};
use crate::kinds::{LoadBalancerServiceKind, NetworkPolicyKind};
use crate::runtime::plan::{Desired, Plan, Removal, Requeue, to_value};

/// How long an Instance for which no address has room waits at most before it is looked at again.
const PATIENCE: Duration = Duration::from_mins(1);

/// The plan.
#[must_use]
pub fn plan(observed: &Observed, settings: &Settings) -> Plan {
    let mut plan = Plan { stop_at_failure: true, ..Plan::default() };
    match &observed.request {
        Validated::Unknown => plan.requeue = Requeue::OnChange,
        Validated::Nothing => plan.remove = removals(observed),
        Validated::Denied(problem) => {
            plan.remove = removals(observed);
            plan.problems.push(problem.clone());
        }
        Validated::Kept(problem) => plan.problems.push(problem.clone()),
        Validated::Ports(_) => match &observed.allocation {
            Some(allocation) => {
                plan.ensure.push(service(observed, settings, allocation));
                plan.ensure.extend(policy(observed, allocation));
            }
            None => {
                plan.problems.push(no_free_port());
                plan.requeue_after(PATIENCE);
            }
        },
    }
    plan
}

/// The Service.
#[must_use]
pub fn service(observed: &Observed, settings: &Settings, allocation: &Allocation) -> Desired {
    let instance = &observed.instance;
    let ports: Vec<Value> = allocation
        .ports
        .iter()
        .map(|(wanted, port)| {
            json!({
                "name": wanted.name, "port": port, "targetPort": wanted.target,
                "protocol": protocol(wanted.transport),
            })
        })
        .collect();
    let mut fixed = json!({"type": "LoadBalancer", "selector": selector(observed), "ports": ports});
    let existing = observed.service.as_deref();
    if let Some(existing) = existing
        && in_any_order(&fixed["ports"], &to_value(&existing.spec.ports))
    {
        // Another order of the same ports is as good, and what the node ports were given by.
        fixed["ports"] = to_value(&existing.spec.ports);
    }
    let mut labels = settings.labels.clone();
    labels.insert(labels::COMPONENT.to_owned(), labels::COMPONENT_PUBLIC_EXPOSURE.to_owned());
    let builder = ChildBuilder { owner: owner(instance), labels };
    let name = service_name(instance.name());
    let mut desired = builder.enforced::<LoadBalancerServiceKind>(
        existing,
        place(observed, &name, 1),
        &json!({"spec": fixed}),
    );
    let mut annotations = settings.annotations.clone();
    annotations.insert(settings.address_key.clone(), allocation.address.to_string());
    desired.manifest =
        desired.manifest.map(|manifest| manifest.merged(&json!({"metadata": {"annotations": annotations}})));
    desired.annotations = annotations.into_iter().map(|(key, value)| (key, Some(value))).collect();
    desired
}

/// Whether two lists of ports are equal but for their order.
fn in_any_order(wanted: &Value, found: &Value) -> bool {
    let (Some(wanted), Some(found)) = (wanted.as_array(), found.as_array()) else { return false };
    wanted.len() == found.len() && wanted.iter().all(|port| found.contains(port))
}

/// The `NetworkPolicy` that lets the world in, to these ports and no others.
#[must_use]
pub fn policy(observed: &Observed, allocation: &Allocation) -> Option<Desired> {
    let instance = &observed.instance;
    let ports: Vec<Value> = allocation
        .ports
        .iter()
        .map(|(wanted, _)| json!({"port": wanted.target, "protocol": protocol(wanted.transport)}))
        .collect();
    if ports.is_empty() {
        // An entry without ports would open all of them.
        return None;
    }
    let mut labels = selector(observed);
    labels.insert(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_INSTANCE.to_owned());
    let builder = ChildBuilder { owner: owner(instance), labels };
    let name = policy_name(instance.name());
    let spec = json!({
        "podSelector": {"matchLabels": {labels::INSTANCE: instance.name()}},
        "ingress": [{"ports": ports}],
    });
    let mut desired = builder.enforced::<NetworkPolicyKind>(
        observed.policy.as_deref(),
        place(observed, &name, 1),
        &json!({"spec": spec}),
    );
    desired.manifest =
        desired.manifest.map(|manifest| manifest.merged(&json!({"spec": {"policyTypes": ["Ingress"]}})));
    Some(desired)
}

/// What is there and should not be.
fn removals(observed: &Observed) -> Vec<Removal> {
    let service = observed.own_service().filter(|service| !service.is_terminating());
    let policy =
        observed.policy.as_deref().filter(|policy| observed.owns(policy) && !policy.is_terminating());
    let service = service.map(|service| Removal::of(service, ""));
    service.into_iter().chain(policy.map(|policy| Removal::of(policy, ""))).collect()
}

/// The labels that the pods of the Instance carry.
fn selector(observed: &Observed) -> BTreeMap<String, String> {
    let instance = &observed.instance;
    let spec = &instance.spec;
    [
        (labels::INSTANCE, instance.name()),
        (labels::TEMPLATE, spec.template_ref.name.as_str()),
        (labels::TENANT, spec.tenant_ref.name.as_str()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

fn protocol(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    }
}

fn place<'a>(observed: &'a Observed, name: &'a str, wave: u8) -> Place<'a> {
    Place { namespace: observed.instance.namespace(), name, component: "", wave }
}
