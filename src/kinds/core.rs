//! Core kinds of Kubernetes that several control loops read.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;
use serde::Deserializer;

use super::{DataSource, Unread, foreign_part, kept, kind};
use crate::api::meta::TextMap;
use crate::api::text::Text;

/// The fields of another controller's condition that we read.
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

/// The fields of a Namespace's status that we read.
#[apply(foreign_part)]
pub struct NamespaceStatus {
    /// The obstacles to its deletion, if there are any.
    #[serde(deserialize_with = "obstacles")]
    pub conditions: Vec<ForeignCondition>,
}

/// The conditions that report obstacles to a deletion while they are true. The first one is the cause of the others.
const OBSTACLES: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
];

fn obstacles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    let rank = |condition: &ForeignCondition| OBSTACLES.iter().position(|known| condition.type_ == *known);
    let mut found = kept(deserializer, |condition: &ForeignCondition| {
        condition.status == "True" && rank(condition).is_some()
    })?;
    found.sort_by_key(rank);
    Ok(found)
}
kind!(/// A Namespace: its labels say whether it is ours, and its status the obstacles to its deletion.
    NamespaceKind, Namespace, "", "v1", "Namespace", "namespaces", namespaced: false, Unread, NamespaceStatus);

/// The fields of a Service's spec that we read.
#[apply(foreign_part)]
pub struct ServiceSpec {
    /// The cluster IP address that the API server assigned.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Option<String>,
}
kind!(/// A Service.
    ServiceKind, Service, "", "v1", "Service", "services", namespaced: true, ServiceSpec, Unread);

kind!(/// A Secret. Its `spec` is the field `data`, with values encoded in base64.
    SecretKind, Secret, "", "v1", "Secret", "secrets", namespaced: true, TextMap, Unread,
    body: "data");
kind!(/// A Secret with a private key, whose data is not shared as interned text.
    CertificateSecretKind, CertificateSecret, "", "v1", "Secret", "secrets", namespaced: true,
    BTreeMap<String, String>, Unread, body: "data", largest: 4 << 20);

/// The fields of a storage class that we read.
#[apply(foreign_part)]
pub struct StorageClassFields {
    /// `Immediate`, or `WaitForFirstConsumer`: a claim is bound only after a pod uses it.
    pub volume_binding_mode: Text,
    /// The program that provisions its volumes.
    pub provisioner: Text,
    /// What happens to a volume when its claim is deleted: `Delete`, which is the default, or `Retain`.
    pub reclaim_policy: Text,
    /// Whether its volumes can grow.
    pub allow_volume_expansion: bool,
}
kind!(/// A storage class. An annotation marks the default class.
    StorageClassKind, StorageClass, "storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced: false,
    StorageClassFields, Unread, body: "");

/// The fields of a `PersistentVolumeClaim`'s spec that we read.
#[apply(foreign_part)]
pub struct ClaimSpec {
    /// Its storage class; the API server sets the default class if there is one.
    pub storage_class_name: Option<Text>,
    /// The claim that it mirrors.
    pub data_source_ref: Option<DataSource>,
}
/// The fields of a `PersistentVolumeClaim`'s status that we read.
#[apply(foreign_part)]
pub struct ClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    pub phase: Text,
}
kind!(/// A `PersistentVolumeClaim`.
    PersistentVolumeClaimKind, PersistentVolumeClaim, "", "v1", "PersistentVolumeClaim",
    "persistentvolumeclaims", namespaced: true, ClaimSpec, ClaimStatus);

