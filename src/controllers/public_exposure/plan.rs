//! The plan of a public exposure: its Service and `NetworkPolicy`, or their removal.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Settings;
use super::allocator::Transport;
use super::observe::{Allocation, Observed, address, former_keys, policy_name, service_key, service_name};
use super::validate::{Validated, no_free_port};
use crate::api::labels;
use crate::api::template::TemplateKind;
use crate::config::pool;
use crate::controllers::shared::children::Parent;
use crate::controllers::shared::references::template_key;
use crate::kinds::{LoadBalancerService, LoadBalancerServiceKind, NetworkPolicyKind};
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, KindInfo, Plan, Precondition, Removal, Requeue, to_value};

/// After how long at most an Instance without a free port is reconciled again.
const RETRY: Duration = Duration::from_mins(1);
/// How long a load balancer may take to assign another address than it has assigned before.
pub const OTHER_ADDRESS_GRACE: Duration = Duration::from_mins(1);

/// The plan.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
    let mut plan = Plan { stop_at_failure: true, ..Plan::default() };
    if observed.is_unanswered {
        // What the API server has decides which ports are free.
        let key = service_key(&ObjectKey::of(&*observed.instance));
        plan.confirm.push((KindInfo::of::<LoadBalancerServiceKind>(), key));
    }
    match &observed.request {
        Validated::Unknown => plan.requeue = Requeue::OnChange,
        Validated::Nothing => plan.remove = removals(observed),
        Validated::Denied(problem) => {
            plan.remove = removals(observed);
            plan.problems.push(problem.clone());
        }
        Validated::Kept(problem) => {
            if is_withdrawn(observed, settings) {
                plan.remove = removals(observed);
            }
            plan.problems.push(problem.clone());
        }
        Validated::Ports(_) => {
            if let Some(allocation) = &observed.allocation {
                expose(observed, settings, allocation, now, &mut plan);
            } else {
                if is_withdrawn(observed, settings) {
                    plan.remove = removals(observed);
                }
                plan.problems.push(no_free_port());
                plan.requeue_after(RETRY);
            }
        }
    }
    plan
}

/// Plans Service and `NetworkPolicy`.
fn expose(
    observed: &Observed,
    settings: &Settings,
    allocation: &Allocation,
    now: Timestamp,
    plan: &mut Plan,
) {
    let grace = observed.other_since.map(|since| grace_left(since, now));
    if let Some(left) = grace.filter(|left| !left.is_zero()) {
        plan.requeue_after(left);
    }
    match observed.own_service() {
        // Its deletion causes the next reconcile, which makes it anew.
        Some(leaving) if leaving.is_terminating() => {}
        Some(existing) if cannot_be_changed(existing, allocation) => {
            plan.remove.push(Removal::of(existing, Component::Whole));
            plan.requeue_after(Duration::ZERO);
        }
        _ => plan.ensure.push(service(observed, settings, allocation)),
    }
    plan.ensure.extend(policy(observed, allocation));
}

/// Whether the API server would refuse to give a Service this address or these ports, so that it has to be made anew.
fn cannot_be_changed(existing: &LoadBalancerService, allocation: &Allocation) -> bool {
    let has_other_family =
        existing.spec.ip_families.first().is_some_and(|first| first != family(allocation.address));
    has_other_family || node_ports_collide(existing, allocation)
}

/// Whether two ports would get one node port. A TCP and a UDP port of one number share a node port, and the API server
/// keeps the node port of a port for as long as that has its name: also when both become ports of one protocol, which it
/// then refuses.
fn node_ports_collide(existing: &LoadBalancerService, allocation: &Allocation) -> bool {
    let ports = &existing.spec.ports;
    let wanted = |name: &str| {
        let found = allocation.ports.iter().find(|(wanted, _)| wanted.name == name);
        found.map(|(wanted, _)| protocol(wanted.transport))
    };
    ports.iter().enumerate().any(|(at, one)| {
        ports.iter().skip(at + 1).any(|other| {
            one.port == other.port && wanted(&one.name).is_some() && wanted(&one.name) == wanted(&other.name)
        })
    })
}

/// How long a load balancer may still take to assign the requested address, if it has had another one for the
/// Service since then; zero when its time is over.
pub fn grace_left(since: Timestamp, now: Timestamp) -> Duration {
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    OTHER_ADDRESS_GRACE.saturating_sub(passed)
}

