//! The objects of an exposure (03 §1.8), and their removal.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::Settings;
use super::allocator::{Allocator, Request, Transport};
use super::observe::{Observed, address, policy_name, service_name};
use super::wish::{WantedPort, held};
use crate::api::labels;
use crate::controllers::children::{ChildBuilder, Place, owner};
use crate::kinds::{LoadBalancerServiceKind, NetworkPolicyKind};
use crate::runtime::ObjectKey;
use crate::runtime::plan::{Desired, Plan, Removal, to_value};

/// What an Instance is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The address.
    pub address: IpAddr,
    /// The ports that are wanted, each with its public port.
    pub ports: Vec<(WantedPort, u16)>,
}

/// The address and ports of an Instance: those that it has, or new ones. `None` when no address has room.
pub fn give(
    allocator: &mut Allocator,
    observed: &Observed,
    service: &ObjectKey,
    wanted: Vec<WantedPort>,
    settings: &Settings,
) -> Option<Given> {
    let existing = observed.own_service();
    let held = held(observed, &wanted, settings).filter(|_| !allocator.must_move(service));
    let held = held.zip(existing.and_then(|existing| address(existing, settings)));
    let (ports, address) = if let Some(held) = held {
        held
    } else {
        let before = existing.map_or(&[][..], |service| &service.spec.ports);
        let requests: Vec<Request> = wanted.iter().map(|port| port.request(before)).collect();
        let claim = allocator.allocate(service, &requests, &settings.pool, &settings.automatic)?;
        (claim.ports.iter().map(|(_, port)| *port).collect(), claim.address)
    };
    Some(Given { address, ports: wanted.into_iter().zip(ports).collect() })
}

/// The Service.
#[must_use]
pub fn service(observed: &Observed, settings: &Settings, given: &Given) -> Plan {
    let instance = &observed.instance;
    let ports: Vec<Value> = given
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
        place(observed, &name),
        &json!({"spec": fixed}),
    );
    let mut annotations = settings.annotations.clone();
    annotations.insert(settings.address_key.clone(), given.address.to_string());
    desired.manifest =
        desired.manifest.map(|manifest| manifest.merged(&json!({"metadata": {"annotations": annotations}})));
    desired.annotations = annotations.into_iter().map(|(key, value)| (key, Some(value))).collect();
    only(desired)
}

/// Whether two lists of ports are equal but for their order.
fn in_any_order(wanted: &Value, found: &Value) -> bool {
    let (Some(wanted), Some(found)) = (wanted.as_array(), found.as_array()) else { return false };
    wanted.len() == found.len() && wanted.iter().all(|port| found.contains(port))
}

/// The `NetworkPolicy` that lets the world in, to these ports and no others.
#[must_use]
pub fn policy(observed: &Observed, given: &Given) -> Plan {
    let instance = &observed.instance;
    let ports: Vec<Value> = given
        .ports
        .iter()
        .map(|(wanted, _)| json!({"port": wanted.target, "protocol": protocol(wanted.transport)}))
        .collect();
    if ports.is_empty() {
        // An entry without ports would open all of them.
        return Plan::default();
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
        place(observed, &name),
        &json!({"spec": spec}),
    );
    desired.manifest =
        desired.manifest.map(|manifest| manifest.merged(&json!({"spec": {"policyTypes": ["Ingress"]}})));
    only(desired)
}

/// What is there and should not be.
#[must_use]
pub fn removal(observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    if let Some(service) = observed.own_service().filter(|service| !service.is_terminating()) {
        plan.remove.push(Removal::of(service, ""));
    }
    let policy =
        observed.policy.as_deref().filter(|policy| observed.owns(policy) && !policy.is_terminating());
    plan.remove.extend(policy.map(|policy| Removal::of(policy, "")));
    plan
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

fn place<'a>(observed: &'a Observed, name: &'a str) -> Place<'a> {
    Place { namespace: observed.instance.namespace(), name, component: "", wave: 0 }
}

fn only(desired: Desired) -> Plan {
    Plan { ensure: vec![desired], ..Plan::default() }
}
