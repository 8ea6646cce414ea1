//! The children of a Workspace: its namespace, and the rights of its users and managers.

use serde_json::json;

use super::observe::Observed;
use crate::api::labels;
use crate::api::names::GROUP_PREFIX;
use crate::api::workspace::WorkspaceKind;
use crate::controllers::shared::children::{Child, Parent, binding, exactly};
use crate::kinds::{ClusterRoleBindingKind, NamespaceKind, RoleBindingKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::component::Component;
use crate::runtime::queue::Priority;
use crate::runtime::selection::Selection;
use crate::runtime::store_set::StoreSet;

/// The component of everything in the namespace.
pub const NAMESPACE: Component = Component::Part("namespace");
/// The component of the `ClusterRoleBinding`s.
pub const CLUSTER: Component = Component::Part("cluster");
/// The `ClusterRoles` that the managers of a Workspace have in the whole cluster.
const CLUSTER_ROLES: [&str; 2] = ["crownlabs-manage-instances", "crownlabs-manage-tenants"];
/// The `ClusterRoles` that users and managers have in the namespace of a Workspace.
const NAMESPACE_ROLES: [(&str, &str); 3] = [
    ("crownlabs-view-templates", "user"),
    ("crownlabs-manage-templates", "manager"),
    ("crownlabs-manage-sharedvolumes", "manager"),
];

/// Declares the stores.
pub fn declare(set: &mut StoreSet<'_>) -> ChildStores {
    let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_WORKSPACE);
    let mut children = ChildStores::of_controller::<WorkspaceKind>();
    children.add(set.store::<NamespaceKind>(&Selection::ALL).on_foreign_change(|change, queue| {
        // The name is free now, whatever the owner was.
        let gone = change.old.as_ref().filter(|_| change.new.is_none());
        if let Some(name) = gone.and_then(|gone| gone.name().strip_prefix("workspace-")) {
            queue.add(ObjectKey::new("", name), Priority::Change);
        }
    }));
    children.add(set.store::<ClusterRoleBindingKind>(&ours));
    children.add(set.store::<RoleBindingKind>(&ours));
    children
}

fn parent(observed: &Observed) -> Parent<'_> {
    Parent::new(&observed.workspace, observed.selector.clone())
        .with(&[(labels::MANAGED_BY, labels::MANAGED_BY_WORKSPACE)])
        .within(&observed.namespace_name())
        .seeing(&observed.children)
}

/// The RBAC group of the Tenants with a role in the Workspace.
fn group(observed: &Observed, role: &str) -> String {
    format!("{GROUP_PREFIX}workspace-{}:{role}", observed.workspace.name())
}

/// The namespace.
pub fn namespace(observed: &Observed) -> Child<'_> {
    let parent = parent(observed).with(&[(labels::TYPE, labels::TYPE_WORKSPACE)]);
    let mut child = parent.child::<NamespaceKind>(&parent.namespace, &NAMESPACE, 0, || json!({})).enforced();
    // A namespace that another daemon manages is not adopted.
    child.desired.identity.extend(exactly(&observed.selector));
    child
}

/// The bindings of managers in the whole cluster.
pub fn cluster_bindings(observed: &Observed) -> impl Iterator<Item = Child<'_>> {
    let parent = parent(observed);
    CLUSTER_ROLES.into_iter().map(move |role| {
        let name = format!("{role}-{}", observed.workspace.name());
        let body = || binding(role, "Group", &group(observed, "manager"));
        parent.child::<ClusterRoleBindingKind>(&name, &CLUSTER, 0, body)
    })
}

/// The bindings of users and managers in the namespace.
pub fn bindings(observed: &Observed) -> impl Iterator<Item = Child<'_>> {
    let parent = parent(observed);
    NAMESPACE_ROLES.into_iter().map(move |(role, whose)| {
        let body = || binding(role, "Group", &group(observed, whose));
        parent.child::<RoleBindingKind>(role, &NAMESPACE, 1, body)
    })
}

/// The keys of all children.
pub fn keys(observed: &Observed) -> Vec<ObjectKey> {
    let all = cluster_bindings(observed).chain(bindings(observed)).chain([namespace(observed)]);
    all.map(|child| child.desired.key).collect()
}
