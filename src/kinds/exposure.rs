//! What the exposure of Instances reads of its Services.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kind;

/// The part of the spec of a Service of type `LoadBalancer` that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerServiceSpec {
    /// `LoadBalancer`, unless somebody changed it.
    #[serde(rename = "type")]
    pub type_: String,
    /// The labels of the pods behind it.
    pub selector: BTreeMap<String, String>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
}

/// A port of such a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Its name.
    pub name: String,
    /// The public port.
    pub port: u16,
    /// The port of the pod: a number, unless somebody wrote a name.
    pub target_port: Value,
    /// `TCP`, `UDP` or `SCTP`; the API server fills in `TCP`.
    pub protocol: String,
}

/// The part of its status that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerServiceStatus {
    /// What the load balancer has given it.
    pub load_balancer: LoadBalancerStatus,
}

/// What the load balancer has given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancerStatus {
    /// Where it can be reached.
    pub ingress: Vec<LoadBalancerIngress>,
}

/// An address of a load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancerIngress {
    /// The address, where it is given as such.
    pub ip: String,
    /// The name, where it is given as such.
    pub hostname: String,
}
kind!(/// A Service that is reached from outside.
    LoadBalancerServiceKind, LoadBalancerService, "", "v1", "Service", "services", namespaced: true, LoadBalancerServiceSpec, LoadBalancerServiceStatus);
