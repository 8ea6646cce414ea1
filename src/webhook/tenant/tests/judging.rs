//! Who may change what.

use serde_json::{Value, json};

use super::{KEY, OURSELVES, by_administrator, now, settings, stored, world};
use crate::webhook::decision::Decision;
use crate::webhook::fixture::{World, instance, merged, request, tenant};
use crate::webhook::review::{Operation, Request};
use crate::webhook::tenant::rules::{OVERRIDDEN, judge};
use crate::webhook::tenant::{SERVICE_TENANT, Settings};

fn decide(request: &Request) -> Decision {
    judge(request, &settings(), &world(), now())
}

/// The code of the answer: 200 for an admission.
fn code(decision: &Decision) -> u16 {
    decision.outcome.as_ref().err().map_or(200, crate::webhook::decision::Denial::code)
}

fn message(decision: &Decision) -> String {
    decision.outcome.as_ref().err().map(crate::webhook::decision::Denial::message).unwrap_or_default()
}

/// A change of the workspaces of `ada` by `user`.
fn enrols(user: &str, before: &[&str], after: &[&str]) -> Request {
    let list = tenant("ada", after)["spec"]["workspaces"].clone();
    let new = merged(stored(before), &json!({"spec": {"workspaces": list}}));
    request(user, "tenants", stored(before), new)
}

/// Another change of `ada` by `user`.
fn edits(user: &str, patch: &Value) -> Request {
    let old = stored(&["closed:user"]);
    request(user, "tenants", old.clone(), merged(old, patch))
}

