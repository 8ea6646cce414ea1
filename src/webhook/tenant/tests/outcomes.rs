//! Values that are invalid for every user, warnings, and the codes and reasons of refusals.

use serde_json::{Value, json};

use super::{KEY, OURSELVES, by_administrator, code, decide, edits, enrols, message, stored};
use crate::api::denial::{Cause, DenialReason};
use crate::webhook::decision::Decision;
use crate::webhook::fixture::{merged, request};
use crate::webhook::review::{Operation, Request};
use crate::webhook::tenant::rules::OVERRIDDEN;

#[test]
fn administrators_are_warned_that_the_rules_were_overridden() {
    let raised =
        json!({"spec": {"quota": {"cpu": "64"}, "workspaces": [{"name": "absent", "role": "manager"}]}});
    let decision = decide(&by_administrator(edits("root", &raised)));
    let missing = "the Workspace absent does not exist: the enrolment waits for it";
    assert_eq!(decision, Decision::allowed().with_warning(missing).with_warning(OVERRIDDEN));
    // The daemon's own loops get no warning.
    assert_eq!(decide(&edits(OURSELVES, &raised)), Decision::allowed());
    // Administrators may replace an invalid object.
    let broken = merged(stored(&[]), &json!({"spec": {"workspaces": "none"}}));
    let repair = by_administrator(request("root", "tenants", broken.clone(), stored(&[])));
    assert_eq!(code(&decide(&repair)), 200);
    // Other users may not.
    assert_eq!(code(&decide(&request("ada", "tenants", broken, stored(&[])))), 400);
}

#[test]
fn invalid_tenants_are_refused() {
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
fn refusals_have_reasons_of_kubernetes() {
    let reason = |request: &Request| decide(request).outcome.expect_err("refused").reason;
    assert_eq!(reason(&enrols("ada", &[], &["closed:user"])), "Forbidden");
    assert_eq!(reason(&enrols("ada", &[], &["absent:user"])), "InternalError");
    assert_eq!(reason(&enrols("stranger", &[], &["open:user"])), "NotFound");
    assert_eq!(reason(&edits("ada", &json!({"spec": {"publicKeys": 1}}))), "BadRequest");
}

#[test]
fn refusals_of_managers_have_causes_for_the_dashboard() {
    let causes = |request: &Request| decide(request).outcome.expect_err("refused").causes;
    for (user, after, expected) in [
        ("teacher", &["other:user"][..], Cause::new(DenialReason::NotManager, "other")),
        ("teacher", &["asked:user", "other:user"], Cause::new(DenialReason::NotManager, "asked, other")),
        ("nobody", &["open:user"], Cause::new(DenialReason::NotManager, "open")),
        ("stranger", &["open:user"], Cause::new(DenialReason::NoTenant, "")),
    ] {
        assert_eq!(causes(&enrols(user, &[], after)), [expected], "{user} {after:?}");
    }
}

#[test]
fn deletions_are_admitted() {
    for operation in [Operation::Delete, Operation::Connect] {
        let deletion = Request { operation, ..request("stranger", "tenants", stored(&[]), Value::Null) };
        assert_eq!(decide(&deletion), Decision::allowed());
    }
}

#[test]
fn invalid_values_are_refused_and_odd_ones_warned_about() {
    let administrator = |patch: &Value| by_administrator(edits("root", patch));
    for (patch, begin) in [
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
        assert!(message(&decision).starts_with(begin), "{patch}: {decision:?}");
    }
    // The rule also applies to the Tenant.
    let own = edits("ada", &json!({"spec": {"publicKeys": ["a\nb"]}}));
    assert_eq!(
        message(&decide(&own)),
        "spec.publicKeys[0] has a line break: each key must be a single line in a separate entry"
    );
    // Admitted with a warning.
    for (patch, begin) in [
        (json!({"spec": {"publicKeys": ["none"]}}), "spec.publicKeys[0] is not an SSH public key"),
        (json!({"spec": {"quota": {"cpu": "0"}}}), "spec.quota.cpu is 0: no Instance can start"),
        (
            json!({"spec": {"workspaces": [{"name": "absent", "role": "user"}]}}),
            "the Workspace absent does not exist: the enrolment waits for it",
        ),
    ] {
        let decision = decide(&administrator(&patch));
        assert!(decision.is_allowed() && decision.warnings[0].starts_with(begin), "{patch}: {decision:?}");
        assert_eq!(decision.warnings.len(), 2, "{decision:?}");
    }
    // Stored values are not checked when another field changes.
    let mut old = stored(&[]);
    old["spec"]["publicKeys"] = json!(["a\nb"]);
    old["spec"]["quota"]["cpu"] = "-1".into();
    let new = merged(old.clone(), &json!({"spec": {"lastName": "Bianchi"}}));
    let decision = decide(&by_administrator(request("root", "tenants", old, new)));
    assert_eq!(decision.warnings, [OVERRIDDEN]);
}

#[test]
fn more_keys_than_are_used_are_refused_and_those_that_are_stored_stay() {
    let keys = |number: usize, length: usize| {
        let key = |n: usize| format!("{n:06}{}", "k".repeat(length.saturating_sub(6)));
        json!({"spec": {"publicKeys": (0..number).map(key).collect::<Vec<_>>()}})
    };
    for (before, after, expected) in [
        (keys(0, 0), keys(100, 655), ""),
        (keys(0, 0), keys(101, 6), "spec.publicKeys has 101 keys: at most 100 are allowed"),
        (keys(0, 0), keys(100, 656), "spec.publicKeys has 65600 bytes: at most 65536 are allowed"),
        (keys(150, 6), keys(150, 6), ""),
        (keys(150, 6), keys(149, 6), ""),
        (keys(150, 6), keys(151, 6), "spec.publicKeys has 151 keys: at most 100 are allowed"),
        (keys(100, 700), keys(100, 700), ""),
        (keys(100, 700), keys(100, 701), "spec.publicKeys has 70100 bytes: at most 65536 are allowed"),
    ] {
        let old = merged(stored(&[]), &before);
        for (user, change) in [("ada", after.clone()), ("root", after)] {
            let request = request(user, "tenants", old.clone(), merged(old.clone(), &change));
            let request = if user == "root" { by_administrator(request) } else { request };
            let decision = decide(&request);
            let refusal = if decision.is_allowed() { String::new() } else { message(&decision) };
            assert_eq!(refusal, expected, "{user}");
        }
    }
}
