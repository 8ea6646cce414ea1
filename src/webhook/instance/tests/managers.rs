//! The Instances that managers of single courses may write.

use serde_json::{Value, json};

use super::NAMESPACE;
use crate::webhook::fixture::{TestCluster, instance, request};
use crate::webhook::instance::managers::check;
use crate::webhook::requester::Bypass;
use crate::webhook::review::{Operation, Request};

/// A student of two courses with a personal workspace. The Template `tea/gone` was deleted.
fn cluster() -> TestCluster {
    TestCluster::default()
        .with_namespace(NAMESPACE, "ada")
        .with_template("workspace-tea", "lab", "tea", &[])
        .with_template("workspace-net", "lab", "net", &[])
        // The Workspace in the spec counts, as for the login to a machine.
        .with_template("workspace-tea", "lent", "net", &[])
        .with_template(NAMESPACE, "mine", "tea", &[])
}

fn bypass() -> Bypass {
    Bypass { groups: vec!["admins".to_owned()], own_user: "daemon".to_owned() }
}

/// An Instance of this Template.
fn of(template: &str) -> Value {
    instance(NAMESPACE, "one", template, true)
}

/// The request of a user in these groups, with another operation if it has no new object.
fn asked(user: &str, groups: &[&str], old: Value, new: Value) -> Request {
    let is_deletion = new.is_null();
    let mut asked = request(user, "instances", old, if is_deletion { of("workspace-tea/lab") } else { new });
    if is_deletion {
        asked.operation = Operation::Delete;
        asked.object = Value::Null.into();
    }
    asked.user_info.groups.extend(groups.iter().map(|group| (*group).to_owned()));
    asked
}

fn refusal(request: &Request) -> Option<String> {
    check(request, &bypass(), &cluster()).err().map(|denial| {
        assert_eq!((denial.code, denial.causes.len()), (403, 1));
        denial.message
    })
}

const TEA: &[&str] = &["kubernetes:workspace-tea:manager"];

#[test]
fn a_manager_writes_only_instances_of_their_courses() {
    let may = |old: Value, new: Value| refusal(&asked("tim", TEA, old, new)).is_none();
    for (template, expected) in [
        ("workspace-tea/lab", true),
        ("workspace-tea/gone", true),
        ("workspace-tea/lent", false),
        ("workspace-net/lab", false),
        ("workspace-net/gone", false),
        ("tenant-ada/mine", false),
        ("tenant-ada/gone", false),
        ("elsewhere/gone", false),
    ] {
        assert_eq!(may(Value::Null, of(template)), expected, "creates {template}");
        assert_eq!(may(of(template), of(template)), expected, "changes {template}");
        assert_eq!(may(of(template), Value::Null), expected, "deletes {template}");
    }
    let (own, other) = (|| of("workspace-tea/lab"), || of("workspace-net/lab"));
    assert!(!may(other(), own()), "takes over an Instance of another course");
    assert!(!may(own(), other()), "passes an Instance on to another course");
    assert!(!may(json!({"spec": 7}), Value::Null), "an Instance that cannot be read");
    assert!(!may(Value::Null, json!({})), "an Instance without a Template");
}

#[test]
fn the_rule_applies_only_to_managers_without_other_rights() {
    for (user, groups, expected) in [
        ("tim", TEA, false),
        ("tim", &["kubernetes:workspace-tea:manager", "kubernetes:workspace-net:manager"], true),
        ("tim", &["kubernetes:workspace-tea:manager", "kubernetes:workspace-net:user"], false),
        ("tim", &["kubernetes:workspace-net:user"], true),
        ("tim", &["kubernetes:workspace-tea:manager", "admins"], true),
        ("ada", TEA, true),
        ("daemon", TEA, true),
        ("system:serviceaccount:kube-system:namespace-controller", &[], true),
    ] {
        let deletion = asked(user, groups, of("workspace-net/lab"), Value::Null);
        assert_eq!(refusal(&deletion).is_none(), expected, "{user} {groups:?}");
    }
}

#[test]
fn a_refusal_names_an_instance_of_a_collection_that_is_deleted() {
    let mut deletion = asked("tim", TEA, of("workspace-net/lab"), Value::Null);
    // The API server gives no name then.
    deletion.name = String::new();
    let said = refusal(&deletion).expect("a refusal");
    assert!(said.contains("the Instance tenant-ada/one, because"), "{said}");
}

#[test]
fn a_refusal_names_the_instance_the_template_and_who_may() {
    let said = |template: &str| refusal(&asked("tim", TEA, of(template), of(template))).expect("a refusal");
    assert_eq!(
        said("workspace-net/lab"),
        "you may not create, change or delete the Instance tenant-ada/one, because its Template workspace-net/lab is of \
         Workspace net, which you do not manage: ask a manager of net or the user of tenant-ada"
    );
    assert_eq!(
        said("tenant-ada/mine"),
        "you may not create, change or delete the Instance tenant-ada/one, because its Template tenant-ada/mine is of no \
         Workspace: ask the user of tenant-ada"
    );
}
