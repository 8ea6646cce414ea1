//! The stores that the workspace loop reads, and which of their changes concern which Workspaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::observe::Observed;
use super::plan::{CLUSTER_ROLES, NAMESPACE_ROLES};
use super::room::Room;
use crate::api::labels;
use crate::api::tenant::{Role, Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::controllers::children::is_of;
use crate::controllers::tenant::world::{by_enrolment, enrolled};
use crate::controllers::wake;
use crate::kinds::{ClusterRoleBindingKind, NamespaceKind, RoleBindingKind};
use crate::runtime::ObjectKey;
use crate::runtime::controller::{Reconciler, Source};
use crate::runtime::factory::StoreFactory;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::registry::Registry;
use crate::runtime::store::{Change, Store};
use crate::runtime::watch::Selection;

/// The stores.
#[derive(Debug)]
pub struct World {
    /// The labels of what is ours.
    selector: BTreeMap<String, String>,
    /// Workspaces.
    pub workspaces: Arc<Store<WorkspaceKind>>,
    /// Tenants, by the Workspaces that they name.
    pub tenants: Arc<Store<TenantKind>>,
    /// Namespaces.
    pub namespaces: Arc<Store<NamespaceKind>>,
    /// The bindings of Workspaces in the whole cluster.
    pub cluster_bindings: Arc<Store<ClusterRoleBindingKind>>,
    /// The bindings in namespaces of Workspaces.
    pub bindings: Arc<Store<RoleBindingKind>>,
}

impl World {
    /// The stores of `factory` that the loop reads.
    pub fn new(factory: &mut StoreFactory, selector: &BTreeMap<String, String>) -> Self {
        let ours = || Selection::labels(format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_WORKSPACE));
        let world = Self {
            selector: selector.clone(),
            workspaces: factory.store(Selection::default()),
            tenants: factory.store(Selection::default()),
            namespaces: factory.store(Selection::default()),
            cluster_bindings: factory.store(ours()),
            bindings: factory.store(ours()),
        };
        world.tenants.index(by_enrolment);
        world
    }

    /// The stores of what the loop writes.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.add(&self.workspaces);
        registry.add(&self.tenants);
        registry.add(&self.namespaces);
        registry.add(&self.cluster_bindings);
        registry.add(&self.bindings);
        registry
    }

    /// What a pass over a Workspace knows; `None` when it is gone or not ours. One that waits for us
    /// before it can go is ours whatever its labels say.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let workspace = self.workspaces.get("", &key.name)?;
        let namespace = format!("workspace-{}", workspace.name());
        let cluster = CLUSTER_ROLES.iter().map(|role| format!("{role}-{}", workspace.name()));
        let observed = Observed {
            namespace: self.namespaces.get("", &namespace),
            cluster_bindings: cluster.filter_map(|name| self.cluster_bindings.get("", &name)).collect(),
            bindings: NAMESPACE_ROLES
                .iter()
                .filter_map(|(role, _)| self.bindings.get(&namespace, role))
                .collect(),
            tenants: self.tenants.indexed(&enrolled(workspace.name())),
            selector: self.selector.clone(),
            workspace,
        };
        is_of(&observed.workspace, &self.selector).then_some(observed)
    }
}

impl Source for World {
    fn subscribe(self: &Arc<Self>, queue: &Arc<Queue>) {
        let added = Arc::clone(queue);
        self.workspaces.subscribe(move |change| {
            if change.origin != Some(Room::NAME)
                && let Some(workspace) = change.object()
            {
                added.add(ObjectKey::of(workspace), Priority::Change);
            }
        });
        let (added, workspaces) = (Arc::clone(queue), Arc::clone(&self.workspaces));
        self.tenants.subscribe(move |change| {
            if change.origin != Some(Room::NAME) {
                for key in concerned(change, &workspaces) {
                    added.add(key, Priority::Change);
                }
            }
        });
        wake::owners::<WorkspaceKind, _>(&self.namespaces, queue, Room::NAME);
        wake::owners::<WorkspaceKind, _>(&self.cluster_bindings, queue, Room::NAME);
        wake::owners::<WorkspaceKind, _>(&self.bindings, queue, Room::NAME);
    }

    fn enqueue_all(&self, queue: &Queue) {
        for key in self.workspaces.keys() {
            queue.add(key, Priority::Background);
        }
    }
}

/// The Workspaces that have to act on a change of a Tenant: those that it is newly a candidate of, and
/// those that are being deleted.
fn concerned(change: &Change<TenantKind>, workspaces: &Store<WorkspaceKind>) -> Vec<ObjectKey> {
    let entries = |tenant: &Option<Arc<Tenant>>| {
        tenant.as_ref().map(|tenant| tenant.spec.workspaces.clone()).unwrap_or_default()
    };
    let (old, new) = (entries(&change.old), entries(&change.new));
    let changed = new.iter().filter(|entry| !old.contains(entry));
    let left = old.iter().filter(|entry| !new.contains(entry));
    changed
        .chain(left)
        .filter(|entry| {
            let going =
                || workspaces.get("", &entry.name).is_some_and(|workspace| workspace.is_terminating());
            entry.role == Role::Candidate || going()
        })
        .map(|entry| ObjectKey::new("", &entry.name))
        .collect()
}
