//! The input of the plan and the report of a Workspace.

use std::collections::BTreeMap;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::tenant::Tenant;
use crate::api::workspace::Workspace;
use crate::controllers::shared::responsibility::Standing;
use crate::kinds::{Namespace, NamespaceKind};
use crate::runtime::children::Children;

/// The complete input of a Workspace's plan and status, except the settings and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Workspace.
    #[as_ref(Workspace)]
    #[as_mut]
    pub workspace: Arc<Workspace>,
    /// The reason why this daemon is responsible for the Workspace.
    pub standing: Standing,
    /// The objects with the names of its children, whatever their owner.
    pub children: Children,
    /// The Tenants whose spec names the Workspace.
    pub tenants: Vec<Arc<Tenant>>,
    /// The personal namespaces in which its managers have no binding yet; empty unless the binding in the whole cluster is
    /// to be deleted.
    pub unbound: Vec<String>,
    /// The selector of this daemon: the labels of its Workspaces and of the objects that it creates.
    pub selector: BTreeMap<String, String>,
}

impl Observed {
    /// The name of its namespace, `workspace-<name>`. Dots in the name are kept, so a name with dots has no
    /// namespace.
    pub fn namespace_name(&self) -> String {
        format!("workspace-{}", self.workspace.name())
    }

    /// The namespace with its name, whatever its owner.
    pub fn namespace(&self) -> Option<&Namespace> {
        self.children.get::<NamespaceKind>("", &self.namespace_name())
    }
}
