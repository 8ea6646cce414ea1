//! The right of managers on the Instances of a Tenant (`controllers.tenant.managers: course`): one binding in the personal
//! namespace, whose subjects are the manager groups of the Tenant's Workspaces. It changes with an enrolment, and not when
//! a Workspace gets another manager.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Effect;
use super::children::{Children, PERSONAL};
use super::enrolment::Enrolment;
use super::observe::Observed;
use crate::api::labels;
use crate::api::names::course_group;
use crate::api::tenant::TenantKind;
use crate::config::Managers;
use crate::controllers::shared::children::{Child, RBAC_GROUP};
use crate::controllers::shared::course_managers::{PERSONAL_BINDING, ROLE, cluster_binding};
use crate::controllers::shared::references::ByWorkspace;
use crate::kinds::{ClusterRoleBindingKind, RoleBindingKind};
use crate::runtime::plan::Plan;
use crate::runtime::queue::Priority;
use crate::runtime::selection::Selection;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;

/// The bindings of managers in the whole cluster, which the workspace loop writes.
pub struct ClusterBindings(Arc<Store<ClusterRoleBindingKind>>);

impl ClusterBindings {
    /// Declares the store. A new binding adds the Tenants of its Workspace to the queue.
    pub fn declare(set: &mut StoreSet<'_>, tenants: &Arc<Store<TenantKind>>) -> Self {
        let of_workspaces = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_WORKSPACE);
        let tenants = Arc::clone(tenants);
        let store = set.store::<ClusterRoleBindingKind>(&of_workspaces).on_change(move |change, queue| {
            let new = change.new.as_ref().filter(|_| change.old.is_none());
            let name = new.and_then(|new| new.name().strip_prefix(ROLE)?.strip_prefix('-'));
            for tenant in name.into_iter().flat_map(|name| tenants.keys_by::<ByWorkspace>(name)) {
                queue.add(tenant, Priority::Background);
            }
        });
        Self(store.get())
    }

    /// The Workspaces of a Tenant whose managers have such a binding; empty if the Tenant has no binding of its own, which
    /// would be compared with them.
    pub fn of(&self, observed: &Observed) -> BTreeSet<String> {
        let namespace = observed.names().namespace;
        if observed.children.get::<RoleBindingKind>(&namespace, PERSONAL_BINDING).is_none() {
            return BTreeSet::new();
        }
        let exists = |name: &str| {
            let found = self.0.get("", &cluster_binding(name));
            found.is_some_and(|found| !found.is_terminating())
        };
        let names = observed.tenant.spec.workspaces.iter().map(|entry| entry.name.clone());
        names.filter(|name| exists(name)).collect()
    }
}

impl<'a> Children<'a> {
    /// The binding of the managers of these Workspaces. It is written last, as the binding of the Tenant.
    pub fn managers_binding(self, workspaces: &BTreeSet<&str>) -> Child<'a> {
        let group = |workspace: &&str| {
            let name = course_group(workspace, "manager");
            json!({"apiGroup": RBAC_GROUP, "kind": "Group", "name": name})
        };
        let subjects: Vec<Value> = workspaces.iter().map(group).collect();
        let body = move || {
            let role = self.instances_role(PERSONAL_BINDING);
            json!({
                "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
                "subjects": subjects,
            })
        };
        self.parent().child::<RoleBindingKind>(PERSONAL_BINDING, &PERSONAL, 2, body)
    }
}

