//! The children of an exposed Instance: the Service with its address and ports, and the `NetworkPolicy` that permits
//! traffic from them to its pods.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Settings;
use super::allocator::Transport;
use super::observe::{Allocation, Observed, former_keys, policy_name, service_key, service_name};
use super::stores::ByServiceName;
use super::validate::WantedPort;
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::config::pool;
use crate::controllers::shared::children::{Child, Parent};
use crate::kinds::{
    LoadBalancerService, LoadBalancerServiceKind, NetworkPolicy, NetworkPolicyKind, ServiceKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::component::Component;
use crate::runtime::plan::to_value;
use crate::runtime::selection::Selection;
use crate::runtime::store::{ByController, Store};
use crate::runtime::store_set::StoreSet;

/// The Services of exposed Instances.
pub fn services() -> Selection {
    Selection::label(labels::COMPONENT, labels::COMPONENT_PUBLIC_EXPOSURE)
}

/// Declares the stores, and returns them together, and the stores of the exposures' Services and of the environments'
/// Services. The first holds the Services of all namespaces, because they share the addresses; the second may hold
/// Services with the name of an exposure's Service. The deletion of a Service queues the Instances whose Service may
/// have this name. The creation or deletion of an environment's Service does the same, and also queues the Instance with
/// that name, because it shows how the objects of the Instance are named.
pub fn declare(
    set: &mut StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
) -> (ChildStores, Arc<Store<LoadBalancerServiceKind>>, Arc<Store<ServiceKind>>) {
    let mut children = ChildStores::of_controller::<InstanceKind>();
    let services = set.store(&services()).wakes_by::<ByServiceName, _, _>(instances, |change| {
        change.old.as_ref().filter(|_| change.new.is_none()).map(|service| ObjectKey::of(&**service))
    });
    let services = children.add(services);
    let of_instances = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
    children.add(set.store::<NetworkPolicyKind>(&of_instances));
    let of_environments = set.store::<ServiceKind>(&of_instances).index::<ByController>();
    let of_environments = of_environments.wakes_by::<ByServiceName, _, _>(instances, |change| {
        let service = change.object_if(|_| ()).map(|service| ObjectKey::of(&**service));
        service.into_iter().flat_map(|key| [service_key(&key), key])
    });
    let of_environments = of_environments.get();
    children.read(&of_environments);
    (children, services, of_environments)
}

/// The keys of the children of an Instance.
pub fn keys(instance: &ObjectKey) -> [ObjectKey; 2] {
    [service_key(instance), ObjectKey::new(instance.namespace.clone(), policy_name(&instance.name))]
}

impl Observed {
    /// The object with the name of its Service, regardless of its owner.
    pub fn service(&self) -> Option<&LoadBalancerService> {
        let name = service_name(self.instance.name());
        self.children.get::<LoadBalancerServiceKind>(self.instance.namespace(), &name)
    }

    /// Its Service, if the Instance is its controller.
    pub fn own_service(&self) -> Option<&LoadBalancerService> {
        self.children.own(&self.instance, &service_name(self.instance.name()))
    }

    /// The object with the name of its `NetworkPolicy`, regardless of its owner.
    pub fn policy(&self) -> Option<&NetworkPolicy> {
        let name = policy_name(self.instance.name());
        self.children.get::<NetworkPolicyKind>(self.instance.namespace(), &name)
    }
}

/// The parent of both children, with these labels.
pub fn parent(observed: &Observed, labels: BTreeMap<String, String>) -> Parent<'_> {
    Parent::new(&observed.instance, labels).seeing(&observed.children)
}

fn service_of<'a>(parent: &Parent<'a>, body: impl FnOnce() -> Value + 'a) -> Child<'a> {
    let name = service_name(&parent.owner.name);
    parent.child::<LoadBalancerServiceKind>(&name, &Component::Whole, 0, body)
}

fn policy_of<'a>(parent: &Parent<'a>, body: impl FnOnce() -> Value + 'a) -> Child<'a> {
    let name = policy_name(&parent.owner.name);
    parent.child::<NetworkPolicyKind>(&name, &Component::Whole, 1, body)
}

