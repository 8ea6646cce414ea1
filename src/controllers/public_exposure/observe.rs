//! The input of the plan and the report of a public exposure.

use std::net::IpAddr;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};
use jiff::Timestamp;

use super::Settings;
use super::allocator::{Basis, Claim, Port, Transport};
use super::validate::{Validated, WantedPort};
use crate::api::condition::{Condition, PUBLIC_EXPOSURE_READY};
use crate::api::instance::{Instance, PublicExposure};
use crate::api::names::CanonicalName;
use crate::api::parts;
use crate::config::pool;
use crate::kinds::LoadBalancerService;
use crate::runtime::ObjectKey;
use crate::runtime::children::Children;
use crate::runtime::object_events::Events;

/// All inputs of the plan and the report.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    #[as_mut]
    pub instance: Arc<Instance>,
    /// The objects with the names of its Service and `NetworkPolicy`, regardless of their owners.
    pub children: Children,
    /// The validated request.
    pub request: Validated,
    /// The address and ports for the request; `None` if it requests nothing, or if no address has enough free ports.
    pub allocation: Option<Allocation>,
    /// Whether its Service may have been written without a response, so that the store may be stale.
    pub is_unanswered: bool,
    /// The time since which the load balancer has assigned another address than the requested one; `None` if it has
    /// not.
    pub other_since: Option<Timestamp>,
    /// The events about its Service, if load balancers have ignored it for long.
    pub events: Events,
}

/// The address and ports of an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The address.
    pub address: IpAddr,
    /// The requested ports, each with its public port.
    pub ports: Vec<(WantedPort, u16)>,
}

/// The condition about the exposure of an Instance.
pub fn stored_condition(instance: &Instance) -> Option<&Condition> {
    instance.status.conditions.iter().find(|condition| condition.type_ == PUBLIC_EXPOSURE_READY)
}

/// The name of the Service of an Instance.
pub fn service_name(instance: &str) -> String {
    CanonicalName::of(instance).part(&parts::PUBLIC_EXPOSURE)
}

/// The key of the Service of an Instance.
pub fn service_key(instance: &ObjectKey) -> ObjectKey {
    ObjectKey::new(instance.namespace.clone(), service_name(&instance.name))
}

/// The name of the `NetworkPolicy` of an Instance. It contains the name of the Instance unchanged, including dots.
pub fn policy_name(instance: &str) -> String {
    format!("crownlabs-allow-publicexposure-ingress-traffic-{instance}")
}

/// The protocol of a port. A missing protocol is TCP.
pub fn transport(protocol: &str) -> Option<Transport> {
    match protocol {
        "" | "TCP" => Some(Transport::Tcp),
        "UDP" => Some(Transport::Udp),
        _ => None,
    }
}

/// The annotations that request an address from load balancers: both prefixes of `MetalLB`, and the keys of Cilium
/// before and since version 1.16. One of them may have been the configured key before.
const ADDRESS_KEYS: [&str; 4] = [
    "metallb.universe.tf/loadBalancerIPs",
    "metallb.io/loadBalancerIPs",
    "lbipam.cilium.io/ips",
    "io.cilium/lb-ipam-ips",
];

/// The address that a Service requests from the load balancer: from the configured annotation, or from another one of
/// the [`ADDRESS_KEYS`] if the configuration has changed since.
pub fn address(service: &LoadBalancerService, settings: &Settings) -> Option<IpAddr> {
    let keys = std::iter::once(&*settings.config.load_balancer_ips_key).chain(ADDRESS_KEYS);
    keys.filter_map(|key| service.annotation(key)).find_map(pool::parse)
}

/// The annotations that a Service used to request its address before the configured key was changed. Such an annotation
/// is one of the [`ADDRESS_KEYS`]. While the Service lacks the configured key, it is also any annotation with the
/// address in the status of the Instance (`before`).
pub fn former_keys(service: &LoadBalancerService, last: Option<IpAddr>, settings: &Settings) -> Vec<String> {
    let config = &settings.config;
    let is_new = service.annotation(&config.load_balancer_ips_key).is_none();
    let is_former = |key: &str, value: &str| {
        ADDRESS_KEYS.contains(&key) || is_new && last.is_some() && pool::parse(value) == last
    };
    let former = service.metadata.annotations.iter().filter(|(key, value)| is_former(key, value));
    let is_used =
        |key: &String| *key == config.load_balancer_ips_key || config.common_annotations.contains_key(key);
    former.map(|(key, _)| key.to_string()).filter(|key| !is_used(key)).collect()
}

/// The address and ports in the status of an Instance, if the Instance still requests ports and the address is in the
/// pool.
pub fn remembered(instance: &Instance, settings: &Settings) -> Option<(IpAddr, Vec<Port>)> {
    let is_wanted = instance.spec.running && !instance.is_terminating();
    let wants = |exposure: &&PublicExposure| is_wanted && !exposure.ports.is_empty();
    instance.spec.public_exposure.as_ref().filter(wants)?;
    let said = instance.status.public_exposure.as_ref()?;
    let address = pool::parse(&said.external_ip).filter(|address| settings.pool.contains(*address))?;
    let ports = said.ports.iter().filter_map(WantedPort::of_status);
    let ports: Vec<Port> = ports.filter_map(|port| Some((port.transport, port.port?))).collect();
    (!ports.is_empty()).then_some((address, ports))
}

/// Whether a load balancer has assigned addresses to a Service, but not the requested one.
pub fn has_other_address(service: &LoadBalancerService, requested: IpAddr) -> bool {
    let assigned = &service.status.load_balancer.ingress;
    !assigned.is_empty() && assigned.iter().all(|found| pool::parse(&found.ip) != Some(requested))
}

/// The claim of a Service. A Service with another type than `LoadBalancer` or without an address has no claim. A
/// Service that is being deleted still has one.
pub fn claim(service: &LoadBalancerService, settings: &Settings) -> Option<Claim> {
    if service.spec.type_ != "LoadBalancer" {
        return None;
    }
    let ports: Vec<Port> =
        service.spec.ports.iter().filter_map(|port| Some((transport(&port.protocol)?, port.port))).collect();
    let created = service.metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second());
    let basis = Basis::Service { created, uid: service.uid().to_owned() };
    Some(Claim { address: address(service, settings)?, ports, basis })
}