/// The fields of a Deployment's spec that we read.
#[apply(foreign_part)]
pub struct DeploymentSpec {
    /// The desired number of pods; the API server defaults it to 1.
    pub replicas: Option<i32>,
    /// The template of its pods.
    pub template: PodTemplate,
}
/// The fields of a Deployment's pod template that we read.
#[apply(foreign_part)]
pub struct PodTemplate {
    /// The metadata of the pods.
    pub metadata: PodTemplateMetadata,
    /// The spec of the pods.
    pub spec: PodVolumes,
}
/// The metadata of the pods of a Deployment.
#[apply(foreign_part)]
pub struct PodTemplateMetadata {
    /// The annotations of the pods.
    pub annotations: PodAnnotations,
}
/// The annotation of the pods of a Deployment that we read.
#[apply(foreign_part)]
pub struct PodAnnotations {
    /// The time of the last restart on request ([`crate::api::labels::RESTARTED_AT`]).
    #[serde(rename = "crownlabs.polito.it/restarted-at")]
    pub restarted_at: Option<Text>,
}
/// The volumes of the pods of a Deployment.
#[apply(foreign_part)]
pub struct PodVolumes {
    /// The shared volumes on NFS, and the mirrored volumes. All others are dropped during decoding.
    #[serde(deserialize_with = "shared_volumes")]
    pub volumes: Vec<PodVolume>,
}
/// A volume on NFS, or a mirrored volume, which has the name of its claim.
#[apply(foreign_part)]
pub struct PodVolume {
    /// Its name in the pod.
    pub name: String,
    /// The export that is mounted; `None` for a mirrored volume.
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

/// The prefix of the names of shared volumes in the pod of an Instance, followed by their number.
pub const SHARED_VOLUME_NAME: &str = "nfs";
/// The end of the names of mirror claims, and of the volumes in a pod that use them.
pub const MIRROR_SUFFIX: &str = "-mirror";

fn shared_volumes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PodVolume>, D::Error> {
    kept(deserializer, |volume: &PodVolume| {
        let is_shared = volume.name.starts_with(SHARED_VOLUME_NAME) && volume.nfs.is_some();
        is_shared || volume.name.ends_with(MIRROR_SUFFIX)
    })
}
/// The fields of a Deployment's status that we read.
#[apply(foreign_part)]
pub struct DeploymentStatus {
    /// The number of pods that are ready.
    pub ready_replicas: Option<i32>,
    /// `ReplicaFailure`, and `Progressing` while it is false. All others are dropped during decoding: they change
    /// several times in a rollout, and each change would cause a needless reconcile.
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

/// The fields of a Pod's spec that we read.
#[apply(foreign_part)]
pub struct PodSpec {
    /// The name of the node that the pod is scheduled to.
    pub node_name: Option<String>,
    /// The labels that the node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
}
/// The fields of a Pod's status that we read. A pod that starts or runs normally has only the phase.
#[apply(foreign_part)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// The reason for its failure, as one word, such as `Evicted`.
    pub reason: Option<String>,
    /// The explanation of its failure, as a sentence.
    pub message: Option<String>,
    /// The conditions `PodScheduled` and `PodReadyToStartContainers` while they are false.
    #[serde(deserialize_with = "delayed")]
    pub conditions: Vec<ForeignCondition>,
    /// The init containers, filtered like `container_statuses`.
    #[serde(deserialize_with = "hindered")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// The containers that wait for a reason other than their turn, or have terminated.
    #[serde(deserialize_with = "hindered")]
    pub container_statuses: Vec<ContainerStatus>,
}

/// Reads the condition `PodScheduled` if it is false.
pub(super) fn unscheduled<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| {
        condition.type_ == "PodScheduled" && condition.status == "False"
    })
}

/// Reads the conditions of the steps before the containers start, if they are false. The second one is also false after
/// the end of a pod.
fn delayed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ForeignCondition>, D::Error> {
    kept(deserializer, |condition: &ForeignCondition| {
        ["PodScheduled", "PodReadyToStartContainers"].contains(&&*condition.type_)
            && condition.status == "False"
    })
}

/// The fields of a container's status that we read.
#[apply(foreign_part)]
pub struct ContainerStatus {
    /// The name of the container.
    pub name: String,
    /// Whether its readiness probe succeeds.
    pub ready: bool,
    /// Its current state.
    pub state: ContainerState,
    /// Its state before the last restart.
    pub last_state: ContainerState,
}

/// The state of a container: one of these fields, or none.
#[apply(foreign_part)]
pub struct ContainerState {
    /// It is waiting.
    pub waiting: Option<ContainerWaiting>,
    /// It is running.
    pub running: Option<Unread>,
    /// It has terminated.
    pub terminated: Option<ContainerTerminated>,
}

/// The reason why a container is waiting.
#[apply(foreign_part)]
pub struct ContainerWaiting {
    /// The reason, as one word.
    pub reason: String,
    /// The explanation.
    pub message: String,
}

/// The termination of a container.
#[apply(foreign_part)]
pub struct ContainerTerminated {
    /// Its exit code.
    pub exit_code: i32,
    /// The reason, as one word, for example `OOMKilled`.
    pub reason: String,
    /// Its termination message, or the end of its log.
    pub message: String,
    /// The time of termination.
    pub finished_at: Option<Time>,
}

impl ContainerStatus {
    /// Returns how it terminated, now or before the last restart. `None` if it is ready; an init container that has
    /// completed is ready.
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
