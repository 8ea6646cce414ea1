//! Kinds that every Kubernetes cluster has.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Unread, kind};

/// What we read of a condition of another controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForeignCondition {
    /// Type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

kind!(/// A namespace: its labels say whether it is ours.
    NamespaceKind, Namespace, "", "v1", "Namespace", "namespaces", namespaced: false, Unread, Unread);

/// The part of a Service's spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// The address that the cluster gave it.
    #[serde(rename = "clusterIP", skip_serializing_if = "Option::is_none")]
    pub cluster_ip: Option<String>,
}
kind!(/// A Service.
    ServiceKind, Service, "", "v1", "Service", "services", namespaced: true, ServiceSpec, Unread);

kind!(/// An Ingress.
    IngressKind, Ingress, "networking.k8s.io", "v1", "Ingress", "ingresses", namespaced: true, Unread, Unread);

kind!(/// A Secret; its "spec" is its data, base64 as on the wire.
    SecretKind, Secret, "", "v1", "Secret", "secrets", namespaced: true, BTreeMap<String, String>, Unread,
    body: "data");

kind!(/// A claim on storage.
    PersistentVolumeClaimKind, PersistentVolumeClaim, "", "v1", "PersistentVolumeClaim",
    "persistentvolumeclaims", namespaced: true, Unread, Unread);

/// The part of a Deployment's spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// Wanted pods; the API server fills in 1.
    pub replicas: Option<i32>,
}
/// The part of a Deployment's status that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// Pods that are ready.
    pub ready_replicas: Option<i32>,
    /// `ReplicaFailure` alone: the others change with every step of a roll-out and tell us nothing,
    /// and a change that is not kept asks for no pass.
    #[serde(deserialize_with = "replica_failure")]
    pub conditions: Vec<ForeignCondition>,
}

fn replica_failure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    let mut conditions = Option::<Vec<ForeignCondition>>::deserialize(deserializer)?.unwrap_or_default();
    conditions.retain(|condition| condition.type_ == "ReplicaFailure");
    Ok(conditions)
}
kind!(/// A Deployment.
    DeploymentKind, Deployment, "apps", "v1", "Deployment", "deployments", namespaced: true,
    DeploymentSpec, DeploymentStatus);

/// The part of a Pod's spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The node that it runs on.
    pub node_name: Option<String>,
    /// The labels that its node must carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
}
/// The part of a Pod's status that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
}
kind!(/// A Pod.
    PodKind, Pod, "", "v1", "Pod", "pods", namespaced: true, PodSpec, PodStatus);
