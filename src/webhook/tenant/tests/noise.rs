//! Properties: what a decision does not depend on.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{KEY, now, settings, stored, world};
use crate::webhook::fixture::{merged, request, tenant};
use crate::webhook::tenant::changes::changed_member;
use crate::webhook::tenant::rules::judge;

/// The same object with the members of every mapping in another order.
fn shuffled(value: &Value, seed: usize) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, value)| (key.clone(), shuffled(value, seed))).collect();
            let shift = seed % members.len().max(1);
            members.rotate_left(shift);
            Value::Object(members.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| shuffled(item, seed)).collect(),
        other => other.clone(),
    }
}

fn entries() -> impl Strategy<Value = Vec<String>> {
    let names = prop::sample::subsequence(vec!["open", "asked", "closed", "other", "utilities"], 0..=5);
    let roles = prop::collection::vec(prop::sample::select(vec!["user", "manager", "candidate"]), 5);
    (names, roles).prop_map(|(names, roles)| {
        names.iter().zip(roles).map(|(name, role)| format!("{name}:{role}")).collect()
    })
}

fn users() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["ada", "teacher", "rector", "nobody", "stranger"])
}

fn noise() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-z]{1,8}", "[a-z]{0,8}", 0..4).prop_map(|labels| json!(labels))
}

proptest! {
    #[test]
    fn order_and_unrelated_metadata_change_no_decision(
        user in users(), before in entries(), after in entries(), labels in noise(), seed in 0..7_usize,
    ) {
        let texts = |list: &[String]| -> Value {
            let list: Vec<&str> = list.iter().map(String::as_str).collect();
            tenant("ada", &list)["spec"]["workspaces"].clone()
        };
        let before = merged(stored(&[]), &json!({"spec": {"workspaces": texts(&before)}}));
        let after = merged(stored(&[]), &json!({"spec": {"workspaces": texts(&after)}}));
        let plain = judge(&request(user, "tenants", before.clone(), after.clone()), &settings(), &world(), now());
        let noisy = merged(after, &json!({"metadata": {"labels": labels, "annotations": labels}}));
        let shuffled = request(user, "tenants", shuffled(&before, seed), shuffled(&noisy, seed + 1));
        let other = judge(&shuffled, &settings(), &world(), now());
        prop_assert_eq!(plain, other);
    }

    #[test]
    fn whoever_is_refused_stays_refused_whatever_the_label(
        user in users(), after in entries(), label in "[a-z]{0,10}",
    ) {
        let list: Vec<&str> = after.iter().map(String::as_str).collect();
        let new = merged(stored(&[]), &json!({"spec": {
            "workspaces": tenant("ada", &list)["spec"]["workspaces"], "quota": {"cpu": "64"},
        }}));
        let relabelled = merged(new, &json!({"metadata": {"labels": {KEY: label}}}));
        let decision = judge(&request(user, "tenants", stored(&[]), relabelled), &settings(), &world(), now());
        prop_assert!(!decision.is_allowed());
    }

    #[test]
    fn nobody_gains_a_role_that_nobody_may_give(user in users(), before in entries(), after in entries()) {
        let texts = |list: &[String]| -> Value {
            let list: Vec<&str> = list.iter().map(String::as_str).collect();
            tenant("ada", &list)["spec"]["workspaces"].clone()
        };
        let old = merged(stored(&[]), &json!({"spec": {"workspaces": texts(&before)}}));
        let new = merged(stored(&[]), &json!({"spec": {"workspaces": texts(&after)}}));
        let decision = judge(&request(user, "tenants", old, new), &settings(), &world(), now());
        let gains = after.contains(&"other:manager".to_owned()) && !before.contains(&"other:manager".to_owned());
        prop_assert!(!(gains && decision.is_allowed()), "nobody manages `other`");
    }

    #[test]
    fn comparing_is_symmetric_and_blind_to_order(a in noise(), b in noise(), seed in 0..5_usize) {
        let (a, b) = (json!({"spec": {"quota": a}}), json!({"spec": {"quota": b}}));
        prop_assert_eq!(changed_member(&a, &b, &[]).is_some(), changed_member(&b, &a, &[]).is_some());
        prop_assert_eq!(changed_member(&a, &shuffled(&a, seed), &[]), None);
    }
}
