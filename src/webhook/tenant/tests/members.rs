//! The members of a Tenant that each kind of user may change.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{KEY, OURSELVES, by_administrator, cluster, code, decide, edits, message, now, settings, stored};
use crate::webhook::fixture::{TestCluster, instance, merged, request, tenant};
use crate::webhook::tenant::changes::changed_member;
use crate::webhook::tenant::rules::validate;
use crate::webhook::tenant::{SERVICE_TENANT, Settings};

#[test]
fn each_member_of_the_spec_has_its_editors() {
    // The patch, and the codes for the Tenant itself, a manager, and an administrator.
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
        // The same quantities, as clients in Go write them.
        (json!({"quota": {"cpu": 2, "memory": "4096Mi"}}), 200, 200, 200),
        (json!({"quota": {"cpu": "2000m"}}), 200, 200, 200),
        (json!({"personalWorkspace": {"cpu": 1, "memory": "1Gi", "instances": 1}}), 403, 403, 200),
        (json!({"createPersonalWorkspace": true}), 403, 403, 200),
        // Changes of unknown members are refused, too.
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
fn lists_differ_by_their_elements_and_their_lengths() {
    for (old, new, differs) in [
        (json!([1]), json!([1, 2]), true),
        (json!([1, 2]), json!([1]), true),
        (json!([]), json!(null), false),
        (json!([{"a": 1, "b": null}]), json!([{"a": 1}]), false),
        (json!([{"a": 1, "b": true}]), json!([{"a": 1}]), true),
    ] {
        let [before, after] = [&old, &new].map(|value| json!({"spec": {"member": value}}));
        let expected = differs.then(|| "member".to_owned());
        assert_eq!(changed_member(&before, &after, &[]), expected, "{old} and {new}");
    }
}

#[test]
fn a_manager_changes_no_metadata_of_another_tenant() {
    let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "u9"}]);
    let workspaces = json!([{"name": "closed", "role": "manager"}]);
    for (member, metadata) in [
        ("ownerReferences", json!({"ownerReferences": owners})),
        ("labels", json!({"labels": {"free": "yes"}})),
        ("annotations", json!({"annotations": {"free": "yes"}})),
        ("finalizers", json!({"finalizers": ["crownlabs.polito.it/tenant-operator", "a.b/c"]})),
    ] {
        let patch = json!({"metadata": metadata, "spec": {"workspaces": workspaces}});
        let expected = format!("managers may change only spec.workspaces of a Tenant, not metadata.{member}");
        assert_eq!(message(&decide(&edits("teacher", &patch))), expected);
        // In their own Tenant, users may change these members, subject to other rules.
        let own = json!({"metadata": metadata});
        assert_eq!(code(&decide(&edits("ada", &own))), 200, "{own}");
    }
    // Metadata that the API server writes at each change, and empty members.
    let harmless = json!({
        "metadata": {
            "managedFields": [{"manager": "kubectl"}], "generation": 9, "resourceVersion": "10",
            "annotations": {}, "ownerReferences": [],
        },
        "spec": {"workspaces": workspaces},
    });
    assert_eq!(code(&decide(&edits("teacher", &harmless))), 200);
}

#[test]
fn a_manager_creates_a_tenant_with_names_and_their_workspaces_only() {
    let create = |patch: &Value| {
        let new =
            merged(tenant("eve", &["closed:user"]), &json!({"metadata": {"labels": {KEY: "production"}}}));
        decide(&request("teacher", "tenants", Value::Null, merged(new, patch)))
    };
    assert_eq!(code(&create(&json!({}))), 200);
    assert_eq!(code(&create(&json!({"spec": {"createSandbox": false, "publicKeys": []}}))), 200);
    let amounts = json!({"cpu": "64", "memory": "1Ti", "instances": 99});
    for (member, patch) in [
        ("spec.quota", json!({"spec": {"quota": amounts}})),
        ("spec.createSandbox", json!({"spec": {"createSandbox": true}})),
        ("spec.personalWorkspace", json!({"spec": {"personalWorkspace": amounts}})),
        ("spec.publicKeys", json!({"spec": {"publicKeys": ["ssh-ed25519 AAAA eve"]}})),
        ("spec.lastLogin", json!({"spec": {"lastLogin": "2099-01-01T00:00:00Z"}})),
        ("spec.unknown", json!({"spec": {"unknown": 1}})),
        ("metadata.annotations", json!({"metadata": {"annotations": {"a": "b"}}})),
        ("metadata.labels", json!({"metadata": {"labels": {"a": "b"}}})),
        ("metadata.ownerReferences", json!({"metadata": {"ownerReferences": [{"uid": "u9"}]}})),
        ("metadata.finalizers", json!({"metadata": {"finalizers": ["a.b/c"]}})),
    ] {
        let expected = format!(
            "managers may create a Tenant only with names, e-mail and entries of their Workspaces, not with {member}"
        );
        assert_eq!(message(&create(&patch)), expected);
    }
}

