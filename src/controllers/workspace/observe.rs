//! What a pass over a Workspace knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::tenant::Tenant;
use crate::api::workspace::Workspace;
use crate::api::{Kind, Object};
use crate::kinds::{ClusterRoleBinding, Namespace, RoleBinding};

/// Everything that the plan and the status of a Workspace depend on, but for Keycloak.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The Workspace.
    pub workspace: Arc<Workspace>,
    /// Whatever stands where its namespace should.
    pub namespace: Option<Arc<Namespace>>,
    /// The bindings in the whole cluster that stand where its should, by name.
    pub cluster_bindings: Vec<Arc<ClusterRoleBinding>>,
    /// The bindings of its namespace.
    pub bindings: Vec<Arc<RoleBinding>>,
    /// The Tenants whose spec names it.
    pub tenants: Vec<Arc<Tenant>>,
    /// The labels of what is ours.
    pub selector: BTreeMap<String, String>,
}

impl Observed {
    /// Whether the Workspace controls the object.
    pub fn owns<T: Kind>(&self, object: &Object<T>) -> bool {
        object.controller_uid() == Some(self.workspace.uid())
    }

    /// `workspace-<name>`: dots stay (05 §3).
    pub fn namespace_name(&self) -> String {
        format!("workspace-{}", self.workspace.name())
    }

    /// Whether the namespace is there, ours, and takes objects.
    pub fn has_namespace(&self) -> bool {
        self.namespace.as_ref().is_some_and(|namespace| self.owns(namespace) && !namespace.is_terminating())
    }
}
