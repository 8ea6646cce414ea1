//! Kinds of Kubernetes itself that several control loops read.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;
use serde::Deserializer;

use super::{Unread, foreign_part, kept, kind};
use crate::api::meta::TextMap;
use crate::api::text::Text;

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

kind!(/// A storage class, of which only the name is read.
    StorageClassKind, StorageClass, "storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced: false,
    Unread, Unread);

/// The fields that we read of the spec of a `PersistentVolumeClaim`.
#[apply(foreign_part)]
pub struct ClaimSpec {
    /// Its storage class; the API server sets the default one where there is one.
    pub storage_class_name: Option<Text>,
}
/// The fields that we read of the status of a `PersistentVolumeClaim`.
#[apply(foreign_part)]
pub struct ClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    pub phase: Text,
}
kind!(/// A `PersistentVolumeClaim`.
    PersistentVolumeClaimKind, PersistentVolumeClaim, "", "v1", "PersistentVolumeClaim",
    "persistentvolumeclaims", namespaced: true, ClaimSpec, ClaimStatus);

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
    /// `ReplicaFailure`, and `Progressing` while it is false. All others are dropped while decoding: they change several
    /// times in a rollout, and each change would cause a reconcile for nothing.
    #[serde(deserialize_with = "failures")]
    pub conditions: Vec<ForeignCondition>,
}

fn failures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| match &*condition.type_ {
        "ReplicaFailure" => condition.status == "True",
        "Progressing" => condition.status == "False",
        _ => false,
    })
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
/// The fields that we read of the status of a Pod. Of a pod that starts or runs as it should, that is the phase alone.
#[apply(foreign_part)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// Why it has failed, as one word, such as `Evicted`.
    pub reason: Option<String>,
    /// The same, as a sentence.
    pub message: Option<String>,
    /// The condition `PodScheduled` while it is false.
    #[serde(deserialize_with = "unscheduled")]
    pub conditions: Vec<ForeignCondition>,
    /// The containers that are run before the others, as `containerStatuses`.
    #[serde(deserialize_with = "hindered")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// The containers that wait for something else than their turn, or that have ended.
    #[serde(deserialize_with = "hindered")]
    pub container_statuses: Vec<ContainerStatus>,
}

fn unscheduled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| {
        condition.type_ == "PodScheduled" && condition.status == "False"
    })
}

/// The fields that we read of the status of a container.
#[apply(foreign_part)]
pub struct ContainerStatus {
    /// The name of the container.
    pub name: String,
    /// Whether its readiness probe succeeds.
    pub ready: bool,
    /// Its state now.
    pub state: ContainerState,
    /// Its state before it was started again.
    pub last_state: ContainerState,
}

/// The state of a container: one of these, or none.
#[apply(foreign_part)]
pub struct ContainerState {
    /// It waits.
    pub waiting: Option<ContainerWaiting>,
    /// It runs.
    pub running: Option<Unread>,
    /// It has ended.
    pub terminated: Option<ContainerTerminated>,
}

/// Why a container waits.
#[apply(foreign_part)]
pub struct ContainerWaiting {
    /// The reason, as one word.
    pub reason: String,
    /// The explanation.
    pub message: String,
}

/// The end of a container.
#[apply(foreign_part)]
pub struct ContainerTerminated {
    /// Its exit code.
    pub exit_code: i32,
    /// The reason, as one word, for example `OOMKilled`.
    pub reason: String,
    /// Its termination message, or the end of its log.
    pub message: String,
    /// When it ended.
    pub finished_at: Option<Time>,
}

impl ContainerStatus {
    /// How it has ended, now or before it was restarted; `None` of one that is ready, as one is that is run before the others
    /// and has done its work.
    pub fn end(&self) -> Option<&ContainerTerminated> {
        let ended = [&self.state, &self.last_state].into_iter().find_map(|state| state.terminated.as_ref());
        ended.filter(|_| !self.ready)
    }
}

/// The reasons of containers that wait for their turn.
const TURN: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

fn hindered<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContainerStatus>, D::Error> {
    kept(deserializer, |container: &ContainerStatus| {
        let waiting = container.state.waiting.as_ref();
        waiting.is_some_and(|waiting| !TURN.contains(&&*waiting.reason)) || container.end().is_some()
    })
}
kind!(/// A Pod.
    PodKind, Pod, "", "v1", "Pod", "pods", namespaced: true, PodSpec, PodStatus);
