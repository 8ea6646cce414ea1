//! Kinds that the tenant and workspace loops create: RBAC, quotas, network policies and storage.
//!
//! Enforced fields are JSON values as the API server sends them, because they are only compared.

use std::collections::BTreeMap;

use macro_rules_attribute::apply;
use serde_json::Value;

use super::{DataSource, Unread, foreign_part, kind};
use crate::api::wire::Optional;

/// The fields of a `ResourceQuota`'s spec that we read.
#[apply(foreign_part)]
pub struct ResourceQuotaSpec {
    /// The limit of each resource by its name, for example `limits.cpu`.
    pub hard: BTreeMap<String, String>,
}
kind!(/// A `ResourceQuota`.
    ResourceQuotaKind, ResourceQuota, "", "v1", "ResourceQuota", "resourcequotas", namespaced: true,
    ResourceQuotaSpec, Unread, encoded: true);

/// The limits and the usage of a `ResourceQuota`.
#[apply(foreign_part)]
pub struct QuotaUsage {
    /// The limit of each resource by its name, as currently enforced.
    pub hard: BTreeMap<String, String>,
    /// The used amount of each resource.
    pub used: BTreeMap<String, String>,
}
kind!(/// An administrator's `ResourceQuota`. Only the usage is read.
    UsedQuotaKind, UsedQuota, "", "v1", "ResourceQuota", "resourcequotas", namespaced: true,
    Unread, QuotaUsage, encoded: true);

/// The fields of a `LimitRange`'s spec that we read.
#[apply(foreign_part)]
pub struct LimitRangeSpec {
    /// Default and maximum requests and limits for each type of object.
    pub limits: Value,
}
kind!(/// A `LimitRange`.
    LimitRangeKind, LimitRange, "", "v1", "LimitRange", "limitranges", namespaced: true,
    LimitRangeSpec, Unread, encoded: true);

/// The fields of a `NetworkPolicy`'s spec that we read.
#[apply(foreign_part)]
pub struct NetworkPolicySpec {
    /// The pods that the policy applies to.
    pub pod_selector: Value,
    /// The traffic that these pods accept.
    pub ingress: Optional<Value>,
    /// The traffic that these pods may send.
    pub egress: Optional<Value>,
    /// The directions of traffic that the policy applies to: `Ingress`, `Egress` or both.
    pub policy_types: Optional<Vec<String>>,
}
kind!(/// A `NetworkPolicy`.
    NetworkPolicyKind, NetworkPolicy, "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies",
    namespaced: true, NetworkPolicySpec, Unread, encoded: true);

/// The fields of a role that we read.
#[apply(foreign_part)]
pub struct Rules {
    /// The rules of the role.
    pub rules: Value,
}
kind!(/// A `ClusterRole`.
    ClusterRoleKind, ClusterRole, "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles",
    namespaced: false, Rules, Unread, body: "", encoded: true);

/// The fields of a role binding that we read.
#[apply(foreign_part)]
pub struct Binding {
    /// The role, which is immutable.
    pub role_ref: Value,
    /// The users, groups and service accounts that have the role.
    pub subjects: Value,
}
kind!(/// A `ClusterRoleBinding`.
    ClusterRoleBindingKind, ClusterRoleBinding, "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding",
    "clusterrolebindings", namespaced: false, Binding, Unread, body: "", encoded: true);
kind!(/// A `RoleBinding`.
    RoleBindingKind, RoleBinding, "rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings",
    namespaced: true, Binding, Unread, body: "", encoded: true);

/// The spec fields of a claim for an NFS volume that we read.
#[apply(foreign_part)]
pub struct NfsClaimSpec {
    /// The storage that the claim requests.
    pub resources: Requests,
    /// Its storage class; the API server sets the default class if there is one.
    pub storage_class_name: Option<String>,
    /// The name of the volume that the claim is bound to.
    pub volume_name: Option<String>,
    /// The claim that it mirrors.
    pub data_source_ref: Option<DataSource>,
}
/// Requested resources.
#[apply(foreign_part)]
pub struct Requests {
    /// The amount of each resource by its name, for example `storage`.
    pub requests: BTreeMap<String, String>,
}
/// The fields of a claim's status that we read.
#[apply(foreign_part)]
pub struct NfsClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    pub phase: Option<String>,
}
kind!(/// A `PersistentVolumeClaim` for an NFS volume: a personal or shared volume.
    NfsClaimKind, NfsClaim, "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced: true,
    NfsClaimSpec, NfsClaimStatus, encoded: true);

/// The fields of a `PersistentVolume`'s spec that we read.
#[apply(foreign_part)]
pub struct VolumeSpec {
    /// The source of the volume, if it is provided by a CSI driver.
    pub csi: Option<VolumeSource>,
}
/// The source of a CSI volume.
#[apply(foreign_part)]
pub struct VolumeSource {
    /// The attributes that the CSI driver has set, for NFS including `server` and `share`.
    pub volume_attributes: BTreeMap<String, String>,
}
kind!(/// A `PersistentVolume`.
    PersistentVolumeKind, PersistentVolume, "", "v1", "PersistentVolume", "persistentvolumes",
    namespaced: false, VolumeSpec, Unread, encoded: true);
