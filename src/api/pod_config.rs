//! Pod configurations: additional network interfaces for running pods.

use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON};
use super::object::kind;
use super::wire;

kind!(
    /// A `PodConfig` as it is stored in the API server.
    PodConfigKind, PodConfig, "podconfig.opdev.io", "v1alpha1", "PodConfig", "podconfigs", namespaced: true,
    PodConfigSpec, PodConfigStatus, largest: 1 << 20
);

impl CustomResource for PodConfigKind {
    const SHORT_NAMES: &'static [&'static str] = &["podcfg"];
    const COLUMNS: &'static [Column] = &[Column::text("Phase", ".status.phase"), REASON, MESSAGE, AGE];
    const DESCRIPTION: &'static str = "Additional network interfaces for the running pods of its \
        namespace that have the label podconfig with its name as value.";
}

/// Desired state of the pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PodConfigSpec {
    /// Sample Deployment of two pods that get the interfaces, to try them out. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub sample_deployment: Option<SampleDeployment>,
    /// Network interfaces that each pod gets. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub network_attachments: Vec<NetworkAttachment>,
    /// Accepted for compatibility and ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub vlans: Vec<Vlan>,
}

/// Sample Deployment of two pods that get the interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct SampleDeployment {
    /// Whether the Deployment is created. Defaults to false. When this turns false, it is removed.
    #[serde(skip_serializing_if = "wire::is_off")]
    #[schemars(default)]
    pub create: bool,
    /// Name of the Deployment, for example `lab-pods`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub name: String,
}

/// A network interface that each pod gets: one end of a veth pair whose other end is on the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct NetworkAttachment {
    /// Prefix of the names of both ends of the pair, at most 7 characters, for example `data`: the pod's end
    /// is `data` and a process ID, the node's end has an `h` before it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub name: String,
    /// Type of the link. `veth` is the only one. Required.
    pub link_type: String,
    /// Accepted for compatibility and ignored. Required.
    pub parent: String,
    /// Name of the Linux bridge on the node that the interface is attached to, for example `labbr0`; it is
    /// created if it does not exist.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub master: String,
    /// Range from which the bridge and the pods get their IP addresses, for example `10.77.0.0/24`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub cidr: String,
}

/// A virtual LAN; accepted for compatibility and ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Vlan {
    /// Name of the interface on the node.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub parent_interface_name: String,
    /// Name of the bridge on the node.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub bridge_name: String,
    /// Identifier of the virtual LAN.
    #[serde(rename = "vlanID", deserialize_with = "wire::integer")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default, schema_with = "plain_integer")]
    pub vlan_id: i64,
}

/// The schema of an integer without format and bounds, as existing CRDs have it.
fn plain_integer(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer"})
}

/// Observed state of the pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PodConfigStatus {
    /// Phase of the configuration. `unset`: there are no pods. `configuring`: some pods lack interfaces.
    /// `configured`: all pods have them.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub phase: String,
    /// Pods that have interfaces, with their addresses.
    pub pod_configurations: Vec<PodConfiguration>,
    /// Generation of the spec that the status is about: while it is less than `metadata.generation`, a change has not
    /// been looked at yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Conditions of the pod configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

/// A pod that has interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PodConfiguration {
    /// Name of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub pod_name: String,
    /// One text for each interface: the names of both ends, the IP address and the bridge.
    pub config_list: Vec<String>,
}
