//! The users who may change enrolments in a Workspace, and who may create Tenants.

use serde_json::{Value, json};

use super::{KEY, OURSELVES, code, decide, enrols, message};
use crate::webhook::fixture::{merged, request, tenant};

#[test]
fn tenants_enrol_themselves_only_where_they_may() {
    // The Workspaces before and after, and the code.
    for (before, after, expected) in [
        (&[][..], &["open:user"][..], 200),
        (&[], &["open:candidate"], 403),
        (&[], &["open:manager"], 403),
        (&[], &["asked:candidate"], 200),
        (&[], &["asked:user"], 403),
        (&[], &["asked:manager"], 403),
        (&[], &["closed:user"], 403),
        (&[], &["closed:candidate"], 403),
        (&[], &["closed:manager"], 403),
        (&[], &["absent:user"], 500),
        (&[], &["Open:user"], 500),
        (&["open:user"], &[], 200),
        (&["open:manager"], &[], 200),
        (&["asked:user"], &[], 200),
        (&["asked:candidate"], &[], 200),
        (&["closed:user"], &[], 403),
        (&["closed:manager"], &[], 403),
        (&["absent:user"], &[], 500),
        (&["asked:candidate"], &["asked:user"], 403),
        (&["asked:candidate"], &["asked:manager"], 403),
        (&["asked:user"], &["asked:manager"], 403),
        (&["asked:user"], &["asked:candidate"], 200),
        (&["open:user"], &["open:manager"], 403),
        (&["open:manager"], &["open:user"], 200),
        (&["closed:user"], &["closed:manager"], 403),
        (&["open:user"], &["open:user", "asked:candidate"], 200),
        (&["open:user"], &["open:user", "closed:user"], 403),
        (&["closed:user", "open:user"], &["open:user", "closed:user"], 200),
        (&["absent:user"], &["absent:user"], 200),
        // The base Workspace, which the defaulter adds.
        (&[], &["utilities:user"], 200),
        (&["utilities:candidate"], &["utilities:user"], 200),
        (&[], &["utilities:manager"], 403),
        (&[], &["utilities:candidate"], 403),
        (&["utilities:user"], &["utilities:manager"], 403),
        (&["utilities:user"], &[], 403),
        (&["utilities:manager"], &["utilities:user"], 403),
        (&["open:user"], &["open:user", "utilities:user"], 200),
        (&[], &["closed:manager", "utilities:user"], 403),
    ] {
        let decision = decide(&enrols("ada", before, after));
        assert_eq!(code(&decision), expected, "{before:?} -> {after:?}: {}", message(&decision));
    }
}

#[test]
fn managers_enrol_others_in_their_own_workspaces_only() {
    // The user, the Workspaces before and after, the code, and a word of the message.
    for (user, before, after, expected, word) in [
        ("teacher", &[][..], &["closed:user"][..], 200, ""),
        ("teacher", &[], &["closed:manager"], 200, ""),
        ("teacher", &["closed:candidate"], &["closed:user"], 200, ""),
        ("teacher", &["closed:user"], &[], 200, ""),
        ("teacher", &["closed:user"], &["closed:user", "open:user"], 200, ""),
        ("teacher", &[], &["other:user"], 403, "other"),
        ("teacher", &[], &["asked:candidate"], 403, "asked"),
        ("teacher", &["asked:candidate"], &[], 403, "asked"),
        ("teacher", &[], &["closed:user", "other:user"], 403, "other"),
        ("teacher", &[], &["absent:user"], 403, "absent"),
        ("teacher", &[], &["Closed:user"], 403, "Closed"),
        ("teacher", &["other:user"], &["other:manager"], 403, "other"),
        ("teacher", &["other:user"], &["other:user"], 200, ""),
        ("teacher", &[], &["utilities:user"], 200, ""),
        ("teacher", &[], &["utilities:manager"], 403, "utilities"),
        ("teacher", &["utilities:manager"], &["utilities:user"], 403, "utilities"),
        ("teacher", &["utilities:user"], &[], 403, "utilities"),
        ("rector", &["utilities:manager"], &["utilities:user"], 200, ""),
        ("rector", &[], &["closed:user"], 403, "closed"),
        ("nobody", &[], &["open:user"], 403, "open"),
        ("nobody", &[], &["utilities:user"], 200, ""),
        ("stranger", &[], &["open:user"], 404, "stranger"),
        ("stranger", &["open:user"], &["open:user"], 404, "stranger"),
        ("Ada", &[], &["open:user"], 404, "Ada"),
        ("ADA", &[], &["asked:candidate"], 404, "ADA"),
        ("system:serviceaccount:crownlabs-system:other", &[], &["open:user"], 404, "serviceaccount"),
    ] {
        let decision = decide(&enrols(user, before, after));
        assert_eq!(code(&decision), expected, "{user} {before:?} -> {after:?}: {}", message(&decision));
        assert!(message(&decision).contains(word), "{user} {after:?}: {}", message(&decision));
    }
}

#[test]
fn creations_are_for_managers() {
    let quota =
        json!({"spec": {"quota": {"cpu": "64", "memory": "1Ti", "instances": 99}, "createSandbox": true}});
    let foreign = json!({"metadata": {"labels": {KEY: "else"}}});
    let ours = json!({"metadata": {"labels": {KEY: "production"}}});
    let nothing = json!({});
    // The user, the Workspaces, further members, and the code.
    for (user, workspaces, more, expected) in [
        ("teacher", &["closed:user"][..], &nothing, 200),
        ("teacher", &["closed:user", "utilities:user"], &nothing, 200),
        ("teacher", &["closed:manager", "open:candidate"], &nothing, 200),
        ("teacher", &["closed:user"], &quota, 403),
        ("teacher", &[], &nothing, 200),
        ("teacher", &["other:user"], &nothing, 403),
        ("teacher", &["other:manager"], &nothing, 403),
        ("teacher", &["closed:user", "other:manager"], &quota, 403),
        ("teacher", &["utilities:manager"], &nothing, 403),
        ("teacher", &["closed:user"], &foreign, 403),
        ("teacher", &["closed:user"], &ours, 200),
        ("nobody", &["open:user"], &nothing, 403),
        ("nobody", &["utilities:user"], &nothing, 200),
        ("stranger", &["open:user"], &nothing, 404),
        ("stranger", &[], &nothing, 404),
        // The Tenant cannot create itself: it does not exist yet.
        ("ada", &["open:user"], &nothing, 404),
        (OURSELVES, &["other:manager"], &foreign, 200),
    ] {
        let new = merged(tenant("ada", workspaces), more);
        let decision = decide(&request(user, "tenants", Value::Null, new));
        assert_eq!(code(&decision), expected, "{user} {workspaces:?} {more}: {}", message(&decision));
    }
}
