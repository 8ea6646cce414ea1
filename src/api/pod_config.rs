//! Pod configurations: further network interfaces in running pods.

use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{Column, CustomResource};
use super::object::{Kind, Object};
use super::wire;

/// The kind of [`PodConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodConfigKind;

/// Further network interfaces for the pods that carry its name as label.
pub type PodConfig = Object<PodConfigKind>;

impl Kind for PodConfigKind {
    const GROUP: &'static str = "podconfig.opdev.io";
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "PodConfig";
    const PLURAL: &'static str = "podconfigs";
    const NAMESPACED: bool = true;
    type Spec = PodConfigSpec;
    type Status = PodConfigStatus;
}

impl CustomResource for PodConfigKind {
    const COLUMNS: &'static [Column] = &[];
    const DESCRIPTION: &'static str = "Further network interfaces in running pods.";
}

/// What pods are connected to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PodConfigSpec {
    /// A deployment whose pods show the interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub sample_deployment: Option<SampleDeployment>,
    /// The interfaces of each pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub network_attachments: Vec<NetworkAttachment>,
    /// Accepted and ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub vlans: Vec<Vlan>,
}

/// A deployment whose pods show the interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct SampleDeployment {
    /// Whether it is created.
    #[serde(skip_serializing_if = "wire::is_off")]
    #[schemars(default)]
    pub create: bool,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub name: String,
}

/// An interface of each pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct NetworkAttachment {
    /// The beginning of the names of both ends.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub name: String,
    /// The type of the link; veth is the only one.
    pub link_type: String,
    /// Accepted and ignored.
    pub parent: String,
    /// The bridge on the node that the interface is connected to.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub master: String,
    /// The range that addresses are taken from.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub cidr: String,
}

/// A virtual LAN; accepted and ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Vlan {
    /// The interface of the node.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub parent_interface_name: String,
    /// The bridge.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub bridge_name: String,
    /// The number of the virtual LAN.
    #[serde(rename = "vlanID", deserialize_with = "wire::integer")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(default, schema_with = "plain_integer")]
    pub vlan_id: i64,
}

/// An integer of any size, as the schema has had it from the beginning.
fn plain_integer(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer"})
}

/// What pods are connected to at present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PodConfigStatus {
    /// How far it is: unset, configuring or configured.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub phase: String,
    /// The pods that have their interfaces.
    pub pod_configurations: Vec<PodConfiguration>,
    /// The state of the pod configuration in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

/// A pod that has its interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PodConfiguration {
    /// The name of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub pod_name: String,
    /// One line for each interface.
    pub config_list: Vec<String>,
}