#[test]
fn tenants_enrol_themselves_only_where_they_may() {
    // Before, after, the answer.
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
        // Base workspaces, which the defaulter adds.
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
    // Who, before, after, the answer, and a word of it.
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
fn members_of_the_spec_have_their_owners() {
    // The patch, and the answers to the Tenant itself, to a manager, to an administrator.
    for (patch, own, manager, administrator) in [
        (json!({}), 200, 200, 200),
        (json!({"publicKeys": ["ssh-ed25519 BBBB"]}), 200, 403, 200),
        (json!({"publicKeys": null}), 200, 403, 200),
        (json!({"firstName": "Eve"}), 403, 403, 200),
        (json!({"lastName": "Eve"}), 403, 403, 200),
        (json!({"email": "eve@example.org"}), 403, 403, 200),
        (json!({"createSandbox": true}), 403, 403, 200),
        (json!({"createSandbox": null}), 200, 200, 200),
        (json!({"quota": null}), 403, 403, 200),
        (json!({"quota": {"cpu": "8"}}), 403, 403, 200),
        (json!({"quota": {"memory": "5Gi"}}), 403, 403, 200),
        (json!({"quota": {"instances": 4}}), 403, 403, 200),
        // The same amounts, as clients in Go spell them.
        (json!({"quota": {"cpu": 2, "memory": "4096Mi"}}), 200, 200, 200),
        (json!({"quota": {"cpu": "2000m"}}), 200, 200, 200),
        (json!({"personalWorkspace": {"cpu": 1, "memory": "1Gi", "instances": 1}}), 403, 403, 200),
        // A member that these rules do not know is guarded too.
        (json!({"superpowers": "all"}), 403, 403, 200),
        (json!({"superpowers": null}), 200, 200, 200),
    ] {
        let patch = json!({"spec": patch});
        let answers = [
            decide(&edits("ada", &patch)),
            decide(&edits("teacher", &patch)),
            decide(&by_administrator(edits("root", &patch))),
        ];
        assert_eq!(answers.each_ref().map(code), [own, manager, administrator], "{patch}");
    }
}

#[test]
fn the_last_login_is_about_now() {
    let unset = merged(stored(&[]), &json!({"spec": {"lastLogin": null}}));
    let set = stored(&[]);
    let with = |login: &str| merged(set.clone(), &json!({"spec": {"lastLogin": login}}));
    // Before, after, the answers to the Tenant itself and to a manager.
    for (case, old, new, own, manager) in [
        ("now", &set, with("2026-11-20T10:00:00Z"), 200, 403),
        ("a day ago", &set, with("2026-11-19T10:00:00Z"), 200, 403),
        ("a day and a second ago", &set, with("2026-11-19T09:59:59Z"), 403, 403),
        ("in a day", &set, with("2026-11-21T10:00:00Z"), 200, 403),
        ("in a day and a second", &set, with("2026-11-21T10:00:01Z"), 403, 403),
        ("in a century", &set, with("2126-11-20T10:00:00Z"), 403, 403),
        ("the stored one, which is weeks ago", &set, with("2026-11-01T08:00:00Z"), 200, 200),
        ("the stored one in another zone", &set, with("2026-11-01T09:00:00+01:00"), 200, 200),
        ("the first", &unset, with("2026-11-20T09:59:00Z"), 200, 403),
        ("the first, too late", &unset, with("2026-11-22T10:00:00Z"), 403, 403),
        ("removed", &set, unset.clone(), 403, 403),
        ("none still", &unset, unset.clone(), 200, 200),
        ("not a time", &set, with("tomorrow"), 400, 400),
    ] {
        for (user, expected) in [("ada", own), ("teacher", manager)] {
            let decision = decide(&request(user, "tenants", old.clone(), new.clone()));
            assert_eq!(code(&decision), expected, "{case}, by {user}: {}", message(&decision));
        }
    }
}

#[test]
fn our_marks_stay() {
    let labels = |value: Value| json!({"metadata": {"labels": {KEY: value}}});
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let mine = "crownlabs.polito.it/tenant-operator";
    for (patch, expected) in [
        (labels(Value::Null), 403),
        (labels("".into()), 403),
        (labels("else".into()), 403),
        (labels("Production".into()), 403),
        (labels("production".into()), 200),
        (json!({"metadata": {"labels": null}}), 403),
        (json!({"metadata": {"labels": {"free": "yes"}}}), 200),
        (json!({"metadata": {"annotations": {"free": "yes"}}}), 200),
        (finalizers(Value::Null), 403),
        (finalizers(json!([])), 403),
        (finalizers(json!(["example.org/other"])), 403),
        (finalizers(json!(["example.org/other", mine])), 200),
    ] {
        for user in ["ada", "teacher"] {
            let decision = decide(&edits(user, &patch));
            assert_eq!(code(&decision), expected, "{user} {patch}: {}", message(&decision));
        }
        assert_eq!(code(&decide(&by_administrator(edits("root", &patch)))), 200, "{patch}");
        assert_eq!(code(&decide(&edits(OURSELVES, &patch))), 200, "{patch}");
    }
}

#[test]
fn a_tenant_that_left_our_care_is_still_judged() {
    // Without the label, as if somebody had dropped it before: the edit is judged all the same.
    let old = merged(stored(&[]), &json!({"metadata": {"labels": null}}));
    let raised = merged(old.clone(), &json!({"spec": {"quota": {"cpu": "64"}}}));
    assert_eq!(code(&decide(&request("ada", "tenants", old.clone(), raised))), 403);
    let back = merged(old.clone(), &json!({"metadata": {"labels": {KEY: "production"}}}));
    assert_eq!(code(&decide(&request("ada", "tenants", old, back))), 403);
}

#[test]
fn the_service_tenant_may_lose_its_label() {
    let old = merged(tenant(SERVICE_TENANT, &[]), &json!({"metadata": {"labels": {KEY: "else"}}}));
    let new = |label: &str| merged(old.clone(), &json!({"metadata": {"labels": {KEY: label}}}));
    for (label, expected) in [("", 200), ("production", 403), ("else", 200)] {
        let decision = decide(&request("teacher", "tenants", old.clone(), new(label)));
        assert_eq!(code(&decision), expected, "{label:?}: {}", message(&decision));
    }
}

#[test]
fn creations_are_for_managers() {
    let quota =
        json!({"spec": {"quota": {"cpu": "64", "memory": "1Ti", "instances": 99}, "createSandbox": true}});
    let foreign = json!({"metadata": {"labels": {KEY: "else"}}});
    let ours = json!({"metadata": {"labels": {KEY: "production"}}});
    let nothing = json!({});
    // Who, the workspaces, further members, the answer.
    for (user, workspaces, more, expected) in [
        ("teacher", &["closed:user"][..], &nothing, 200),
        ("teacher", &["closed:user", "utilities:user"], &nothing, 200),
        ("teacher", &["closed:manager", "open:candidate"], &nothing, 200),
        ("teacher", &["closed:user"], &quota, 200),
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
        // Not even the Tenant of that name: it does not exist yet.
        ("ada", &["open:user"], &nothing, 404),
        (OURSELVES, &["other:manager"], &foreign, 200),
    ] {
        let new = merged(tenant("ada", workspaces), more);
        let decision = decide(&request(user, "tenants", Value::Null, new));
        assert_eq!(code(&decision), expected, "{user} {workspaces:?} {more}: {}", message(&decision));
    }
}

#[test]
fn administrators_are_told_that_the_rules_were_overridden() {
    let raised =
        json!({"spec": {"quota": {"cpu": "64"}, "workspaces": [{"name": "absent", "role": "manager"}]}});
    let decision = decide(&by_administrator(edits("root", &raised)));
    let missing = "the Workspace absent does not exist: the enrolment waits for it";
    assert_eq!(decision, Decision::allowed().with_warning(missing).with_warning(OVERRIDDEN));
    // Our own loops need no such reminder.
    assert_eq!(decide(&edits(OURSELVES, &raised)), Decision::allowed());
    // Administrators may repair what cannot be read.
    let broken = merged(stored(&[]), &json!({"spec": {"workspaces": "none"}}));
    let repair = by_administrator(request("root", "tenants", broken.clone(), stored(&[])));
    assert_eq!(code(&decide(&repair)), 200);
    // Nobody else.
    assert_eq!(code(&decide(&request("ada", "tenants", broken, stored(&[])))), 400);
}

#[test]
fn what_cannot_be_read_is_refused() {
    for patch in [
        json!({"spec": {"workspaces": "closed"}}),
        json!({"spec": {"publicKeys": [1]}}),
        json!({"spec": {"workspaces": [{"name": "open", "role": "user"}, {"name": "open", "role": "manager"}]}}),
        json!({"metadata": {"labels": {KEY: 5}}}),
    ] {
        for user in ["ada", "teacher"] {
            let decision = decide(&edits(user, &patch));
            assert_eq!(code(&decision), 400, "{user} {patch}: {}", message(&decision));
        }
    }
    assert_eq!(code(&decide(&request("ada", "tenants", Value::Null, json!("text")))), 400);
}

#[test]
fn what_is_being_deleted_can_be_let_go_of() {
    let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
    let dying = json!({"metadata": {
        "deletionTimestamp": "2026-11-20T09:00:00Z",
        "finalizers": ["crownlabs.polito.it/tenant-operator", "foregroundDeletion"],
    }});
    let old = merged(stored(&["closed:user"]), &dying);
    let edit =
        |patch: Value| decide(&request(collector, "tenants", old.clone(), merged(old.clone(), &patch)));
    let keep = json!({"metadata": {"finalizers": ["crownlabs.polito.it/tenant-operator"]}});
    assert_eq!(code(&edit(keep.clone())), 200);
    // As the defaulter hands it on.
    let completed = json!([{"name": "closed", "role": "user"}, {"name": "utilities", "role": "user"}]);
    assert_eq!(code(&edit(merged(keep.clone(), &json!({"spec": {"workspaces": completed}})))), 200);
    assert_eq!(code(&edit(json!({"metadata": {"finalizers": ["foregroundDeletion"]}}))), 403);
    assert_eq!(code(&edit(json!({"spec": {"quota": null}}))), 404);
    assert_eq!(code(&edit(json!({"spec": {"workspaces": []}}))), 404);
    // Of one that is not being deleted, it may change nothing.
    let alive = stored(&["closed:user"]);
    let edit = request(collector, "tenants", alive.clone(), merged(alive, &keep));
    assert_eq!(code(&decide(&edit)), 404);
}

#[test]
fn a_personal_workspace_in_use_stays() {
    let with = json!({"spec": {"personalWorkspace": {"cpu": 1, "memory": "1Gi", "instances": 1}}});
    let (without, with) = (tenant("ada.l", &[]), merged(tenant("ada.l", &[]), &with));
    let of =
        |namespace: &str, template: &str| world().with_instance(&instance(namespace, "one", template, false));
    let used = of("tenant-ada-l", "tenant-ada-l/mine");
    let off = Settings { personal_workspaces: false, ..settings() };
    let on = settings();
    let cases: [(&str, &World, &Settings, &Value, &Value, u16); 7] = [
        ("in use", &used, &on, &with, &without, 409),
        ("in use, and kept", &used, &on, &with, &with, 200),
        ("given", &used, &on, &without, &with, 200),
        ("none", &used, &on, &without, &without, 200),
        ("an Instance of a course", &of("tenant-ada-l", "workspace-tea/mine"), &on, &with, &without, 200),
        ("another's Instance", &of("tenant-other", "tenant-ada-l/mine"), &on, &with, &without, 200),
        ("not in force", &used, &off, &with, &without, 200),
    ];
    for (case, world, settings, old, new, expected) in cases {
        let request = by_administrator(request("root", "tenants", old.clone(), new.clone()));
        let decision = judge(&request, settings, world, now());
        assert_eq!(code(&decision), expected, "{case}: {}", message(&decision));
        if expected == 409 {
            assert!(message(&decision).contains("one") && message(&decision).contains("mine"));
            assert_eq!(decision.outcome.expect_err("refused").reason(), "Conflict");
        }
    }
}

#[test]
fn refusals_carry_the_words_of_kubernetes() {
    let word = |request: &Request| decide(request).outcome.expect_err("refused").reason();
    assert_eq!(word(&enrols("ada", &[], &["closed:user"])), "Forbidden");
    assert_eq!(word(&enrols("ada", &[], &["absent:user"])), "InternalError");
    assert_eq!(word(&enrols("stranger", &[], &["open:user"])), "NotFound");
    assert_eq!(word(&edits("ada", &json!({"spec": {"publicKeys": 1}}))), "BadRequest");
}

#[test]
fn deletions_are_the_api_servers_business() {
    for operation in [Operation::Delete, Operation::Connect] {
        let deletion = Request { operation, ..request("stranger", "tenants", stored(&[]), Value::Null) };
        assert_eq!(decide(&deletion), Decision::allowed());
    }
}

#[test]
fn what_nobody_may_write_and_what_is_odd() {
    let administrator = |patch: &Value| by_administrator(edits("root", patch));
    for (patch, word) in [
        (
            json!({"spec": {"publicKeys": ["ssh-ed25519 AAAA ada", "a\nb"]}}),
            "spec.publicKeys[1] has a line break",
        ),
        (json!({"spec": {"quota": {"cpu": "-1"}}}), "spec.quota.cpu is \"-1\""),
        (json!({"spec": {"quota": {"memory": "much"}}}), "spec.quota.memory is \"much\""),
        (
            json!({"spec": {"personalWorkspace": {"cpu": "1", "memory": "-1Gi", "instances": 1}}}),
            "spec.personalWorkspace.memory is \"-1Gi\"",
        ),
    ] {
        let decision = decide(&administrator(&patch));
        assert_eq!(code(&decision), 400, "{patch}: {decision:?}");
        assert!(message(&decision).starts_with(word), "{patch}: {decision:?}");
    }
    // Oneself, too.
    let own = edits("ada", &json!({"spec": {"publicKeys": ["a\nb"]}}));
    assert_eq!(
        message(&decide(&own)),
        "spec.publicKeys[0] has a line break: a key is one line, and each key an entry of its own"
    );
    // Admitted, with a word.
    for (patch, word) in [
        (json!({"spec": {"publicKeys": ["none"]}}), "spec.publicKeys[0] is no SSH public key"),
        (json!({"spec": {"quota": {"cpu": "0"}}}), "spec.quota.cpu is 0: no Instance can start"),
        (
            json!({"spec": {"workspaces": [{"name": "absent", "role": "user"}]}}),
            "the Workspace absent does not exist: the enrolment waits for it",
        ),
    ] {
        let decision = decide(&administrator(&patch));
        assert!(decision.is_allowed() && decision.warnings[0].starts_with(word), "{patch}: {decision:?}");
        assert_eq!(decision.warnings.len(), 2, "{decision:?}");
    }
    // What was there before is not held against another change.
    let mut old = stored(&[]);
    old["spec"]["publicKeys"] = json!(["a\nb"]);
    old["spec"]["quota"]["cpu"] = "-1".into();
    let new = merged(old.clone(), &json!({"spec": {"lastName": "Bianchi"}}));
    let decision = decide(&by_administrator(request("root", "tenants", old, new)));
    assert_eq!(decision.warnings, [OVERRIDDEN]);
}
