//! The children of a Workspace: its namespace, and the rights of its users and managers.

use std::sync::Arc;

use serde_json::json;

use super::observe::Observed;
use crate::api::labels;
use crate::api::names::course_group;
use crate::api::workspace::WorkspaceKind;
use crate::controllers::shared::children::{Child, Parent, binding, exactly};
use crate::controllers::shared::course_managers;
use crate::kinds::{ClusterRoleBindingKind, NamespaceKind, RoleBindingKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::component::Component;
use crate::runtime::queue::Priority;
use crate::runtime::selection::Selection;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;

/// The component of everything in the namespace.
pub const NAMESPACE: Component = Component::Part("namespace");
/// The component of the `ClusterRoleBinding`s.
pub const CLUSTER: Component = Component::Part("cluster");
/// The `ClusterRole` for Tenants, which the managers of a Workspace have in the whole cluster.
const MANAGE_TENANTS: &str = "crownlabs-manage-tenants";
/// The `ClusterRoles` that users and managers have in the namespace of a Workspace.
const NAMESPACE_ROLES: [(&str, &str); 3] = [
    ("crownlabs-view-templates", "user"),
    ("crownlabs-manage-templates", "manager"),
    ("crownlabs-manage-sharedvolumes", "manager"),
];

/// Declares the stores, and returns all of them, the store of namespaces and the store of bindings in the whole cluster.
pub fn declare(
    set: &mut StoreSet<'_>,
) -> (ChildStores, Arc<Store<NamespaceKind>>, Arc<Store<ClusterRoleBindingKind>>) {
    let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_WORKSPACE);
    let mut children = ChildStores::of_controller::<WorkspaceKind>();
    let namespaces =
        children.add(set.store::<NamespaceKind>(&Selection::ALL).on_foreign_change(|change, queue| {
            // The name is free now, whatever the owner was.
            let gone = change.old.as_ref().filter(|_| change.new.is_none());
            if let Some(name) = gone.and_then(|gone| gone.name().strip_prefix("workspace-")) {
                queue.add(ObjectKey::new("", name), Priority::Change);
            }
        }));
    let cluster = children.add(set.store::<ClusterRoleBindingKind>(&ours));
    children.add(set.store::<RoleBindingKind>(&ours));
    (children, namespaces, cluster)
}

fn parent(observed: &Observed) -> Parent<'_> {
    Parent::new(&observed.workspace, observed.selector.clone())
        .with(&[(labels::MANAGED_BY, labels::MANAGED_BY_WORKSPACE)])
        .within(&observed.namespace_name())
        .seeing(&observed.children)
}

/// The RBAC group of the Tenants with a role in the Workspace.
fn group(observed: &Observed, role: &str) -> String {
    course_group(observed.workspace.name(), role)
}

/// The namespace.
pub fn namespace(observed: &Observed) -> Child<'_> {
    let parent = parent(observed).with(&[(labels::TYPE, labels::TYPE_WORKSPACE)]);
    let mut child = parent.child::<NamespaceKind>(&parent.namespace, &NAMESPACE, 0, || json!({})).enforced();
    // A namespace that another daemon manages is not adopted.
    child.desired.identity.extend(exactly(&observed.selector));
    child
}

/// The binding of managers to all Instances.
pub fn instances_binding(observed: &Observed) -> Child<'_> {
    let name = course_managers::cluster_binding(observed.workspace.name());
    cluster_binding(observed, course_managers::ROLE, &name)
}

/// The binding of managers to all Tenants.
pub fn tenants_binding(observed: &Observed) -> Child<'_> {
    cluster_binding(observed, MANAGE_TENANTS, &format!("{MANAGE_TENANTS}-{}", observed.workspace.name()))
}

/// A binding of managers in the whole cluster.
fn cluster_binding<'a>(observed: &'a Observed, role: &'static str, name: &str) -> Child<'a> {
    let body = move || binding(role, "Group", &group(observed, "manager"));
    parent(observed).child::<ClusterRoleBindingKind>(name, &CLUSTER, 0, body)
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
    let cluster = [instances_binding(observed), tenants_binding(observed)];
    let all = cluster.into_iter().chain(bindings(observed)).chain([namespace(observed)]);
    all.map(|child| child.desired.key).collect()
}
