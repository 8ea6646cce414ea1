//! Pod configurations: additional network interfaces for running pods.

use macro_rules_attribute::apply;

use super::condition::Condition;
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON};
use super::object::kind;
use super::wire::{self, Optional, resource_part};

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
#[apply(resource_part)]
pub struct PodConfigSpec {
    /// Sample Deployment of two pods that get the interfaces, to try them out. Default: none.
    pub sample_deployment: Option<SampleDeployment>,
    /// Network interfaces that each pod gets. Default: none.
    pub network_attachments: Optional<Vec<NetworkAttachment>>,
    /// Accepted for compatibility and ignored.
    pub vlans: Optional<Vec<Vlan>>,
}

/// Sample Deployment of two pods that get the interfaces.
#[apply(resource_part)]
pub struct SampleDeployment {
    /// Whether the Deployment is created. Defaults to false. If it is changed to false, the Deployment is removed.
    pub create: Optional<bool>,
    /// Name of the Deployment, for example `lab-pods`.
    pub name: Optional<String>,
}

/// A network interface that each pod gets: one end of a veth pair whose other end is on the node.
#[apply(resource_part)]
pub struct NetworkAttachment {
    /// Prefix of the names of both ends of the pair, at most 7 characters, for example `data`. The name of the pod's
    /// end is `data` followed by a process ID; the name of the node's end has an additional `h` before it.
    pub name: Optional<String>,
    /// Type of the link. `veth` is the only one. Required.
    pub link_type: String,
    /// Accepted for compatibility and ignored. Required.
    pub parent: String,
    /// Name of the Linux bridge on the node that the interface is attached to, for example `labbr0`; it is created if
    /// it does not exist.
    pub master: Optional<String>,
    /// Range of the IP addresses of the bridge and the pods, for example `10.77.0.0/24`.
    pub cidr: Optional<String>,
}

/// A virtual LAN; accepted for compatibility and ignored.
#[apply(resource_part)]
pub struct Vlan {
    /// Name of the interface on the node.
    pub parent_interface_name: Optional<String>,
    /// Name of the bridge on the node.
    pub bridge_name: Optional<String>,
    /// Identifier of the virtual LAN.
    #[serde(rename = "vlanID", deserialize_with = "wire::integer")]
    #[schemars(schema_with = "plain_integer")]
    pub vlan_id: Optional<i64>,
}

/// The schema of an integer without format and bounds, as existing CRDs have it.
fn plain_integer(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer"})
}

/// Observed state of the pods.
#[apply(resource_part)]
pub struct PodConfigStatus {
    /// Phase of the configuration. `unset`: there are no pods. `configuring`: some pods lack interfaces.
    /// `configured`: all pods have them.
    pub phase: Optional<String>,
    /// Pods that have interfaces, with their addresses.
    pub pod_configurations: Vec<PodConfiguration>,
    /// Generation of the spec that the status describes. If it is less than `metadata.generation`, the last change
    /// has not been processed yet.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Conditions of the pod configuration.
    pub conditions: Optional<Vec<Condition>>,
}

/// A pod that has interfaces.
#[apply(resource_part)]
pub struct PodConfiguration {
    /// Name of the pod.
    pub pod_name: Optional<String>,
    /// One text for each interface: the names of both ends, the IP address and the bridge.
    pub config_list: Vec<String>,
}
