//! Properties of decisions for random users and Workspaces.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{KEY, decide, enrols, stored};
use crate::webhook::fixture::{merged, request};
use crate::webhook::tenant::changes::changed_member;

/// The same object with the members of every map in another order.
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

/// Entries of `spec.workspaces`, as `name:role`.
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

/// Labels or annotations without meaning.
fn noise() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-z]{1,8}", "[a-z]{0,8}", 0..4).prop_map(|labels| json!(labels))
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

proptest! {
    #[test]
    fn order_and_unrelated_metadata_change_no_decision(
        user in users(), before in entries(), after in entries(), labels in noise(), seed in 0..7_usize,
    ) {
        let plain = enrols(user, &texts(&before), &texts(&after));
        // Metadata of the Tenant that does not change.
        let noise = json!({"metadata": {"labels": labels, "annotations": labels}});
        let [old, new] = [&plain.old_object, &plain.object].map(|object| merged((**object).clone(), &noise));
        let other = request(user, "tenants", shuffled(&old, seed), shuffled(&new, seed + 1));
        prop_assert_eq!(decide(&plain), decide(&other));
    }

    #[test]
    fn a_change_of_the_label_does_not_lift_a_refusal(
        user in users(), after in entries(), label in "[a-z]{0,10}",
    ) {
        let new = enrols(user, &[], &texts(&after)).object;
        let change = json!({"metadata": {"labels": {KEY: label}}, "spec": {"quota": {"cpu": "64"}}});
        let decision = decide(&request(user, "tenants", stored(&[]), merged((*new).clone(), &change)));
        prop_assert!(!decision.is_allowed());
    }

    #[test]
    fn a_role_without_a_manager_cannot_be_gained(user in users(), before in entries(), after in entries()) {
        let decision = decide(&enrols(user, &texts(&before), &texts(&after)));
        let is_manager = |entries: &[String]| entries.iter().any(|entry| entry == "other:manager");
        let gains = is_manager(&after) && !is_manager(&before);
        prop_assert!(!(gains && decision.is_allowed()), "`other` has no manager");
    }

    #[test]
    fn comparing_is_symmetric_and_blind_to_order(a in noise(), b in noise(), seed in 0..5_usize) {
        let (a, b) = (json!({"spec": {"quota": a}}), json!({"spec": {"quota": b}}));
        let differs = a != b;
        prop_assert_eq!(changed_member(&a, &b, &[]).is_some(), differs);
        prop_assert_eq!(changed_member(&b, &a, &[]).is_some(), differs);
        prop_assert_eq!(changed_member(&a, &shuffled(&a, seed), &[]), None);
    }
}
