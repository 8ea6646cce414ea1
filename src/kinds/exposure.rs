//! Services of type `LoadBalancer`, as read by the public exposure loop.

use std::collections::BTreeMap;

use macro_rules_attribute::apply;
use serde::Deserializer;
use serde_json::Value;

use super::{ForeignCondition, foreign_part, kept, kind};
use crate::api::wire::Optional;

/// The fields of a `LoadBalancer` Service's spec that we read.
#[apply(foreign_part)]
pub struct LoadBalancerServiceSpec {
    /// The type of the Service: `LoadBalancer`, unless a user changed it.
    #[serde(rename = "type")]
    pub type_: String,
    /// The labels of the pods that receive the traffic.
    pub selector: BTreeMap<String, String>,
    /// The ports of the Service.
    pub ports: Vec<ServicePort>,
    /// The families of its addresses, `IPv4` or `IPv6`. The first one is immutable.
    pub ip_families: Optional<Vec<String>>,
}

/// A port of a Service.
#[apply(foreign_part)]
pub struct ServicePort {
    /// The name of the port.
    pub name: String,
    /// The port number on the public address.
    pub port: u16,
    /// The port of the pod: a number, unless a user changed it to a name.
    pub target_port: Value,
    /// `TCP`, `UDP` or `SCTP`; the API server defaults it to `TCP`.
    pub protocol: String,
}

/// The fields of its status that we read.
#[apply(foreign_part)]
pub struct LoadBalancerServiceStatus {
    /// The report of the load balancer.
    pub load_balancer: LoadBalancerStatus,
    /// The conditions that report a rejection by the load balancer. All others are dropped during decoding.
    #[serde(deserialize_with = "refusals")]
    pub conditions: Vec<ForeignCondition>,
}

/// The conditions that report a rejection by the load balancer, each with the status that means rejection: Cilium's
/// condition since version 1.15, Cilium's earlier one, and the condition that Kubernetes defines for all load
/// balancers.
const REFUSALS: [(&str, &str); 3] = [
    ("cilium.io/IPAMRequestSatisfied", "False"),
    ("io.cilium/lb-ipam-request-satisfied", "False"),
    ("LoadBalancerPortsError", "True"),
];

fn refusals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| {
        REFUSALS.contains(&(condition.type_.as_str(), condition.status.as_str()))
    })
}

/// The report of a load balancer.
#[apply(foreign_part)]
pub struct LoadBalancerStatus {
    /// The addresses of the Service.
    pub ingress: Vec<LoadBalancerIngress>,
}

/// An address of a load balancer.
#[apply(foreign_part)]
pub struct LoadBalancerIngress {
    /// The IP address; empty if only a host name is set.
    pub ip: String,
    /// The host name; empty if only an IP address is set.
    pub hostname: String,
}
kind!(/// A Service of type `LoadBalancer`.
    LoadBalancerServiceKind, LoadBalancerService, "", "v1", "Service", "services", namespaced: true, LoadBalancerServiceSpec, LoadBalancerServiceStatus);
