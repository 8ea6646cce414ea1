//! The input of the plan and the report of a Workspace.

use std::collections::BTreeMap;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::tenant::Tenant;
use crate::api::workspace::Workspace;

use crate::kinds::{ClusterRoleBinding, Namespace, RoleBinding};

/// Everything that the plan and the status of a Workspace depend on, except the settings and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Workspace.
    #[as_ref(Workspace)]
    #[as_mut]
    pub workspace: Arc<Workspace>,
    /// Whether it is not selected any more, and still has our finalizer.
    pub is_deselected: bool,
    /// The namespace with its name, whoever owns it.
    pub namespace: Option<Arc<Namespace>>,
    /// The `ClusterRoleBinding`s with the names of its own, whoever owns them.
    pub cluster_bindings: Vec<Arc<ClusterRoleBinding>>,
    /// The role bindings in its namespace with the names of its own, whoever owns them.
    pub bindings: Vec<Arc<RoleBinding>>,
    /// The Tenants whose spec names the Workspace.
    pub tenants: Vec<Arc<Tenant>>,
    /// The selector of this daemon: the labels of its Workspaces and of the objects that it creates.
    pub selector: BTreeMap<String, String>,
}

impl Observed {
    /// The name of its namespace, `workspace-<name>`. Dots in the name are kept, so a name with dots has no
    /// namespace.
    pub fn namespace_name(&self) -> String {
        format!("workspace-{}", self.workspace.name())
    }

    /// Whether the namespace exists, is controlled by the Workspace, and is not being deleted.
    pub fn has_namespace(&self) -> bool {
        self.namespace.as_ref().is_some_and(|namespace| {
            namespace.is_controlled_by(&self.workspace) && !namespace.is_terminating()
        })
    }
}
