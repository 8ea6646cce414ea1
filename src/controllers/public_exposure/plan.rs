//! The plan of a public exposure: its Service and `NetworkPolicy`, or their removal.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::Settings;
use super::allocator::Transport;
use super::observe::{Allocation, Observed, policy_name, service_name};
use super::validate::{Validated, no_free_port};
use crate::api::labels;
use crate::controllers::shared::children::{ChildBuilder, ChildMeta, owner};
use crate::kinds::{LoadBalancerServiceKind, NetworkPolicyKind};
use crate::runtime::plan::{Desired, Plan, Removal, Requeue, to_value};

/// After how long at most an Instance without a free port is reconciled again.
const RETRY: Duration = Duration::from_mins(1);

/// The plan.
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
        Validated::Ports(_) => {
            if let Some(allocation) = &observed.allocation {
                plan.ensure.push(service(observed, settings, allocation));
                plan.ensure.extend(policy(observed, allocation));
            } else {
                plan.problems.push(no_free_port());
                plan.requeue_after(RETRY);
            }
        }
    }
    plan
}

/// The Service.
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
        // The same ports in another order are kept as they are: the node ports depend on the order.
        fixed["ports"] = to_value(&existing.spec.ports);
    }
    let mut labels = settings.labels.clone();
    labels.insert(labels::COMPONENT.to_owned(), labels::COMPONENT_PUBLIC_EXPOSURE.to_owned());
    let builder = ChildBuilder { owner: owner(instance), labels };
    let name = service_name(instance.name());
    let mut desired = builder.enforced::<LoadBalancerServiceKind>(
        existing,
        meta(observed, &name, 0),
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

/// The `NetworkPolicy` that allows ingress from everywhere to these ports only.
pub fn policy(observed: &Observed, allocation: &Allocation) -> Option<Desired> {
    let instance = &observed.instance;
    let ports: Vec<Value> = allocation
        .ports
        .iter()
        .map(|(wanted, _)| json!({"port": wanted.target, "protocol": protocol(wanted.transport)}))
        .collect();
    if ports.is_empty() {
        // A rule without ports would allow all of them.
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
        meta(observed, &name, 1),
        &json!({"spec": spec}),
    );
    desired.manifest =
        desired.manifest.map(|manifest| manifest.merged(&json!({"spec": {"policyTypes": ["Ingress"]}})));
    Some(desired)
}

/// The removals of the Service and the `NetworkPolicy`, as far as they exist.
fn removals(observed: &Observed) -> Vec<Removal> {
    let service = observed.own_service().filter(|service| !service.is_terminating());
    let policy = observed
        .policy
        .as_deref()
        .filter(|policy| policy.is_controlled_by(&observed.instance) && !policy.is_terminating());
    let service = service.map(|service| Removal::of(service, ""));
    service.into_iter().chain(policy.map(|policy| Removal::of(policy, ""))).collect()
}

/// The labels of the pods of the Instance.
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

fn meta<'a>(observed: &'a Observed, name: &'a str, wave: u8) -> ChildMeta<'a> {
    ChildMeta { namespace: observed.instance.namespace(), name, component: "", wave }
}
