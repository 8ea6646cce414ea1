//! Services of type `LoadBalancer`, as the public exposure loop reads them.

use std::collections::BTreeMap;

use macro_rules_attribute::apply;
use serde_json::Value;

use super::{foreign_part, kind};
use crate::api::wire::Optional;

/// The fields that we read of the spec of a Service of type `LoadBalancer`.
#[apply(foreign_part)]
pub struct LoadBalancerServiceSpec {
    /// The type of the Service: `LoadBalancer`, unless somebody changed it.
    #[serde(rename = "type")]
    pub type_: String,
    /// The labels of the pods that receive the traffic.
    pub selector: BTreeMap<String, String>,
    /// The ports of the Service.
    pub ports: Vec<ServicePort>,
    /// The families of its addresses, `IPv4` or `IPv6`. The first one cannot be changed.
    pub ip_families: Optional<Vec<String>>,
}

/// A port of a Service.
#[apply(foreign_part)]
pub struct ServicePort {
    /// The name of the port.
    pub name: String,
    /// The port number on the public address.
    pub port: u16,
    /// The port of the pod: a number, unless somebody changed it to a name.
    pub target_port: Value,
    /// `TCP`, `UDP` or `SCTP`; `TCP` is the default of the API server.
    pub protocol: String,
}

/// The fields that we read of its status.
#[apply(foreign_part)]
pub struct LoadBalancerServiceStatus {
    /// The report of the load balancer.
    pub load_balancer: LoadBalancerStatus,
}

/// The report of a load balancer.
#[apply(foreign_part)]
pub struct LoadBalancerStatus {
    /// The addresses at which the Service can be reached.
    pub ingress: Vec<LoadBalancerIngress>,
}

/// An address of a load balancer.
#[apply(foreign_part)]
pub struct LoadBalancerIngress {
    /// The IP address; empty if there is only a host name.
    pub ip: String,
    /// The host name; empty if there is only an IP address.
    pub hostname: String,
}
kind!(/// A Service of type `LoadBalancer`.
    LoadBalancerServiceKind, LoadBalancerService, "", "v1", "Service", "services", namespaced: true, LoadBalancerServiceSpec, LoadBalancerServiceStatus);
