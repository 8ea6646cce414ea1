use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::config::Managers;
use crate::controllers::shared::responsibility::{Responsibility, Standing};
use crate::fixtures::object;
use crate::kinds::{ClusterRoleBindingKind, NamespaceKind};
use crate::runtime::children::Children;
use crate::runtime::plan::Requeue;

fn observed(name: &str, auto_enroll: &str, tenants: &[(&str, Value)]) -> Observed {
    let tenants = tenants.iter().map(|(tenant, workspaces)| {
        object(json!({"metadata": {"name": tenant, "uid": tenant, "resourceVersion": "3"}, "spec": {"workspaces": workspaces}}))
    });
    Observed {
        workspace: object(json!({
            "metadata": {"name": name, "uid": "w1"}, "spec": {"prettyName": "Tea", "autoEnroll": auto_enroll},
        })),
        standing: Standing::Selected,
        children: Children::default(),
        tenants: tenants.collect(),
        unbound: Vec::new(),
        selector: BTreeMap::from([("sel".to_owned(), "test".to_owned())]),
    }
}

fn settings() -> Settings {
    let responsibility = Responsibility::default();
    let managers = Managers::Cluster;
    Settings { responsibility, has_keycloak: false, stalled_after: Duration::from_mins(2), managers }
}

/// The new lists of Workspaces, by Tenant.
fn enrolled(plan: &Plan<Effect>) -> Vec<(String, Value)> {
    let tenants = plan.patches.iter().filter(|patch| patch.kind.kind == "Tenant");
    tenants.map(|patch| (patch.key.name.to_string(), patch.patch["spec"]["workspaces"].clone())).collect()
}

#[test]
fn candidates_are_enrolled_removed_or_left_to_a_manager() {
    let list = json!([{"name": "tea", "role": "candidate"}, {"name": "x", "role": "user"}]);
    let tenants = [("ada", list), ("bob", json!([{"name": "tea", "role": "manager"}]))];
    let plan_of = |auto_enroll| {
        enrolled(&plan(&observed("tea", auto_enroll, &tenants), &settings(), Timestamp::UNIX_EPOCH))
    };
    let others = json!([{"name": "x", "role": "user"}]);
    assert_eq!(plan_of("withApproval"), []);
    assert_eq!(plan_of(""), [("ada".to_owned(), others)]);
    let enrolled = json!([{"name": "x", "role": "user"}, {"name": "tea", "role": "user"}]);
    assert_eq!(plan_of("immediate"), [("ada".to_owned(), enrolled)]);
}

#[test]
fn an_unreadable_workspace_removes_no_enrolment() {
    let list = json!([{"name": "tea", "role": "candidate"}]);
    let unknown =
        plan(&observed("tea", "maybe", &[("ada", list.clone())]), &settings(), Timestamp::UNIX_EPOCH);
    assert_eq!(enrolled(&unknown), [], "an unknown value removes no candidates");
    assert_eq!(unknown.problems[0].reason, "InvalidAutoEnroll");
    assert!(!unknown.ensure.is_empty(), "everything else is made");
    let mut unreadable = observed("tea", "", &[("ada", list)]);
    Arc::make_mut(&mut unreadable.workspace).malformed = Some("spec.quota: a text".to_owned());
    let unreadable = plan(&unreadable, &settings(), Timestamp::UNIX_EPOCH);
    assert_eq!(unreadable.problems[0].reason, "InvalidSpec");
    assert_eq!((unreadable.ensure.len(), unreadable.patches.len(), unreadable.remove.len()), (0, 0, 0));
}

#[test]
fn a_change_of_a_list_is_valid_only_for_the_version_that_was_seen() {
    let plan = plan(
        &observed("tea", "", &[("ada", json!([{"name": "tea", "role": "candidate"}]))]),
        &settings(),
        Timestamp::UNIX_EPOCH,
    );
    let patch = plan.patches.iter().find(|patch| patch.kind.kind == "Tenant").expect("struck off");
    assert_eq!(patch.resource_version.as_deref(), Some("3"));
}

#[test]
fn a_deleted_workspace_is_removed_from_all_tenants() {
    let tenants = [
        ("ada", json!([{"name": "tea", "role": "user"}])),
        ("bob", json!([{"name": "x", "role": "user"}, {"name": "tea", "role": "manager"}])),
    ];
    let plan = deletion(&observed("tea", "immediate", &tenants), &settings());
    assert_eq!(
        enrolled(&plan),
        [("ada".to_owned(), json!([])), ("bob".to_owned(), json!([{"name": "x", "role": "user"}]))]
    );
}