/// Plans the binding, or its removal. After a change of the key to `cluster`, it stays until the managers of every
/// Workspace of the Tenant have a binding in the whole cluster.
pub fn plan(children: Children<'_>, enrolment: &Enrolment<'_>, plan: &mut Plan<Effect>) {
    let workspaces: BTreeSet<&str> = enrolment.enrolled().map(|(workspace, _)| workspace.name()).collect();
    let binding = children.managers_binding(&workspaces);
    let is_needed = match children.settings.config.managers {
        Managers::Course => true,
        Managers::Cluster => {
            let bound = &children.observed.cluster_bindings;
            binding.is_own() && workspaces.iter().any(|workspace| !bound.contains(*workspace))
        }
    };
    if is_needed && !workspaces.is_empty() {
        binding.bind(plan);
    } else {
        binding.remove(plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::tenant::fixtures::{observed, owners, settings};
    use crate::controllers::tenant::plan::plan;
    use crate::fixtures::{at, object};
    use crate::runtime::plan::Manifest;

    /// A Tenant in three courses, and a candidate of a fourth one.
    fn enrolled() -> Observed {
        let entries = json!([
            {"name": "tea", "role": "user"}, {"name": "net", "role": "manager"}, {"name": "cpp", "role": "candidate"},
            {"name": "ghost", "role": "user"},
        ]);
        let courses =
            [("tea", json!({})), ("net", json!({})), ("cpp", json!({"autoEnroll": "withApproval"}))];
        observed(&json!({"workspaces": entries}), &courses)
    }

    /// The binding, with these subjects.
    fn existing(groups: &[&str]) -> Value {
        let group = |name: &&str| json!({"apiGroup": RBAC_GROUP, "kind": "Group", "name": name});
        json!({
            "metadata": {"name": PERSONAL_BINDING, "namespace": "tenant-ada-rossi", "uid": "b1",
                "ownerReferences": owners("u1")},
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "crownlabs-manage-instances"},
            "subjects": groups.iter().map(group).collect::<Vec<_>>(),
        })
    }

    /// The change of the binding: the groups of a new or changed one, an empty list if it stays as it is, `None` if it is
    /// not there; and whether it is removed.
    fn change(observed: &Observed, managers: Managers) -> (Option<Vec<String>>, bool) {
        let mut settings = settings();
        settings.config.managers = managers;
        let plan = plan(observed, &settings, at(0));
        let is_removed = plan.remove.iter().any(|removal| removal.key.name == PERSONAL_BINDING);
        let made = plan.ensure.iter().find(|desired| desired.key.name == PERSONAL_BINDING);
        let groups = made.map(|made| {
            let body = made.manifest.as_ref().map_or(&made.fields, Manifest::json);
            let subjects = body["subjects"].as_array().into_iter().flatten();
            subjects.map(|subject| subject["name"].as_str().expect("a name").to_owned()).collect()
        });
        (groups, is_removed)
    }

    #[test]
    fn the_binding_names_the_managers_of_the_courses_in_order() {
        let mut observed = enrolled();
        let both = ["kubernetes:workspace-net:manager", "kubernetes:workspace-tea:manager"];
        let groups = || Some(both.map(str::to_owned).to_vec());
        assert_eq!(change(&observed, Managers::Course), (groups(), false), "it is created");
        observed.children.set::<RoleBindingKind>([object(existing(&both))]);
        assert_eq!(change(&observed, Managers::Course), (Some(Vec::new()), false), "nothing differs");
        observed.children.set::<RoleBindingKind>([object(existing(&both[..1]))]);
        assert_eq!(change(&observed, Managers::Course), (groups(), false), "after an enrolment");
        observed.children.set::<RoleBindingKind>([object(existing(&["mallory", both[0], both[1]]))]);
        assert_eq!(change(&observed, Managers::Course), (groups(), false), "after an addition by others");
    }

    #[test]
    fn the_bindings_of_the_namespace_keep_their_role_until_the_configured_one_exists() {
        let mut settings = settings();
        settings.config.managers = Managers::Course;
        settings.config.instances_cluster_role = "crownlabs-own-instances".to_owned();
        let names = ["crownlabs-manage-instances", PERSONAL_BINDING];
        // The number of deleted bindings, and the roles of created ones.
        let planned = |observed: &Observed| {
            let plan = plan(observed, &settings, at(0));
            let removed = plan.remove.iter().filter(|removal| names.contains(&&*removal.key.name)).count();
            let made = plan.ensure.iter().filter(|desired| names.contains(&&*desired.key.name));
            let created = made.filter_map(|desired| desired.manifest.as_ref());
            let roles = created.map(|created| created.json()["roleRef"]["name"].clone());
            (removed, roles.collect::<Vec<_>>())
        };
        let mut observed = enrolled();
        assert_eq!(planned(&observed), (0, vec![json!("crownlabs-own-instances"); 2]), "new bindings");
        let of_managers = existing(&["kubernetes:workspace-net:manager", "kubernetes:workspace-tea:manager"]);
        let mut own = existing(&[]);
        (own["metadata"]["name"], own["metadata"]["uid"]) = (json!(names[0]), json!("b2"));
        own["subjects"] = json!([{"apiGroup": RBAC_GROUP, "kind": "User", "name": "ada.rossi"}]);
        observed.children.set::<RoleBindingKind>([object(own), object(of_managers)]);
        observed.has_instances_role = false;
        assert_eq!(planned(&observed), (0, Vec::new()), "they stay");
        observed.has_instances_role = true;
        assert_eq!(planned(&observed), (2, Vec::new()), "they are replaced");
    }

    #[test]
    fn a_tenant_without_courses_has_no_binding() {
        let mut observed = observed(&json!({}), &[("tea", json!({}))]);
        assert_eq!(change(&observed, Managers::Course), (None, false));
        observed.children.set::<RoleBindingKind>([object(existing(&["kubernetes:workspace-tea:manager"]))]);
        assert_eq!(change(&observed, Managers::Course), (None, true));
    }

    #[test]
    fn the_binding_stays_until_each_course_has_one_in_the_whole_cluster() {
        let mut observed = enrolled();
        assert_eq!(change(&observed, Managers::Cluster), (None, false), "the default creates none");
        let both = ["kubernetes:workspace-net:manager", "kubernetes:workspace-tea:manager"];
        observed.children.set::<RoleBindingKind>([object(existing(&both))]);
        for (bound, expected) in [
            (&[][..], (Some(Vec::new()), false)),
            (&["tea"], (Some(Vec::new()), false)),
            (&["tea", "cpp"], (Some(Vec::new()), false)),
            (&["net", "tea"], (None, true)),
        ] {
            observed.cluster_bindings = bound.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(change(&observed, Managers::Cluster), expected, "{bound:?}");
        }
    }
}