/// Whether the Service has an address that is not in the pool any more. Nothing else may announce it then.
fn is_withdrawn(observed: &Observed, settings: &Settings) -> bool {
    let address = observed.own_service().and_then(|service| address(service, settings));
    address.is_some_and(|address| !settings.pool.contains(address))
}

/// The family of an address, as Services name it.
fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// The Service.
pub fn service(observed: &Observed, settings: &Settings, allocation: &Allocation) -> Desired {
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
    let existing = observed.service.as_deref();
    let before = existing.map(|existing| to_value(&existing.spec.ports));
    let ports = in_order_of(elements(before.as_ref()), ports);
    let mut fixed = json!({"type": "LoadBalancer", "selector": selector(observed), "ports": ports});
    // The API server chooses them; only the first one matters here, and `expose` has compared that.
    if let Some(families) =
        existing.map(|existing| &existing.spec.ip_families).filter(|list| !list.is_empty())
    {
        fixed["ipFamilies"] = json!(families);
    }
    let mut labels = settings.labels.clone();
    labels.insert(labels::COMPONENT.to_owned(), labels::COMPONENT_PUBLIC_EXPOSURE.to_owned());
    let mut annotations = settings.annotations.clone();
    annotations.insert(settings.address_key.clone(), allocation.address.to_string());
    let more = if allocation.address.is_ipv6() {
        // Without these, a cluster with both families makes an IPv4 Service, for which no load balancer
        // assigns an IPv6 address.
        json!({"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": [family(allocation.address)]}})
    } else {
        json!({})
    };
    let mut former = Vec::new();
    if let Some(existing) = existing {
        let said = observed.instance.status.public_exposure.as_ref();
        let before = said.and_then(|said| pool::parse(&said.external_ip));
        former = former_keys(existing, before, settings);
    }
    let name = service_name(observed.instance.name());
    let body = json!({"spec": fixed});
    let child = Parent::new(&observed.instance, labels)
        .child::<LoadBalancerServiceKind>(&name, &Component::Whole, 0, || body.clone())
        .existing(existing)
        .enforced()
        .initially(more)
        .annotated(annotations.into_iter().map(|(key, value)| (key, Some(value))))
        .annotated(former.into_iter().map(|key| (key, None)));
    // A Service that has lost its label is not in the store.
    let unseen = existing.is_none().then(|| body.clone());
    let desired = child.made();
    Desired { fields: unseen.unwrap_or(desired.fields), ..desired }
}

/// A list of ports, in the order of `before` if that has the same ones: the order means nothing to users, but a
/// list is written as a whole, and the node ports of a Service depend on its order.
pub fn in_order_of<P: PartialEq + Clone>(before: &[P], wanted: Vec<P>) -> Vec<P> {
    let is_same = before.len() == wanted.len() && wanted.iter().all(|port| before.contains(port));
    if is_same { before.to_vec() } else { wanted }
}

/// The elements of a list.
fn elements(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
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
    let existing = observed.policy.as_deref();
    let before = existing.and_then(|existing| existing.spec.ingress.pointer("/0/ports"));
    let spec = json!({
        "podSelector": {"matchLabels": {labels::INSTANCE: instance.name()}},
        "ingress": [{"ports": in_order_of(elements(before), ports)}],
        "policyTypes": ["Ingress"],
    });
    let name = policy_name(instance.name());
    let child = Parent::new(instance, labels).child::<NetworkPolicyKind>(
        &name,
        &Component::Whole,
        1,
        || json!({"spec": spec}),
    );
    Some(child.existing(existing).enforced().made())
}

/// The removals of the Service and the `NetworkPolicy`, as far as they exist.
fn removals(observed: &Observed) -> Vec<Removal> {
    let service = observed.own_service().filter(|service| !service.is_terminating());
    let policy = observed
        .policy
        .as_deref()
        .filter(|policy| policy.is_controlled_by(&observed.instance) && !policy.is_terminating());
    // With the Service, the address and the ports are lost.
    let mut preconditions = vec![Precondition::object(&*observed.instance)];
    if matches!(observed.request, Validated::Denied(_)) {
        preconditions
            .push(Precondition::Object(KindInfo::of::<TemplateKind>(), template_key(&observed.instance)));
    }
    let service =
        service.map(|service| Removal::of(service, Component::Whole).with_preconditions(preconditions));
    service.into_iter().chain(policy.map(|policy| Removal::of(policy, Component::Whole))).collect()
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
