//! The input of the plan and the report of a Tenant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use super::names::Names;
use crate::api::tenant::Tenant;
use crate::api::workspace::Workspace;
use crate::controllers::shared::responsibility::Standing;
use crate::controllers::shared::waits::ClassFault;
use crate::kinds::PersistentVolume;
use crate::runtime::children::Children;
use crate::runtime::object_events::Events;

/// The complete input of a Tenant's plan and status, except the settings and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Tenant.
    #[as_ref(Tenant)]
    #[as_mut]
    pub tenant: Arc<Tenant>,
    /// The reason why this daemon is responsible for the Tenant.
    pub standing: Standing,
    /// The existing Workspaces that its spec names, by name.
    pub workspaces: BTreeMap<String, Arc<Workspace>>,
    /// The Tenant that owns the canonical name, if it is another Tenant.
    pub name_owner: Option<String>,
    /// The number of Instances in its personal namespace.
    pub instances: usize,
    /// The number of Templates in its personal namespace.
    pub templates: usize,
    /// The namespace of its personal volume: the one with its claim, or the configured one.
    pub volume_namespace: String,
    /// Whether that namespace exists.
    pub has_my_drive_namespace: bool,
    /// Whether the configured `ClusterRole` of personal namespaces exists.
    pub has_instances_role: bool,
    /// Whether the configured `ClusterRole` of sandboxes exists.
    pub has_sandbox_role: bool,
    /// Its Workspaces whose managers have a binding in the whole cluster; empty unless the binding in its namespace is to be
    /// deleted.
    pub cluster_bindings: BTreeSet<String>,
    /// The objects with the names of its children, whatever their owner.
    pub children: Children,
    /// The reason why the storage class cannot provision a volume for the claim, if it cannot.
    pub class_fault: Option<ClassFault>,
    /// The events about the personal volume, if it has waited for long.
    pub events: Events,
    /// The NFS servers of the personal volume and of all shared volumes, if outgoing traffic is restricted.
    pub nfs_servers: BTreeSet<String>,
    /// The `PersistentVolume` that the claim of the personal volume is bound to.
    pub volume: Option<Arc<PersistentVolume>>,
}

impl Observed {
    /// The names of the objects of the Tenant.
    pub fn names(&self) -> Names {
        Names::of(self.tenant.name())
    }
}
