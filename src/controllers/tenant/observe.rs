//! What a reconcile of a Tenant knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Settings;
use super::names::Names;
use crate::api::tenant::Tenant;
use crate::api::workspace::Workspace;
use crate::api::{Kind, Object};
use crate::kinds::{
    ClusterRole, ClusterRoleBinding, Job, LimitRange, Namespace, NetworkPolicy, NfsClaim, PersistentVolume,
    ResourceQuota, RoleBinding, Secret,
};

/// Everything that the plan and the status of a Tenant depend on, but for the settings and the time.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The Tenant.
    pub tenant: Arc<Tenant>,
    /// The Workspaces that its spec names, those that exist.
    pub workspaces: BTreeMap<String, Arc<Workspace>>,
    /// Another Tenant that the names of the objects belong to.
    pub name_owner: Option<String>,
    /// How many Instances are in its personal namespace.
    pub instances: usize,
    /// How many Templates are in its personal namespace.
    pub templates: usize,
    /// Whether the namespace of personal volumes exists.
    pub has_my_drive_namespace: bool,
    /// Whatever stands where its objects should.
    pub children: Children,
}

/// Whatever stands where the objects of a Tenant should.
#[derive(Debug, Clone, Default)]
pub struct Children {
    /// The right to read and edit itself.
    pub cluster_role: Option<Arc<ClusterRole>>,
    /// Gives that right.
    pub cluster_binding: Option<Arc<ClusterRoleBinding>>,
    /// The personal namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// The share of resources.
    pub quota: Option<Arc<ResourceQuota>>,
    /// The right to manage Instances.
    pub instances: Option<Arc<RoleBinding>>,
    /// The right to manage Templates.
    pub templates: Option<Arc<RoleBinding>>,
    /// The wall around the pods.
    pub deny: Option<Arc<NetworkPolicy>>,
    /// The door in it.
    pub allow: Option<Arc<NetworkPolicy>>,
    /// The namespace to try Kubernetes in.
    pub sandbox: Option<Arc<Namespace>>,
    /// The rights there.
    pub sandbox_binding: Option<Arc<RoleBinding>>,
    /// The share there.
    pub sandbox_quota: Option<Arc<ResourceQuota>>,
    /// The defaults there.
    pub sandbox_limits: Option<Arc<LimitRange>>,
    /// The claim of the personal volume.
    pub claim: Option<Arc<NfsClaim>>,
    /// The volume that it got.
    pub volume: Option<Arc<PersistentVolume>>,
    /// The Job that prepares it.
    pub job: Option<Arc<Job>>,
    /// The Secret that says where it is.
    pub secret: Option<Arc<Secret>>,
}

impl Observed {
    /// Whether the Tenant controls the object.
    pub fn owns<T: Kind>(&self, object: &Object<T>) -> bool {
        object.controller_uid() == Some(self.tenant.uid())
    }

    /// Whether a namespace is there, the Tenant's, and takes objects.
    pub fn usable(&self, namespace: Option<&Arc<Namespace>>) -> bool {
        namespace.is_some_and(|namespace| self.owns(namespace) && !namespace.is_terminating())
    }

    /// The names of what is made for the Tenant.
    pub fn names(&self) -> Names {
        Names::of(self.tenant.name())
    }

    /// Whether the e-mail address is confirmed, as Keycloak said last. Without Keycloak nobody is asked.
    pub fn is_confirmed(&self, settings: &Settings) -> bool {
        !settings.has_keycloak || self.tenant.status.keycloak.user_confirmed
    }
}
