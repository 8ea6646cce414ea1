//! The input of the plan and the report of a Tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use super::Settings;
use super::names::Names;
use crate::api::tenant::Tenant;
use crate::api::workspace::Workspace;

use crate::kinds::{
    ClusterRole, ClusterRoleBinding, Job, LimitRange, Namespace, NetworkPolicy, NfsClaim, PersistentVolume,
    ResourceQuota, RoleBinding, Secret,
};

/// Everything that the plan and the status of a Tenant depend on, except the settings and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Tenant.
    #[as_ref(Tenant)]
    #[as_mut]
    pub tenant: Arc<Tenant>,
    /// Whether it is not selected any more, and still has our finalizer.
    pub is_deselected: bool,
    /// The Workspaces that its spec names and that exist, by name.
    pub workspaces: BTreeMap<String, Arc<Workspace>>,
    /// The Tenant that owns the canonical name, if it is another one with the same canonical name.
    pub name_owner: Option<String>,
    /// How many Instances are in its personal namespace.
    pub instances: usize,
    /// How many Templates are in its personal namespace.
    pub templates: usize,
    /// Whether the namespace of personal volumes exists.
    pub has_my_drive_namespace: bool,
    /// The objects with the names of its own, whoever owns them.
    pub children: Children,
}

/// The objects with the names of those of a Tenant, whoever owns them.
#[derive(Debug, Clone, Default)]
pub struct Children {
    /// The `ClusterRole` by which the Tenant can read and edit itself.
    pub cluster_role: Option<Arc<ClusterRole>>,
    /// The binding of that role.
    pub cluster_binding: Option<Arc<ClusterRoleBinding>>,
    /// The personal namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// The `ResourceQuota` of the personal namespace.
    pub quota: Option<Arc<ResourceQuota>>,
    /// The role binding to manage Instances.
    pub instances: Option<Arc<RoleBinding>>,
    /// The role binding to manage Templates.
    pub templates: Option<Arc<RoleBinding>>,
    /// The network policy that denies ingress from other namespaces.
    pub deny: Option<Arc<NetworkPolicy>>,
    /// The network policy that allows ingress from trusted namespaces.
    pub allow: Option<Arc<NetworkPolicy>>,
    /// The sandbox, a namespace to try Kubernetes in.
    pub sandbox: Option<Arc<Namespace>>,
    /// The role binding of the sandbox.
    pub sandbox_binding: Option<Arc<RoleBinding>>,
    /// The `ResourceQuota` of the sandbox.
    pub sandbox_quota: Option<Arc<ResourceQuota>>,
    /// The `LimitRange` of the sandbox.
    pub sandbox_limits: Option<Arc<LimitRange>>,
    /// The `PersistentVolumeClaim` of the personal volume.
    pub claim: Option<Arc<NfsClaim>>,
    /// The `PersistentVolume` that the claim is bound to.
    pub volume: Option<Arc<PersistentVolume>>,
    /// The Job that prepares the volume.
    pub job: Option<Arc<Job>>,
    /// The Secret with the location of the volume.
    pub secret: Option<Arc<Secret>>,
}

impl Observed {
    /// Whether a namespace exists, is controlled by the Tenant, and is not being deleted.
    pub fn usable(&self, namespace: Option<&Arc<Namespace>>) -> bool {
        namespace
            .is_some_and(|namespace| namespace.is_controlled_by(&self.tenant) && !namespace.is_terminating())
    }

    /// The names of the objects of the Tenant.
    pub fn names(&self) -> Names {
        Names::of(self.tenant.name())
    }

    /// Whether the e-mail address is confirmed, according to the last answer of Keycloak. Without Keycloak,
    /// it counts as confirmed.
    pub fn is_confirmed(&self, settings: &Settings) -> bool {
        !settings.has_keycloak || self.tenant.status.keycloak.user_confirmed
    }
}
