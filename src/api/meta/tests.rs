use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn metadata(json: &serde_json::Value) -> Metadata {
    serde_json::from_str(&json.to_string()).expect("metadata")
}

fn bytes(map: &TextMap) -> usize {
    map.iter().map(|(key, value)| key.len() + value.len() + ENTRY).sum()
}

#[test]
fn a_long_value_is_kept_as_its_digest() {
    let (long, other) = ("x".repeat(200 << 10), "y".repeat(200 << 10));
    let of = |value: &str| metadata(&json!({"annotations": {"a": value}})).annotations;
    assert_eq!(of("short").get("a"), Some("short"));
    let limit = "z".repeat(OF_ANNOTATIONS.value);
    assert_eq!(of(&limit).get("a"), Some(limit.as_str()));
    let map = of(&long);
    let digest = map.get("a").expect("kept");
    assert!(digest.starts_with("sha256:") && digest.len() < 80, "{digest}");
    assert_eq!(of(&long), map);
    assert_ne!(of(&other), map, "a change is detected");
    assert_eq!(kept_annotation(&long), digest, "the desired value is compared with it");
    let data = |value: &str| -> TextMap { serde_json::from_value(json!({"k": value})).expect("data") };
    assert_eq!(kept_data(&long), data(&long).get("k").expect("kept"));
    assert_eq!(data(&"x".repeat(OF_DATA.value)).get("k").map(str::len), Some(OF_DATA.value));
}

#[test]
fn entries_with_our_prefix_are_kept_first() {
    let ours = "crownlabs.polito.it/zz";
    let many: BTreeMap<String, String> = (0..50_000).map(|n| (format!("a{n}"), String::new())).collect();
    for (member, bounds) in [("labels", OF_LABELS), ("annotations", OF_ANNOTATIONS)] {
        let mut map = many.clone();
        map.insert(ours.to_owned(), "yes".to_owned());
        let read = metadata(&json!({member: map}));
        let kept = if member == "labels" { &read.labels } else { &read.annotations };
        assert_eq!(kept.get(ours), Some("yes"));
        assert!(bytes(kept) <= bounds.total && bytes(kept) > bounds.total / 2, "{}", bytes(kept));
        assert!(kept.iter().map(|(key, _)| key).is_sorted());
        // The kept form does not change when it is written and read again.
        let text = serde_json::to_string(&read).expect("JSON");
        assert_eq!(serde_json::from_str::<Metadata>(&text).expect("metadata"), read);
    }
    let data: TextMap = serde_json::from_value(json!(many)).expect("data");
    assert!(bytes(&data) <= OF_DATA.total);
}

#[test]
fn the_controller_is_kept_among_many_owners() {
    let owner = |n: usize| json!({"kind": "Pod", "name": format!("n{n}"), "uid": "x".repeat(10_000), "controller": n == 900});
    let owners: Vec<_> = (0..1000).map(owner).collect();
    let finalizers: Vec<_> = (0..1000).map(|n| format!("a/{n}")).collect();
    let read = metadata(&json!({"ownerReferences": owners, "finalizers": finalizers}));
    assert_eq!(read.controller().expect("kept").name, "n900");
    assert_eq!((read.owner_references.len(), read.finalizers.len()), (MOST + 1, MOST));
    assert!(read.owner_references.iter().all(|owner| owner.uid.len() < LONGEST_NAME));
    let none = metadata(&json!({"ownerReferences": null, "finalizers": null, "labels": null}));
    assert_eq!(none, Metadata::default());
}
