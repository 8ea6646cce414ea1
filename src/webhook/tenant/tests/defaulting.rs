//! The defaults of Tenants.

use json_patch::PatchOperation;
use serde_json::{Value, json};

use super::{KEY, OURSELVES, by_administrator, settings};
use crate::webhook::fixture::{request, tenant};
use crate::webhook::review::{Operation, Request};
use crate::webhook::tenant::defaults::{add, complete};

/// The patch for a request, which must be admitted.
fn patch(request: &Request) -> Vec<PatchOperation> {
    complete(request, &settings()).outcome.expect("admitted")
}

/// The object after the patch.
fn patched(request: &Request) -> Value {
    let mut object = (*request.object).clone();
    json_patch::patch(&mut object, &patch(request)).expect("a patch that fits");
    object
}

fn labelled(name: &str, label: Option<&str>) -> Value {
    let mut object = tenant(name, &["utilities:user"]);
    if let Some(label) = label {
        object["metadata"]["labels"] = json!({KEY: label, "unrelated": "kept"});
    }
    object
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Who {
    User,
    Administrator,
    Ourselves,
}

#[derive(Clone, Copy, Debug)]
enum Before {
    New,
    Stored(Option<&'static str>),
}

/// The API server rejects a patch that removes an absent member.
#[test]
fn an_absent_label_is_not_removed() {
    let [old, new] = [labelled("ada", None), labelled("ada", None)];
    let request = by_administrator(request("root", "tenants", old, new));
    assert_eq!(patch(&request), []);
}

#[test]
fn the_label_follows_the_table() {
    use Who::{Administrator, Ourselves, User};
    let old = Before::Stored;
    let ours = Some("production");
    // The name, the user, the stored label unless it is a creation, the requested label, and the result.
    for (name, who, before, asked, result) in [
        ("service-tenant", User, Before::New, None, Some("")),
        ("service-tenant", User, Before::New, ours, ours),
        ("service-tenant", User, Before::New, Some("else"), Some("")),
        ("service-tenant", Administrator, Before::New, Some("else"), Some("")),
        ("service-tenant", Administrator, old(ours), None, Some("")),
        ("service-tenant", Administrator, old(None), ours, ours),
        ("service-tenant", Ourselves, old(Some("")), Some(""), Some("")),
        ("service-tenants", User, Before::New, None, ours),
        ("ada", Administrator, Before::New, Some("else"), Some("else")),
        ("ada", Administrator, old(ours), Some("else"), Some("else")),
        ("ada", Ourselves, old(None), ours, ours),
        ("ada", User, Before::New, None, ours),
        ("ada", User, Before::New, Some(""), ours),
        ("ada", User, Before::New, Some("else"), ours),
        ("ada", User, Before::New, ours, ours),
        ("ada", Administrator, Before::New, None, ours),
        ("ada", Administrator, Before::New, Some(""), ours),
        ("ada", User, old(ours), ours, ours),
        ("ada", User, old(None), None, None),
        ("ada", User, old(None), Some(""), Some("")),
        ("ada", User, old(Some("")), None, None),
        ("ada", User, old(Some("else")), Some("else"), Some("else")),
        ("ada", User, old(ours), None, ours),
        ("ada", User, old(ours), Some(""), ours),
        ("ada", User, old(ours), Some("else"), ours),
        ("ada", User, old(None), ours, None),
        ("ada", User, old(Some("")), ours, Some("")),
        ("ada", Administrator, old(ours), None, ours),
        ("ada", Administrator, old(ours), Some(""), ours),
        ("ada", Ourselves, old(ours), None, ours),
    ] {
        let case = format!("{name} {who:?} {before:?} -> {asked:?}");
        let user = if who == Ourselves { OURSELVES } else { "teacher" };
        let before = match before {
            Before::New => Value::Null,
            Before::Stored(label) => labelled(name, label),
        };
        let mut request = request(user, "tenants", before, labelled(name, asked));
        if who == Administrator {
            request = by_administrator(request);
        }
        let object = patched(&request);
        assert_eq!(object["metadata"]["labels"][KEY].as_str(), result, "{case}");
        if asked.is_some() {
            assert_eq!(object["metadata"]["labels"]["unrelated"], "kept", "{case}");
        }
        if asked == result {
            assert_eq!(patch(&request), [], "{case}");
        }
    }
}

#[test]
fn the_service_tenant_is_recognised_by_the_name_in_the_object() {
    let mut creation = request("teacher", "tenants", Value::Null, labelled("service-tenant", None));
    creation.name = String::new();
    assert_eq!(patched(&creation)["metadata"]["labels"][KEY], "", "the name is in the object");
    creation.object["metadata"]["name"] = Value::Null;
    creation.object["metadata"]["generateName"] = "service-tenant".into();
    assert_eq!(patched(&creation)["metadata"]["labels"][KEY], "production");
}

#[test]
fn every_label_of_the_selector_is_set() {
    let mut settings = settings();
    settings.selector.insert("a/b".to_owned(), "x".to_owned());
    let creation = request("teacher", "tenants", Value::Null, labelled("ada", None));
    let patch = complete(&creation, &settings).outcome.expect("admitted");
    assert_eq!(patch[1].path().as_str(), "/metadata/labels/a~1b");
    assert_eq!(
        patch,
        [
            add(&["metadata", "labels"], json!({})),
            add(&["metadata", "labels", "a/b"], "x".into()),
            add(&["metadata", "labels", KEY], "production".into()),
        ]
    );
}

#[test]
fn missing_base_workspaces_are_appended_for_everybody() {
    // The Workspaces of the Tenant, and whether the base Workspace is appended.
    for (listed, appended) in [
        (&["tea:user"][..], true),
        (&["utilities:user"], false),
        (&["utilities:manager", "tea:user"], false),
        (&["utilities:candidate"], false),
        (&["Utilities:user"], true),
        (&[], true),
    ] {
        let object = labelled("ada", Some("production"));
        for user in ["ada", "teacher", OURSELVES] {
            let mut new = object.clone();
            new["spec"]["workspaces"] = tenant("ada", listed)["spec"]["workspaces"].clone();
            let request = request(user, "tenants", object.clone(), new);
            for request in [request.clone(), by_administrator(request)] {
                let entry = json!({"name": "utilities", "role": "user"});
                let expected = add(&["spec", "workspaces", "-"], entry);
                let expected = if appended { vec![expected] } else { Vec::new() };
                assert_eq!(patch(&request), expected, "{user} {listed:?}");
            }
        }
    }
}

#[test]
fn a_list_is_made_only_where_there_is_something_to_append() {
    let mut object = labelled("ada", Some("production"));
    object["spec"].as_object_mut().expect("a spec").remove("workspaces");
    let creation = request("teacher", "tenants", Value::Null, object.clone());
    let list = json!([{"name": "utilities", "role": "user"}]);
    assert_eq!(patch(&creation), [add(&["spec", "workspaces"], list)]);
    let none = super::Settings { base_workspaces: Vec::new(), ..settings() };
    assert_eq!(complete(&creation, &none).outcome, Ok(Vec::new()));
    let twice = super::Settings { base_workspaces: vec!["a".to_owned(), "a".to_owned()], ..settings() };
    let patch = complete(&creation, &twice).outcome.expect("admitted");
    assert_eq!(patch, [add(&["spec", "workspaces"], json!([{"name": "a", "role": "user"}]))]);
}

#[test]
fn nothing_else_is_ever_written() {
    // An object with all defaults is not changed, however its values are written.
    let mut object = labelled("ada", Some("production"));
    object["spec"]["quota"] = json!({"cpu": 8, "memory": "1024Mi", "instances": 2});
    object["spec"]["lastLogin"] = Value::Null;
    object["status"] = json!({"unknown": true});
    assert_eq!(patch(&request("ada", "tenants", object.clone(), object)), []);
    // An object without spec gets none: it would lack members that the schema requires.
    let bare = json!({"metadata": {"name": "ada", "labels": {KEY: "production"}}});
    assert_eq!(patch(&request("ada", "tenants", bare.clone(), bare)), []);
}

#[test]
fn an_object_that_cannot_be_read_is_refused() {
    for (pointer, value) in [
        ("/spec/workspaces", json!("tea")),
        ("/spec", json!([])),
        ("/metadata/labels/crownlabs.polito.it~1operator-selector", json!(1)),
    ] {
        let mut object = labelled("ada", Some("production"));
        *object.pointer_mut(pointer).expect("there") = value;
        let refused = complete(&request("ada", "tenants", Value::Null, object), &settings());
        let denial = refused.outcome.expect_err(pointer);
        assert_eq!((denial.code, denial.reason), (400, "BadRequest"), "{pointer}");
    }
    let refused = complete(&request("ada", "tenants", Value::Null, json!(null)), &settings());
    assert_eq!(refused.outcome.expect_err("null").code, 400);
}

#[test]
fn deletions_are_left_alone() {
    let mut deletion = request("ada", "tenants", labelled("ada", None), Value::Null);
    deletion.operation = Operation::Delete;
    assert_eq!(patch(&deletion), []);
}
