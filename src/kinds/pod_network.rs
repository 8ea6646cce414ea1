//! Kubernetes' own kinds that the leader side of pod networks reads.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;
use serde::Deserializer;

use super::{Unread, foreign_part, kept, kind};
use crate::api::quantity::RawQuantity;
use crate::api::text::Text;
use crate::api::wire::Optional;

/// The fields that we read of the spec of a pod with additional interfaces.
#[apply(foreign_part)]
pub struct NetworkedPodSpec {
    /// The name of the node that the pod is scheduled to; empty before.
    pub node_name: Text,
    /// Whether it uses the network of its node.
    pub host_network: bool,
}
/// The fields that we read of its status.
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
    /// Always `Ready`: all others are dropped while decoding.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Since when.
    pub last_transition_time: Option<Time>,
}
/// The fields that we read of a node besides its status.
#[apply(foreign_part)]
pub struct NodeBody {
    /// Its metadata once more.
    #[serde(skip_serializing)]
    pub metadata: NodeLabels,
    /// Which pods it takes.
    pub spec: NodeSpec,
}
/// All labels of a node, by which pods select it: more of them than are kept of other objects.
#[apply(foreign_part)]
pub struct NodeLabels {
    /// The labels.
    pub labels: BTreeMap<String, String>,
}
/// Which pods a node takes.
#[apply(foreign_part)]
pub struct NodeSpec {
    /// Whether it takes no new pods (`kubectl cordon`).
    pub unschedulable: bool,
    /// What keeps pods away that do not tolerate it.
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
/// The fields that we read of the status of a node. What its kubelet writes besides, such as a heartbeat, changes nothing
/// here.
#[apply(foreign_part)]
pub struct NodeStatus {
    /// The condition `Ready`, if there is one.
    #[serde(deserialize_with = "ready")]
    pub conditions: Vec<NodeReady>,
    /// How much of each resource its pods can have together.
    pub allocatable: BTreeMap<String, RawQuantity>,
}

fn ready<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NodeReady>, D::Error> {
    kept(deserializer, |condition: &NodeReady| condition.type_ == "Ready")
}
kind!(/// A node: whether it is ready, and how much room it has for which pods.
    NodeKind, Node, "", "v1", "Node", "nodes", namespaced: false, NodeBody, NodeStatus, body: "");

kind!(/// A `ConfigMap` with a record of pod networks. Its `spec` is the field `data`.
    NetworkRecordKind, NetworkRecord, "", "v1", "ConfigMap", "configmaps", namespaced: true,
    BTreeMap<String, String>, Unread, body: "data", largest: 4 << 20);

/// The fields that we read of the spec of a sample Deployment: those that we write, but for its selector, which nobody can
/// change.
#[apply(foreign_part)]
pub struct SampleSpec {
    /// The number of pods.
    pub replicas: Option<i32>,
    /// The pods.
    pub template: SampleTemplate,
}
/// The pods of a sample Deployment.
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
    /// Whether they get its token.
    pub automount_service_account_token: Option<bool>,
    /// Whether they use the network of their node.
    pub host_network: Optional<bool>,
    /// As whom they run.
    pub security_context: SamplePodSecurity,
    /// Their containers.
    pub containers: Vec<SampleContainer>,
}
/// As whom the pods of a sample Deployment run.
#[apply(foreign_part)]
pub struct SamplePodSecurity {
    /// Whether root is refused.
    pub run_as_non_root: Option<bool>,
    /// The user.
    pub run_as_user: Option<i64>,
    /// The filter of system calls.
    pub seccomp_profile: BTreeMap<String, String>,
    /// Kernel parameters of their network.
    pub sysctls: Vec<BTreeMap<String, String>>,
}
/// A container of a sample Deployment.
#[apply(foreign_part)]
pub struct SampleContainer {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// When the image is pulled.
    pub image_pull_policy: String,
    /// Its command.
    pub command: Vec<String>,
    /// Its rights.
    pub security_context: SampleContainerSecurity,
}
/// The rights of a container of a sample Deployment.
#[apply(foreign_part)]
pub struct SampleContainerSecurity {
    /// Whether it may get more rights than it began with.
    pub allow_privilege_escalation: Option<bool>,
    /// Whether it runs as the kernel's equal.
    pub privileged: Option<bool>,
    /// The capabilities that are added and dropped.
    pub capabilities: BTreeMap<String, Vec<String>>,
}
kind!(/// A sample Deployment.
    SampleDeploymentKind, SampleDeployment, "apps", "v1", "Deployment", "deployments", namespaced: true,
    SampleSpec, Unread);
