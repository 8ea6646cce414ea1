//! The input of the plan and the report of a public exposure.

use std::net::IpAddr;
use std::sync::Arc;

use derive_more::AsRef;

use super::Settings;
use super::allocator::{Claim, Port, Transport};
use super::validate::{Validated, WantedPort};
use crate::api::instance::Instance;
use crate::api::names::CanonicalName;

use crate::config::pool;
use crate::kinds::{LoadBalancerService, NetworkPolicy};

/// Everything that plan and report depend on.
#[derive(Debug, Clone, AsRef)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    pub instance: Arc<Instance>,
    /// The object with the name of its Service, whoever owns it.
    pub service: Option<Arc<LoadBalancerService>>,
    /// The object with the name of its `NetworkPolicy`, whoever owns it.
    pub policy: Option<Arc<NetworkPolicy>>,
    /// The validated request.
    pub request: Validated,
    /// The address and ports for the request; `None` where it requests nothing, or no address has enough
    /// free ports.
    pub allocation: Option<Allocation>,
}

/// The address and ports of an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The address.
    pub address: IpAddr,
    /// The requested ports, each with its public port.
    pub ports: Vec<(WantedPort, u16)>,
}

impl Observed {
    /// Its Service, if the Instance is its controller.
    pub fn own_service(&self) -> Option<&LoadBalancerService> {
        self.service.as_deref().filter(|service| service.is_controlled_by(&self.instance))
    }
}

/// The name of the Service of an Instance.
pub fn service_name(instance: &str) -> String {
    CanonicalName::of(instance).public_exposure()
}

/// The name of the `NetworkPolicy` of an Instance. It contains the name of the Instance unchanged, with its
/// dots.
pub fn policy_name(instance: &str) -> String {
    format!("crownlabs-allow-publicexposure-ingress-traffic-{instance}")
}

/// The protocol of a port; an absent one is TCP.
pub fn transport(protocol: &str) -> Option<Transport> {
    match protocol {
        "" | "TCP" => Some(Transport::Tcp),
        "UDP" => Some(Transport::Udp),
        _ => None,
    }
}

/// The address that a Service requests from the load balancer.
pub fn address(service: &LoadBalancerService, settings: &Settings) -> Option<IpAddr> {
    pool::parse(service.annotation(&settings.address_key)?)
}

/// The claim of a Service. One of another type than `LoadBalancer`, or without an address, claims nothing;
/// one that is being deleted still does.
pub fn claim(service: &LoadBalancerService, settings: &Settings) -> Option<Claim> {
    if service.spec.type_ != "LoadBalancer" {
        return None;
    }
    let ports: Vec<Port> =
        service.spec.ports.iter().filter_map(|port| Some((transport(&port.protocol)?, port.port))).collect();
    let created = service.metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second());
    Some(Claim { address: address(service, settings)?, ports, age: (created, service.uid().to_owned()) })
}
