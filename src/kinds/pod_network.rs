//! The Kubernetes kinds that the leader side of pod networks reads.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;
use serde::Deserializer;

use super::{Unread, foreign_part, kept, kind};
use crate::api::quantity::RawQuantity;
use crate::api::text::Text;
use crate::api::wire::Optional;

/// The spec fields of a pod with additional interfaces that we read.
#[apply(foreign_part)]
pub struct NetworkedPodSpec {
    /// The name of the node that the pod is scheduled to; empty while it is not scheduled.
    pub node_name: Text,
    /// Whether it uses the network of its node.
    pub host_network: bool,
}
/// The fields of its status that we read.
#[apply(foreign_part)]
pub struct NetworkedPodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Text,
}
kind!(/// A pod that may have additional interfaces.
    NetworkedPodKind, NetworkedPod, "", "v1", "Pod", "pods", namespaced: true,
    NetworkedPodSpec, NetworkedPodStatus);

/// The condition `Ready` of a node.
#[apply(foreign_part)]
pub struct NodeReady {
    /// Always `Ready`: all other conditions are dropped during decoding.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The time of the last transition.
    pub last_transition_time: Option<Time>,
}
/// The fields of a node, except its status, that we read.
#[apply(foreign_part)]
pub struct NodeBody {
    /// Its metadata again, with all labels.
    #[serde(skip_serializing)]
    pub metadata: NodeLabels,
    /// The settings that decide which pods are scheduled to it.
    pub spec: NodeSpec,
}
/// All labels of a node, for node selectors: the common metadata keeps only some labels.
#[apply(foreign_part)]
pub struct NodeLabels {
    /// The labels.
    pub labels: BTreeMap<String, String>,
}
/// The fields of a node's spec that decide which pods are scheduled to it.
#[apply(foreign_part)]
pub struct NodeSpec {
    /// Whether it is cordoned (`kubectl cordon`).
    pub unschedulable: bool,
    /// Its taints, which keep pods away unless they tolerate them.
    pub taints: Vec<Taint>,
}
/// A taint of a node.
#[apply(foreign_part)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}
/// The fields of a node's status that we read. Other updates by its kubelet, such as heartbeats, cause no change here.
#[apply(foreign_part)]
pub struct NodeStatus {
    /// The condition `Ready`, if there is one.
    #[serde(deserialize_with = "ready")]
    pub conditions: Vec<NodeReady>,
    /// The amount of each resource that is available to its pods.
    pub allocatable: BTreeMap<String, RawQuantity>,
}

fn ready<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NodeReady>, D::Error> {
    kept(deserializer, |condition: &NodeReady| condition.type_ == "Ready")
}
kind!(/// A node: whether it is ready, which pods it accepts, and its allocatable resources.
    NodeKind, Node, "", "v1", "Node", "nodes", namespaced: false, NodeBody, NodeStatus, body: "");

kind!(/// A `ConfigMap` with a record of pod networks. Its `spec` is the field `data`.
    NetworkRecordKind, NetworkRecord, "", "v1", "ConfigMap", "configmaps", namespaced: true,
    BTreeMap<String, String>, Unread, body: "data", largest: 4 << 20);

/// The fields of a sample Deployment's spec that we read: all that we write, except the immutable selector.
#[apply(foreign_part)]
pub struct SampleSpec {
    /// The number of pods.
    pub replicas: Option<i32>,
    /// The template of its pods.
    pub template: SampleTemplate,
}
/// The pod template of a sample Deployment.
#[apply(foreign_part)]
pub struct SampleTemplate {
    /// Their metadata.
    pub metadata: SampleLabels,
    /// Their spec.
    pub spec: SamplePod,
}
/// The metadata of the pods of a sample Deployment.
#[apply(foreign_part)]
pub struct SampleLabels {
    /// Their labels.
    pub labels: BTreeMap<String, String>,
}
/// The spec of the pods of a sample Deployment.
#[apply(foreign_part)]
pub struct SamplePod {
    /// The service account.
    pub service_account_name: String,
    /// Whether its token is mounted.
    pub automount_service_account_token: Option<bool>,
    /// Whether they use the network of their node.
    pub host_network: Optional<bool>,
    /// The security context of the pods.
    pub security_context: SamplePodSecurity,
    /// Their containers.
    pub containers: Vec<SampleContainer>,
}
/// The security context of a sample Deployment's pods.
#[apply(foreign_part)]
pub struct SamplePodSecurity {
    /// Whether running as root is rejected.
    pub run_as_non_root: Option<bool>,
    /// The user ID.
    pub run_as_user: Option<i64>,
    /// The seccomp profile.
    pub seccomp_profile: BTreeMap<String, String>,
    /// The kernel parameters of their network namespace.
    pub sysctls: Vec<BTreeMap<String, String>>,
}
/// A container of a sample Deployment.
#[apply(foreign_part)]
pub struct SampleContainer {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// The image pull policy.
    pub image_pull_policy: String,
    /// Its command.
    pub command: Vec<String>,
    /// Its security context.
    pub security_context: SampleContainerSecurity,
}
/// The security context of a sample Deployment's container.
#[apply(foreign_part)]
pub struct SampleContainerSecurity {
    /// Whether it may gain more privileges than its parent process.
    pub allow_privilege_escalation: Option<bool>,
    /// Whether it is privileged.
    pub privileged: Option<bool>,
    /// The capabilities to add and drop.
    pub capabilities: BTreeMap<String, Vec<String>>,
}
kind!(/// A sample Deployment.
    SampleDeploymentKind, SampleDeployment, "apps", "v1", "Deployment", "deployments", namespaced: true,
    SampleSpec, Unread);
