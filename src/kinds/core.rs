//! Kinds of Kubernetes itself that several control loops read.

use std::collections::BTreeMap;

use macro_rules_attribute::apply;
use serde::Deserializer;

use super::{Unread, foreign_part, kept, kind};
use crate::api::meta::TextMap;

/// The fields that we read of a condition that another controller sets.
#[apply(foreign_part)]
pub struct ForeignCondition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason for the status, as one word.
    pub reason: String,
    /// The explanation of the status, as a sentence.
    pub message: String,
}

kind!(/// A Namespace, of which only the metadata is read: its labels say whether it is ours.
    NamespaceKind, Namespace, "", "v1", "Namespace", "namespaces", namespaced: false, Unread, Unread);

/// The fields that we read of the spec of a Service.
#[apply(foreign_part)]
pub struct ServiceSpec {
    /// The IP address inside the cluster that the API server has assigned.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Option<String>,
}
kind!(/// A Service.
    ServiceKind, Service, "", "v1", "Service", "services", namespaced: true, ServiceSpec, Unread);

kind!(/// A Secret. Its `spec` is the field `data`, whose values are still in base64.
    SecretKind, Secret, "", "v1", "Secret", "secrets", namespaced: true, TextMap, Unread,
    body: "data");
kind!(/// A Secret with a private key, whose data is not shared as interned text.
    CertificateSecretKind, CertificateSecret, "", "v1", "Secret", "secrets", namespaced: true,
    BTreeMap<String, String>, Unread, body: "data", largest: 4 << 20);

kind!(/// A `PersistentVolumeClaim`, of which only the metadata is read.
    PersistentVolumeClaimKind, PersistentVolumeClaim, "", "v1", "PersistentVolumeClaim",
    "persistentvolumeclaims", namespaced: true, Unread, Unread);

/// The fields that we read of the spec of a Deployment.
#[apply(foreign_part)]
pub struct DeploymentSpec {
    /// The desired number of pods; 1 is the default of the API server.
    pub replicas: Option<i32>,
    /// The pods.
    pub template: PodTemplate,
}
/// The fields that we read of the pods of a Deployment.
#[apply(foreign_part)]
pub struct PodTemplate {
    /// Their spec.
    pub spec: PodVolumes,
}
/// The volumes of the pods of a Deployment.
#[apply(foreign_part)]
pub struct PodVolumes {
    /// The shared volumes. All others are dropped while decoding.
    #[serde(deserialize_with = "shared_volumes")]
    pub volumes: Vec<PodVolume>,
}
/// A volume on NFS.
#[apply(foreign_part)]
pub struct PodVolume {
    /// Its name in the pod.
    pub name: String,
    /// The export that is mounted.
    pub nfs: Option<NfsSource>,
}
/// An export of an NFS server.
#[apply(foreign_part)]
pub struct NfsSource {
    /// The server.
    pub server: String,
    /// The exported path.
    pub path: String,
}

/// The beginning of the names of shared volumes in the pod of an Instance; their number follows.
pub const SHARED_VOLUME_NAME: &str = "nfs";

fn shared_volumes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PodVolume>, D::Error> {
    kept(deserializer, |volume: &PodVolume| {
        volume.name.starts_with(SHARED_VOLUME_NAME) && volume.nfs.is_some()
    })
}
/// The fields that we read of the status of a Deployment.
#[apply(foreign_part)]
pub struct DeploymentStatus {
    /// The number of pods that are ready.
    pub ready_replicas: Option<i32>,
    /// The condition `ReplicaFailure`. All others are dropped while decoding: they change several times in a
    /// rollout, and each change would cause a reconcile for nothing.
    #[serde(deserialize_with = "replica_failure")]
    pub conditions: Vec<ForeignCondition>,
}

fn replica_failure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| condition.type_ == "ReplicaFailure")
}
kind!(/// A Deployment.
    DeploymentKind, Deployment, "apps", "v1", "Deployment", "deployments", namespaced: true,
    DeploymentSpec, DeploymentStatus);

/// The fields that we read of the spec of a Pod.
#[apply(foreign_part)]
pub struct PodSpec {
    /// The name of the node that the pod is scheduled to.
    pub node_name: Option<String>,
    /// The labels that the node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
}
/// The fields that we read of the status of a Pod.
#[apply(foreign_part)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
}
kind!(/// A Pod.
    PodKind, Pod, "", "v1", "Pod", "pods", namespaced: true, PodSpec, PodStatus);
