//! The bindings of managers in the personal namespaces of a Workspace's Tenants, which the tenant loop writes. The binding
//! in the whole cluster is deleted only when none of them is missing.

use std::sync::Arc;

use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::api::tenant::{Role, Tenant};
use crate::controllers::shared::course_managers::{PERSONAL_BINDING, cluster_binding, workspaces};
use crate::kinds::{ClusterRoleBindingKind, NamespaceKind, RoleBindingKind};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::selection::Selection;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;

/// The bindings in personal namespaces, for managers whose rights end at their courses.
pub struct PersonalBindings {
    bindings: Arc<Store<RoleBindingKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    /// The bindings in the whole cluster.
    cluster: Arc<Store<ClusterRoleBindingKind>>,
}

impl PersonalBindings {
    /// Declares the store of the bindings. While the binding of a Workspace in the whole cluster exists, a change of a
    /// binding in a personal namespace adds the Workspace to the queue.
    pub fn declare(
        set: &mut StoreSet<'_>,
        namespaces: Arc<Store<NamespaceKind>>,
        cluster: Arc<Store<ClusterRoleBindingKind>>,
    ) -> Self {
        let of_tenants = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_TENANT);
        let existing = Arc::clone(&cluster);
        let bindings = set.store::<RoleBindingKind>(&of_tenants).on_change(move |change, queue| {
            let sides = [&change.old, &change.new].into_iter().flatten();
            for binding in sides.filter(|binding| binding.name() == PERSONAL_BINDING) {
                let waiting = workspaces(&binding.spec).into_iter();
                for workspace in waiting.filter(|name| existing.get("", &cluster_binding(name)).is_some()) {
                    queue.add(ObjectKey::new("", workspace), Priority::Background);
                }
            }
        });
        Self { bindings: bindings.get(), namespaces, cluster }
    }

    /// The personal namespaces of these Tenants in which the managers of the Workspace have no binding; empty if the
    /// Workspace has no binding in the whole cluster.
    pub fn missing(&self, workspace: &str, tenants: &[Arc<Tenant>]) -> Vec<String> {
        if self.cluster.get("", &cluster_binding(workspace)).is_none() {
            return Vec::new();
        }
        let enrolled = tenants.iter().filter(|tenant| {
            let role = tenant.spec.role_in(workspace);
            matches!(role, Some(Role::User | Role::Manager))
        });
        enrolled.filter_map(|tenant| self.unbound(workspace, tenant)).collect()
    }

    /// The personal namespace of a Tenant if it exists and the managers of the Workspace have no binding in it.
    fn unbound(&self, workspace: &str, tenant: &Tenant) -> Option<String> {
        let name = CanonicalName::of(tenant.name()).tenant_namespace();
        let namespace = self.namespaces.get("", &name)?;
        let is_there = namespace.is_controlled_by(tenant) && !namespace.is_terminating();
        let binding = self.bindings.get(&name, PERSONAL_BINDING);
        let is_bound = binding.is_some_and(|binding| workspaces(&binding.spec).contains(workspace));
        (is_there && !is_bound).then_some(name)
    }

    /// A message about the Workspaces whose managers still have their rights in the whole cluster. `tenants` returns the
    /// Tenants of a Workspace.
    pub fn waiting(
        &self,
        names: impl Iterator<Item = String>,
        tenants: impl Fn(&str) -> Vec<Arc<Tenant>>,
    ) -> Option<String> {
        let mut waiting: Vec<(String, Vec<String>)> =
            names.map(|name| (name.clone(), self.missing(&name, &tenants(&name)))).collect();
        waiting.retain(|(_, missing)| !missing.is_empty());
        waiting.sort();
        let (name, missing) = waiting.first()?;
        Some(format!(
            "the managers of {} Workspaces keep their rights on all Instances (controllers.tenant.managers: course), because \
             personal namespaces have no RoleBinding {PERSONAL_BINDING} for them: {} of {name}, such as {}. The tenant loop \
             creates it; see the conditions of its Tenant",
            waiting.len(),
            missing.len(),
            missing.first()?
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::Kind;
    use crate::fixtures::object;
    use crate::runtime::store::{AnyStore as _, StoreFactory};

    /// Fills a store with these objects.
    fn fill<T: Kind>(store: &Store<T>, objects: impl IntoIterator<Item = Value>) {
        store.begin_list();
        for value in objects {
            store.list_object(serde_json::from_value(value).expect("an object"));
        }
        store.end_list();
    }

    fn owner(tenant: &str) -> Value {
        json!([{"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant", "name": tenant, "uid": tenant,
            "controller": true}])
    }

    fn binding(namespace: &str, workspaces: &[&str]) -> Value {
        let labels = json!({labels::MANAGED_BY: labels::MANAGED_BY_TENANT});
        let group =
            |name: &&str| json!({"kind": "Group", "name": format!("kubernetes:workspace-{name}:manager")});
        let subjects: Vec<Value> = workspaces.iter().map(group).collect();
        // A store takes an object with another uid, whatever its version.
        let metadata = json!({"name": PERSONAL_BINDING, "namespace": namespace, "uid": workspaces.join("-"),
            "labels": labels});
        json!({"metadata": metadata, "subjects": subjects})
    }

    #[test]
    fn namespaces_of_users_and_managers_without_a_binding_are_missing() {
        let mut factory = StoreFactory::default();
        let (namespaces, cluster) = (Arc::new(Store::new(true)), Arc::new(Store::new(true)));
        let mut set = StoreSet::new("workspace", &mut factory);
        let bindings = PersonalBindings::declare(&mut set, namespaces, cluster);
        let tenant = |name: &str, role: &str| -> Arc<Tenant> {
            let entries = json!([{"name": "tea", "role": role}, {"name": "net", "role": "user"}]);
            object(json!({"metadata": {"name": name, "uid": name}, "spec": {"workspaces": entries}}))
        };
        let tenants =
            [("ada", "user"), ("bob", "manager"), ("eve", "candidate"), ("joe", "user"), ("zoe", "user")]
                .map(|(name, role)| tenant(name, role));
        let namespace = |name: &str, of: &str| {
            let name = format!("tenant-{name}");
            json!({"metadata": {"name": name, "ownerReferences": owner(of)}})
        };
        // The namespace of joe does not exist, and that of zoe belongs to another Tenant.
        let namespaces = [("ada", "ada"), ("bob", "bob"), ("eve", "eve"), ("zoe", "mallory")];
        fill(&bindings.namespaces, namespaces.map(|(name, of)| namespace(name, of)));
        let missing = || bindings.missing("tea", &tenants);
        assert_eq!(missing(), [""; 0], "no binding in the whole cluster is to be deleted");
        let labels = json!({labels::MANAGED_BY: labels::MANAGED_BY_WORKSPACE});
        let wide = json!({"metadata": {"name": "crownlabs-manage-instances-tea", "labels": labels}});
        fill(&bindings.cluster, [wide]);
        assert_eq!(missing(), ["tenant-ada", "tenant-bob"]);
        let waiting =
            || bindings.waiting(["net", "tea"].map(str::to_owned).into_iter(), |_| tenants.to_vec());
        let said = waiting().expect("a message");
        assert!(said.contains("2 of tea, such as tenant-ada"), "{said}");
        fill(&bindings.bindings, [binding("tenant-ada", &["net", "tea"]), binding("tenant-bob", &["net"])]);
        assert_eq!(missing(), ["tenant-bob"]);
        fill(&bindings.bindings, ["tenant-ada", "tenant-bob"].map(|name| binding(name, &["net", "tea"])));
        assert_eq!((missing(), waiting()), (Vec::new(), None));
    }
}