/// The Service and the `NetworkPolicy` without the fields of an allocation, for their removal.
pub fn bare(observed: &Observed) -> [Child<'_>; 2] {
    let parent = parent(observed, [].into());
    [service_of(&parent, Value::default), policy_of(&parent, Value::default)]
}

/// The Service.
pub fn service<'a>(observed: &'a Observed, settings: &Settings, allocation: &Allocation) -> Child<'a> {
    let port = |(wanted, port): &(WantedPort, u16)| {
        let protocol = protocol(wanted.transport);
        json!({"name": wanted.name, "port": port, "targetPort": wanted.target, "protocol": protocol})
    };
    let existing = observed.service();
    let before = existing.map(|existing| to_value(&existing.spec.ports));
    let ports = in_order_of(elements(before.as_ref()), allocation.ports.iter().map(port).collect());
    let mut spec =
        json!({"type": "LoadBalancer", "selector": labels::of_instance(&observed.instance), "ports": ports});
    // The API server chooses the families. Only the first one matters here, and the plan has compared it.
    if let Some(existing) = existing.filter(|existing| !existing.spec.ip_families.is_empty()) {
        spec["ipFamilies"] = json!(existing.spec.ip_families);
    }
    let mut labels = settings.config.common_labels.clone();
    labels.insert(labels::COMPONENT.to_owned(), labels::COMPONENT_PUBLIC_EXPOSURE.to_owned());
    let mut annotations = settings.config.common_annotations.clone();
    annotations.insert(settings.config.load_balancer_ips_key.clone(), allocation.address.to_string());
    let more = if allocation.address.is_ipv6() {
        // Without these fields, a dual-stack cluster creates an IPv4 Service, and load balancers do not assign an IPv6
        // address to it.
        json!({"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": [family(allocation.address)]}})
    } else {
        json!({})
    };
    let said = observed.instance.status.public_exposure.as_ref();
    let before = said.and_then(|said| pool::parse(&said.external_ip));
    let former = existing.into_iter().flat_map(|existing| former_keys(existing, before, settings));
    let body = json!({"spec": spec});
    // A Service that has lost its label is not in the store, so these fields are enforced.
    let made = body.clone();
    service_of(&parent(observed, labels), || made)
        .enforced()
        .fields(body)
        .initially(more)
        .annotated(annotations.into_iter().map(|(key, value)| (key, Some(value))))
        .annotated(former.map(|key| (key, None)))
}

/// Returns a list of ports in the order of `before` if that has the same elements. The order is irrelevant to users,
/// but a list is written as a whole, and the node ports of a Service depend on its order.
pub fn in_order_of<P: PartialEq + Clone>(before: &[P], wanted: Vec<P>) -> Vec<P> {
    let is_same = before.len() == wanted.len() && wanted.iter().all(|port| before.contains(port));
    if is_same { before.to_vec() } else { wanted }
}

/// The elements of a list.
fn elements(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The `NetworkPolicy` that allows ingress from everywhere, only to these ports. `None` without ports, because a rule
/// without ports would allow all of them.
pub fn policy<'a>(observed: &'a Observed, allocation: &'a Allocation) -> Option<Child<'a>> {
    let mut labels = labels::of_instance(&observed.instance);
    labels.insert(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_INSTANCE.to_owned());
    let body = || {
        let port = |(wanted, _): &(WantedPort, u16)| {
            let protocol = protocol(wanted.transport);
            json!({"port": wanted.target, "protocol": protocol})
        };
        let ports = allocation.ports.iter().map(port).collect();
        let before = observed.policy().and_then(|existing| existing.spec.ingress.pointer("/0/ports"));
        json!({"spec": {
            "podSelector": {"matchLabels": {labels::INSTANCE: observed.instance.name()}},
            "ingress": [{"ports": in_order_of(elements(before), ports)}],
            "policyTypes": ["Ingress"],
        }})
    };
    (!allocation.ports.is_empty()).then(|| policy_of(&parent(observed, labels), body).enforced())
}

/// The name of an address's family in Services.
pub fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// The name of a protocol in Services and `NetworkPolicies`.
pub fn protocol(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    }
}