#[test]
fn a_namespace_is_deleted_only_after_a_check_with_the_api_server() {
    let mut observed = observed("tea", "", &[]);
    observed.children.set::<NamespaceKind>([object(
        json!({"metadata": {"name": "workspace-tea", "uid": "n1", "ownerReferences": [{
            "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace", "name": "tea", "uid": "w1", "controller": true,
        }]}}),
    )]);
    let plan = deletion(&observed, &settings());
    let [removal] = &plan.remove[..] else { panic!("{:?}", plan.remove) };
    assert_eq!(
        (removal.kind.kind, &removal.preconditions[..]),
        ("Namespace", &[Precondition::object(&*observed.workspace)][..])
    );
}

#[test]
fn an_invalid_namespace_name_is_reported_and_not_changed() {
    for name in ["tea.v2".to_owned(), "a".repeat(54)] {
        let plan = plan(&observed(&name, "", &[]), &settings(), Timestamp::UNIX_EPOCH);
        assert_eq!(plan.problems[0].reason, "InvalidName", "{name}");
        // No partial changes are made.
        assert_eq!((plan.ensure.len(), plan.patches.len(), plan.effects.len()), (0, 0, 0));
    }
    assert_eq!(plan(&observed("tea", "", &[]), &settings(), Timestamp::UNIX_EPOCH).problems, []);
}

#[test]
fn the_bindings_name_the_groups_of_the_course() {
    let plan = plan(&observed("tea", "", &[]), &settings(), Timestamp::UNIX_EPOCH);
    let subject = |name: &str| {
        let desired = plan.ensure.iter().find(|desired| desired.key.name == name).expect(name);
        desired.manifest.as_ref().expect("new").json()["subjects"][0]["name"].clone()
    };
    assert_eq!(subject("crownlabs-view-templates"), "kubernetes:workspace-tea:user");
    assert_eq!(subject("crownlabs-manage-templates"), "kubernetes:workspace-tea:manager");
    assert_eq!(subject("crownlabs-manage-instances-tea"), "kubernetes:workspace-tea:manager");
    assert_eq!(plan.ensure.len(), 6);
}

/// The role binding of managers to all Instances, which belongs to this owner.
fn wide(owner: &str) -> Value {
    json!({
        "metadata": {"name": "crownlabs-manage-instances-tea", "uid": "b1", "ownerReferences": [{
            "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace", "name": "tea", "uid": owner, "controller": true,
        }]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "crownlabs-manage-instances"},
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "kubernetes:workspace-tea:manager",
        }],
    })
}

#[test]
fn a_binding_in_the_whole_cluster_is_removed_when_every_namespace_has_its_own() {
    let by_course = Settings { managers: Managers::Course, ..settings() };
    let name = "crownlabs-manage-instances-tea";
    // Whether the binding is ensured, whether it is removed, and whether another reconcile follows.
    let planned = |observed: &Observed, settings: &Settings| {
        let plan = plan(observed, settings, Timestamp::UNIX_EPOCH);
        let is_ensured = plan.ensure.iter().any(|desired| desired.key.name == name);
        let removed: Vec<&str> = plan.remove.iter().map(|removal| &*removal.key.name).collect();
        assert!(plan.ensure.iter().any(|desired| desired.key.name == "crownlabs-manage-tenants-tea"));
        (is_ensured, removed == [name], plan.requeue == Requeue::After(RECHECK))
    };
    let mut observed = observed("tea", "", &[]);
    assert_eq!(planned(&observed, &by_course), (false, false, false), "a new Workspace has none");
    observed.children.set::<ClusterRoleBindingKind>([object(wide("w1"))]);
    assert_eq!(planned(&observed, &by_course), (false, true, false));
    assert_eq!(planned(&observed, &settings()), (true, false, false), "the default keeps it");
    observed.unbound = vec!["tenant-ada".to_owned()];
    assert_eq!(planned(&observed, &by_course), (false, false, true), "it stays, and is checked again");
    observed.children.set::<ClusterRoleBindingKind>([object(wide("another"))]);
    assert_eq!(planned(&observed, &by_course), (false, false, false), "a binding of another owner");
    let mut lost = wide("w1");
    lost["metadata"]["ownerReferences"] = json!([]);
    observed.children.set::<ClusterRoleBindingKind>([object(lost)]);
    assert_eq!(planned(&observed, &by_course), (true, false, false), "it is adopted, and then removed");
}
