//! Kinds that the rooms of tenants and workspaces make: rights, shares, walls and storage.
//!
//! What is enforced of them is kept as it stands on the wire: it is compared as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Unread, kind};

/// The part of a `ResourceQuota`'s spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceQuotaSpec {
    /// The limit of each resource.
    pub hard: BTreeMap<String, String>,
}
kind!(/// A share of resources.
    ResourceQuotaKind, ResourceQuota, "", "v1", "ResourceQuota", "resourcequotas", namespaced: true,
    ResourceQuotaSpec, Unread, encoded: true);

/// The part of a `LimitRange`'s spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitRangeSpec {
    /// What each type of object may ask for, and gets if it does not.
    pub limits: Value,
}
kind!(/// Defaults of what containers ask for.
    LimitRangeKind, LimitRange, "", "v1", "LimitRange", "limitranges", namespaced: true,
    LimitRangeSpec, Unread, encoded: true);

/// The part of a `NetworkPolicy`'s spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicySpec {
    /// The pods that it is about.
    pub pod_selector: Value,
    /// Who may reach them.
    pub ingress: Value,
}
kind!(/// A wall around pods.
    NetworkPolicyKind, NetworkPolicy, "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies",
    namespaced: true, NetworkPolicySpec, Unread, encoded: true);

/// The members of a role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// What it allows.
    pub rules: Value,
}
kind!(/// Rights in the whole cluster.
    ClusterRoleKind, ClusterRole, "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles",
    namespaced: false, Rules, Unread, body: "", encoded: true);

/// The members of a binding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Binding {
    /// The role. It cannot be changed.
    pub role_ref: Value,
    /// Who has it.
    pub subjects: Value,
}
kind!(/// Gives somebody a role in the whole cluster.
    ClusterRoleBindingKind, ClusterRoleBinding, "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding",
    "clusterrolebindings", namespaced: false, Binding, Unread, body: "", encoded: true);
kind!(/// Gives somebody a role in a namespace.
    RoleBindingKind, RoleBinding, "rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings",
    namespaced: true, Binding, Unread, body: "", encoded: true);

/// The part of a claim's spec that we read of a personal volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NfsClaimSpec {
    /// How much is asked for.
    pub resources: Requests,
    /// The volume that it got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_name: Option<String>,
}
/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// The amount of each resource.
    pub requests: BTreeMap<String, String>,
}
/// The part of a claim's status that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NfsClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    pub phase: Option<String>,
}
kind!(/// A claim on storage of which the state counts: a personal volume.
    NfsClaimKind, NfsClaim, "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced: true,
    NfsClaimSpec, NfsClaimStatus, encoded: true);

/// The part of a volume's spec that we read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeSpec {
    /// How its driver finds it.
    pub csi: Option<VolumeSource>,
}
/// How a storage driver finds a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSource {
    /// What the driver has noted: for NFS, server and share.
    pub volume_attributes: BTreeMap<String, String>,
}
kind!(/// A volume.
    PersistentVolumeKind, PersistentVolume, "", "v1", "PersistentVolume", "persistentvolumes",
    namespaced: false, VolumeSpec, Unread, encoded: true);
