//! What a reconcile of the exposure of an Instance knows.

use std::net::IpAddr;
use std::sync::Arc;

use super::Settings;
use super::allocator::{Claim, Port, Transport};
use super::validate::{Validated, WantedPort};
use crate::api::instance::Instance;
use crate::api::names::canonical;
use crate::api::{Kind, Object};
use crate::config::pool;
use crate::kinds::{LoadBalancerService, NetworkPolicy};

/// Everything that plan and report depend on.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The Instance.
    pub instance: Arc<Instance>,
    /// Whatever stands where its Service should.
    pub service: Option<Arc<LoadBalancerService>>,
    /// Whatever stands where its `NetworkPolicy` should.
    pub policy: Option<Arc<NetworkPolicy>>,
    /// What it asks for.
    pub request: Validated,
    /// What it has got of that: `None` where it asks for nothing, or no address has room.
    pub allocation: Option<Allocation>,
}

/// The address and ports of an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The address.
    pub address: IpAddr,
    /// The ports that are wanted, each with its public port.
    pub ports: Vec<(WantedPort, u16)>,
}

impl Observed {
    /// Whether the Instance controls the object.
    pub fn owns<T: Kind>(&self, object: &Object<T>) -> bool {
        object.controller_uid() == Some(self.instance.uid())
    }

    /// Its Service, if there is one.
    pub fn own_service(&self) -> Option<&LoadBalancerService> {
        self.service.as_deref().filter(|service| self.owns(service))
    }
}

/// The name of the Service of an Instance.
#[must_use]
pub fn service_name(instance: &str) -> String {
    format!("{}-pe", canonical(instance))
}

/// The name of the `NetworkPolicy` of an Instance: dots stay.
#[must_use]
pub fn policy_name(instance: &str) -> String {
    format!("crownlabs-allow-publicexposure-ingress-traffic-{instance}")
}

/// The protocol of a port; an absent one is TCP.
#[must_use]
pub fn transport(protocol: &str) -> Option<Transport> {
    match protocol {
        "" | "TCP" => Some(Transport::Tcp),
        "UDP" => Some(Transport::Udp),
        _ => None,
    }
}

/// The address that a Service asks the load balancer for.
#[must_use]
pub fn address(service: &LoadBalancerService, settings: &Settings) -> Option<IpAddr> {
    pool::parse(service.annotation(&settings.address_key)?)
}

/// What a Service claims. One that is no load balancer's, or asks for no address, claims nothing; one
/// that is being deleted still does.
#[must_use]
pub fn claim(service: &LoadBalancerService, settings: &Settings) -> Option<Claim> {
    if service.spec.type_ != "LoadBalancer" {
        return None;
    }
    let ports: Vec<Port> =
        service.spec.ports.iter().filter_map(|port| Some((transport(&port.protocol)?, port.port))).collect();
    let born = service.metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second());
    Some(Claim { address: address(service, settings)?, ports, age: (born, service.uid().to_owned()) })
}
