//! Services of type `LoadBalancer`, as the public exposure loop reads them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kind;

/// The fields that we read of the spec of a Service of type `LoadBalancer`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerServiceSpec {
    /// The type of the Service: `LoadBalancer`, unless somebody changed it.
    #[serde(rename = "type")]
    pub type_: String,
    /// The labels of the pods that receive the traffic.
    pub selector: BTreeMap<String, String>,
    /// The ports of the Service.
    pub ports: Vec<ServicePort>,
    /// The families of its addresses, `IPv4` or `IPv6`. The first one cannot be changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<String>,
}

/// A port of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerServiceStatus {
    /// What the load balancer has reported.
    pub load_balancer: LoadBalancerStatus,
}

/// What a load balancer has reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancerStatus {
    /// The addresses at which the Service can be reached.
    pub ingress: Vec<LoadBalancerIngress>,
}

/// An address of a load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancerIngress {
    /// The IP address; empty if there is only a host name.
    pub ip: String,
    /// The host name; empty if there is only an IP address.
    pub hostname: String,
}
kind!(/// A Service of type `LoadBalancer`.
    LoadBalancerServiceKind, LoadBalancerService, "", "v1", "Service", "services", namespaced: true, LoadBalancerServiceSpec, LoadBalancerServiceStatus);
