//! The stores of the workspace loop, and which of their changes add which Workspaces to the queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::observe::Observed;
use super::plan::{CLUSTER_ROLES, NAMESPACE_ROLES};
use crate::api::labels;
use crate::api::tenant::{Role, Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::controllers::shared::references::ByWorkspace;
use crate::controllers::shared::responsibility::{Responsibility, Standing};
use crate::kinds::{ClusterRoleBindingKind, NamespaceKind, RoleBindingKind};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::store::{Change, Store};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The stores of the workspace loop.
pub struct Stores {
    responsibility: Responsibility,
    workspaces: Arc<Store<WorkspaceKind>>,
    tenants: Arc<Store<TenantKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    cluster_role_bindings: Arc<Store<ClusterRoleBindingKind>>,
    role_bindings: Arc<Store<RoleBindingKind>>,
}

impl Stores {
    /// Declares the stores. Only Workspaces for which this daemon is responsible are reconciled.
    pub fn declare(set: &mut StoreSet<'_>, responsibility: &Responsibility) -> Self {
        let all = Selection::ALL;
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_WORKSPACE);
        let workspaces = set.store(&all).written().objects(|_| true).get();
        let candidates = Arc::clone(&workspaces);
        Self {
            responsibility: responsibility.clone(),
            tenants: set
                .store(&all)
                .written()
                .index::<ByWorkspace>()
                .on_foreign_change(move |change, queue| {
                    for name in concerned(change, &candidates) {
                        queue.add(ObjectKey::new("", name), Priority::Change);
                    }
                })
                .get(),
            namespaces: set
                .store::<NamespaceKind>(&all)
                .written()
                .wakes_controller::<WorkspaceKind>()
                .on_foreign_change(|change, queue| {
                    // Whoever owned it, its name is free now.
                    let gone = change.old.as_ref().filter(|_| change.new.is_none());
                    if let Some(name) = gone.and_then(|gone| gone.name().strip_prefix("workspace-")) {
                        queue.add(ObjectKey::new("", name), Priority::Change);
                    }
                })
                .get(),
            cluster_role_bindings: set.store(&ours).written().wakes_controller::<WorkspaceKind>().get(),
            role_bindings: set.store(&ours).written().wakes_controller::<WorkspaceKind>().get(),
            workspaces,
        }
    }

    /// What the stores have about a Workspace; `None` when it does not exist or is not ours. One that has our
    /// finalizer is ours whatever its labels are.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let workspace = self.workspaces.get("", &key.name)?;
        let responsibility = &self.responsibility;
        let is_selected = workspace.has_labels(&responsibility.selector);
        let standing = responsibility.standing(&workspace, labels::TENANT_FINALIZER, is_selected)?;
        let namespace = format!("workspace-{}", workspace.name());
        let of_cluster = CLUSTER_ROLES.iter().map(|role| format!("{role}-{}", workspace.name()));
        let of_namespace = NAMESPACE_ROLES.iter().map(|(role, _)| role);
        Some(Observed {
            is_deselected: standing == Standing::Deselected,
            namespace: self.namespaces.get("", &namespace),
            cluster_bindings: of_cluster
                .filter_map(|name| self.cluster_role_bindings.get("", &name))
                .collect(),
            bindings: of_namespace.filter_map(|role| self.role_bindings.get(&namespace, role)).collect(),
            tenants: self.tenants.by::<ByWorkspace>(&key.name),
            selector: responsibility.selector.clone(),
            workspace,
        })
    }
}

/// The Workspaces that a change of a Tenant concerns: those that it is a new candidate of, and those that
/// are being deleted.
fn concerned(change: &Change<TenantKind>, workspaces: &Store<WorkspaceKind>) -> BTreeSet<String> {
    let entries = |tenant: &Option<Arc<Tenant>>| {
        tenant.as_ref().map(|tenant| tenant.spec.workspaces.clone()).unwrap_or_default()
    };
    let (old, new) = (entries(&change.old), entries(&change.new));
    let changed = new.iter().filter(|entry| !old.contains(entry));
    let left = old.iter().filter(|entry| !new.contains(entry));
    let is_going = |name: &str| workspaces.get("", name).is_some_and(|workspace| workspace.is_terminating());
    changed
        .chain(left)
        .filter(|entry| entry.role == Role::Candidate || is_going(&entry.name))
        .map(|entry| entry.name.clone())
        .collect()
}
