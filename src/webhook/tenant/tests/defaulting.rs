//! What a Tenant is completed with.

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
    let mut object = request.object.clone();
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
    Anybody,
    Administrator,
    Ourselves,
}

#[derive(Clone, Copy, Debug)]
enum Before {
    New,
    Stored(Option<&'static str>),
}

#[test]
fn the_label_follows_the_table() {
    use Who::{Administrator, Anybody, Ourselves};
    let old = Before::Stored;
    let ours = Some("production");
    // Name, who asks, the label as stored unless it is created, as asked for, and as it comes out.
    for (name, who, before, asked, result) in [
        ("service-tenant", Anybody, Before::New, None, Some("")),
        ("service-tenant", Anybody, Before::New, ours, ours),
        ("service-tenant", Anybody, Before::New, Some("else"), Some("")),
        ("service-tenant", Administrator, Before::New, Some("else"), Some("")),
        ("service-tenant", Administrator, old(ours), None, Some("")),
        ("service-tenant", Administrator, old(None), ours, ours),
        ("service-tenant", Ourselves, old(Some("")), Some(""), Some("")),
        ("service-tenants", Anybody, Before::New, None, ours),
        ("ada", Administrator, Before::New, Some("else"), Some("else")),
        ("ada", Administrator, old(ours), Some("else"), Some("else")),
        ("ada", Ourselves, old(None), ours, ours),
        ("ada", Anybody, Before::New, None, ours),
        ("ada", Anybody, Before::New, Some(""), ours),
        ("ada", Anybody, Before::New, Some("else"), ours),
        ("ada", Anybody, Before::New, ours, ours),
        ("ada", Administrator, Before::New, None, ours),
        ("ada", Administrator, Before::New, Some(""), ours),
        ("ada", Anybody, old(ours), ours, ours),
        ("ada", Anybody, old(None), None, None),
        ("ada", Anybody, old(None), Some(""), Some("")),
        ("ada", Anybody, old(Some("")), None, None),
        ("ada", Anybody, old(Some("else")), Some("else"), Some("else")),
        ("ada", Anybody, old(ours), None, ours),
        ("ada", Anybody, old(ours), Some(""), ours),
        ("ada", Anybody, old(ours), Some("else"), ours),
        ("ada", Anybody, old(None), ours, None),
        ("ada", Anybody, old(Some("")), ours, Some("")),
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
fn a_tenant_whose_name_is_made_up_is_no_service_tenant() {
    let mut creation = request("teacher", "tenants", Value::Null, labelled("service-tenant", None));
    creation.name = String::new();
    assert_eq!(patched(&creation)["metadata"]["labels"][KEY], "", "the name stands in the object");
    creation.object["metadata"]["name"] = Value::Null;
    creation.object["metadata"]["generateName"] = "service-tenant".into();
    assert_eq!(patched(&creation)["metadata"]["labels"][KEY], "production");
}

#[test]
fn every_selector_label_is_kept_up() {
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
    // What the Tenant lists, and what is appended.
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
    // Of an object with nothing to complete, whatever else is odd about it, nothing is respelled.
    let mut object = labelled("ada", Some("production"));
    object["spec"]["quota"] = json!({"cpu": 8, "memory": "1024Mi", "instances": 2});
    object["spec"]["lastLogin"] = Value::Null;
    object["status"] = json!({"unknown": true});
    assert_eq!(patch(&request("ada", "tenants", object.clone(), object)), []);
    // An object without spec stays without: it would lack what the schema requires.
    let bare = json!({"metadata": {"name": "ada", "labels": {KEY: "production"}}});
    assert_eq!(patch(&request("ada", "tenants", bare.clone(), bare)), []);
}

#[test]
fn what_cannot_be_completed_is_refused() {
    for (pointer, value) in [
        ("/spec/workspaces", json!("tea")),
        ("/spec", json!([])),
        ("/metadata/labels/crownlabs.polito.it~1operator-selector", json!(1)),
    ] {
        let mut object = labelled("ada", Some("production"));
        *object.pointer_mut(pointer).expect("there") = value;
        let refused = complete(&request("ada", "tenants", Value::Null, object), &settings());
        let denial = refused.outcome.expect_err(pointer);
        assert_eq!((denial.code(), denial.reason()), (400, "BadRequest"), "{pointer}");
    }
    let refused = complete(&request("ada", "tenants", Value::Null, json!(null)), &settings());
    assert_eq!(refused.outcome.expect_err("null").code(), 400);
}

#[test]
fn deletions_are_left_alone() {
    let mut deletion = request("ada", "tenants", labelled("ada", None), Value::Null);
    deletion.operation = Operation::Delete;
    assert_eq!(patch(&deletion), []);
}