#[test]
fn the_last_login_is_about_now() {
    let unset = merged(stored(&[]), &json!({"spec": {"lastLogin": null}}));
    let set = stored(&[]);
    let with = |login: &str| merged(set.clone(), &json!({"spec": {"lastLogin": login}}));
    // The Tenant before and after, and the codes for the Tenant itself and a manager.
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
fn label_and_finalizer_stay() {
    let labels = |value: Value| json!({"metadata": {"labels": {KEY: value}}});
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let mine = "crownlabs.polito.it/tenant-operator";
    for (patch, expected) in [
        (labels(Value::Null), [403, 403]),
        (labels("".into()), [403, 403]),
        (labels("else".into()), [403, 403]),
        (labels("Production".into()), [403, 403]),
        (labels("production".into()), [200, 200]),
        (json!({"metadata": {"labels": null}}), [403, 403]),
        // Tenants may change all other metadata themselves.
        (json!({"metadata": {"labels": {"free": "yes"}}}), [200, 403]),
        (json!({"metadata": {"annotations": {"free": "yes"}}}), [200, 403]),
        // A logout at the dashboard.
        (
            json!({"metadata": {"annotations": {"crownlabs.polito.it/ended-session-0f": "2026-11-20T10:00:00Z"}}}),
            [200, 403],
        ),
        (json!({"metadata": {"annotations": {"crownlabs.polito.it/adopt-account": "true"}}}), [403, 403]),
        (
            json!({"metadata": {"annotations": {"crownlabs.polito.it/finalized-by": "a=b (lease c/d)"}}}),
            [403, 403],
        ),
        (finalizers(Value::Null), [403, 403]),
        (finalizers(json!([])), [403, 403]),
        (finalizers(json!(["example.org/other"])), [403, 403]),
        (finalizers(json!(["example.org/other", mine])), [200, 403]),
    ] {
        for (user, expected) in ["ada", "teacher"].into_iter().zip(expected) {
            let decision = decide(&edits(user, &patch));
            assert_eq!(code(&decision), expected, "{user} {patch}: {}", message(&decision));
        }
        assert_eq!(code(&decide(&by_administrator(edits("root", &patch)))), 200, "{patch}");
        assert_eq!(code(&decide(&edits(OURSELVES, &patch))), 200, "{patch}");
    }
}

#[test]
fn a_tenant_without_the_label_is_validated_too() {
    // The stored Tenant has lost its label: the rules still apply.
    let old = merged(stored(&[]), &json!({"metadata": {"labels": null}}));
    let raised = merged(old.clone(), &json!({"spec": {"quota": {"cpu": "64"}}}));
    assert_eq!(code(&decide(&request("ada", "tenants", old.clone(), raised))), 403);
    let back = merged(old.clone(), &json!({"metadata": {"labels": {KEY: "production"}}}));
    assert_eq!(code(&decide(&request("ada", "tenants", old, back))), 403);
}

#[test]
fn a_mistake_in_the_key_of_the_selector_allows_no_change_of_the_real_labels() {
    let key = "crownlabs.polito.it/operator-selektor".to_owned();
    let mistaken = Settings { selector: BTreeMap::from([(key, "production".to_owned())]), ..settings() };
    let decide = |user: &str, old: &Value, new: Value| {
        let decision = validate(&request(user, "tenants", old.clone(), new), &mistaken, &cluster(), now());
        (code(&decision), message(&decision))
    };
    let taken = json!({"metadata": {
        "labels": {"example.org/side": "east"},
        "annotations": {"crownlabs.polito.it/finalized-by": "example.org/side=east (lease crownlabs-system/crownlabs)"},
    }});
    let old = merged(stored(&["closed:user"]), &taken);
    for (labels, expected) in [
        (json!({}), 200),
        (json!({"free": "yes"}), 200),
        (json!({KEY: null}), 403),
        (json!({KEY: "staging"}), 403),
        (json!({"example.org/side": null}), 403),
        (json!({"example.org/side": "west"}), 403),
        (Value::Null, 403),
    ] {
        let (code, message) =
            decide("ada", &old, merged(old.clone(), &json!({"metadata": {"labels": labels}})));
        assert_eq!(code, expected, "{labels}: {message}");
    }
    let created =
        |labels: Value| merged(tenant("eve", &["closed:user"]), &json!({"metadata": {"labels": labels}}));
    assert_eq!(decide("teacher", &Value::Null, created(Value::Null)).0, 200);
    let refused = decide("teacher", &Value::Null, created(json!({KEY: "production"})));
    let expected = format!("only administrators may change the label {KEY}");
    assert_eq!(refused, (403, expected), "it would belong to another daemon");
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
fn finalizers_of_others_can_be_removed_during_deletion() {
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
    // With the base Workspace that the defaulter adds.
    let completed = json!([{"name": "closed", "role": "user"}, {"name": "utilities", "role": "user"}]);
    assert_eq!(code(&edit(merged(keep.clone(), &json!({"spec": {"workspaces": completed}})))), 200);
    assert_eq!(code(&edit(json!({"metadata": {"finalizers": ["foregroundDeletion"]}}))), 403);
    assert_eq!(code(&edit(json!({"spec": {"quota": null}}))), 404);
    assert_eq!(code(&edit(json!({"spec": {"workspaces": []}}))), 404);
    // A Tenant that is not being deleted may not be changed.
    let alive = stored(&["closed:user"]);
    let edit = request(collector, "tenants", alive.clone(), merged(alive, &keep));
    assert_eq!(code(&decide(&edit)), 404);
}

#[test]
fn a_personal_workspace_in_use_stays() {
    let with = json!({"spec": {"personalWorkspace": {"cpu": 1, "memory": "1Gi", "instances": 1}}});
    let (without, with) = (tenant("ada.l", &[]), merged(tenant("ada.l", &[]), &with));
    let older = merged(tenant("ada.l", &[]), &json!({"spec": {"createPersonalWorkspace": true}}));
    let of = |namespace: &str, template: &str| {
        cluster().with_instance(&instance(namespace, "one", template, false))
    };
    let used = of("tenant-ada-l", "tenant-ada-l/mine");
    let off = Settings { personal_workspaces: false, ..settings() };
    let on = settings();
    let cases: [(&str, &TestCluster, &Settings, &Value, &Value, u16); 9] = [
        ("in use", &used, &on, &with, &without, 409),
        ("in use, and kept", &used, &on, &with, &with, 200),
        ("the older form, in use", &used, &on, &older, &without, 409),
        ("in use, and kept in the older form", &used, &on, &with, &older, 200),
        ("added", &used, &on, &without, &with, 200),
        ("none", &used, &on, &without, &without, 200),
        ("an Instance of a course", &of("tenant-ada-l", "workspace-tea/mine"), &on, &with, &without, 200),
        ("another's Instance", &of("tenant-other", "tenant-ada-l/mine"), &on, &with, &without, 200),
        ("disabled", &used, &off, &with, &without, 200),
    ];
    for (case, cluster, settings, old, new, expected) in cases {
        let request = by_administrator(request("root", "tenants", old.clone(), new.clone()));
        let decision = validate(&request, settings, cluster, now());
        assert_eq!(code(&decision), expected, "{case}: {}", message(&decision));
        if expected == 409 {
            assert!(message(&decision).contains("one") && message(&decision).contains("mine"));
            assert_eq!(decision.outcome.expect_err("refused").reason, "Conflict");
        }
    }
}
