mod requests;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::json;

use super::compare::repair;
use super::*;
use crate::fixtures::time;
use crate::runtime::component::Component;
use crate::runtime::error::Leaving;
use crate::runtime::plan::{Manifest, Ownership};

fn owner(uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "crownlabs.polito.it/v1alpha2".into(),
        kind: "Instance".into(),
        name: "i".into(),
        uid: uid.into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

pub fn desired() -> Desired {
    Desired {
        kind: KindInfo { group: "apps", version: "v1", kind: "Deployment", plural: "deployments" },
        key: ObjectKey::new("ns", "i"),
        component: Component::environment("main"),
        wave: 0,
        is_guarded: false,
        manifest: None,
        labels: BTreeMap::from([("instance".into(), "i".into())]),
        annotations: BTreeMap::from([("set".into(), Some("1".into())), ("unset".into(), None)]),
        owner: owner("u1"),
        ownership: Ownership::Controlled,
        identity: BTreeMap::from([("instance".into(), Some("i".into())), ("tenant".into(), None)]),
        known_by: None,
        members: Vec::new(),
        fields: json!({"spec": {"replicas": 1}}),
    }
}

fn seen(metadata: Value, spec: &Value) -> Found {
    Found { metadata: serde_json::from_value(metadata).expect("metadata"), object: json!({"spec": spec}) }
}

fn whole() -> Value {
    json!({
        "name": "i", "namespace": "ns", "uid": "d1", "resourceVersion": "7",
        "labels": {"instance": "i", "theirs": "x"},
        "annotations": {"set": "1", "theirs": "x"},
        "ownerReferences": [owner("u1")],
    })
}

#[test]
fn no_patch_is_sent_if_nothing_differs() {
    assert_eq!(repair(&desired(), &seen(whole(), &json!({"replicas": 1, "paused": true}))), None);
}

#[test]
fn only_enforced_fields_that_differ_are_sent() {
    let mut metadata = whole();
    metadata["labels"] = json!({"instance": "edited", "theirs": "x"});
    metadata["annotations"] = json!({"unset": "y", "theirs": "x"});
    let (patch, exact) = repair(&desired(), &seen(metadata, &json!({"replicas": 3}))).expect("a repair");
    let wanted = json!({
        "metadata": {"labels": {"instance": "i"}, "annotations": {"set": "1", "unset": null}},
        "spec": {"replicas": 1},
    });
    assert_eq!(patch, wanted);
    assert!(!exact, "patches of map members do not depend on the version");
}

#[test]
fn a_lost_owner_is_restored_for_the_seen_version_and_others_are_kept() {
    let mut metadata = whole();
    let other = OwnerReference { controller: None, kind: "ConfigMap".into(), uid: "x".into(), ..owner("x") };
    metadata["ownerReferences"] = json!([other]);
    let (patch, exact) = repair(&desired(), &seen(metadata, &json!({"replicas": 1}))).expect("a repair");
    assert_eq!(patch, json!({"metadata": {"ownerReferences": [other, owner("u1")]}}));
    assert!(exact);
}

#[test]
fn an_unowned_object_keeps_its_owners() {
    let unowned = Desired { owner: OwnerReference::default(), ownership: Ownership::Unowned, ..desired() };
    let mut metadata = whole();
    // Its owner and its label assign it to another Instance.
    metadata["ownerReferences"] = json!([owner("u9")]);
    metadata["labels"] = json!({"instance": "i", "tenant": "eve"});
    assert_eq!(repair(&unowned, &seen(metadata.clone(), &json!({"replicas": 1}))), None);
    let found = needed(&unowned, &seen(metadata.clone(), &json!({"replicas": 3}))).expect("not foreign");
    assert_eq!(found.expect("a repair").patch, json!({"spec": {"replicas": 1}}));
    assert!(
        needed(&desired(), &seen(metadata, &json!({}))).is_err(),
        "otherwise it belongs to another Instance"
    );
}

#[test]
fn an_owner_that_no_longer_blocks_is_repaired() {
    let mut metadata = whole();
    let weak = OwnerReference { block_owner_deletion: None, ..owner("u1") };
    metadata["ownerReferences"] = json!([weak]);
    let (patch, _) = repair(&desired(), &seen(metadata, &json!({"replicas": 1}))).expect("a repair");
    assert_eq!(patch, json!({"metadata": {"ownerReferences": [owner("u1")]}}));
}

#[test]
fn an_object_that_is_being_deleted_must_be_gone_first() {
    let leaving = |metadata: &Value| match needed(&desired(), &seen(metadata.clone(), &json!({}))) {
        Err(ApiError::Leaving(leaving)) => *leaving,
        other => panic!("{other:?}"),
    };
    let mut metadata = whole();
    metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    metadata["finalizers"] = json!(["a.b/c"]);
    let own = Leaving {
        kind: "Deployment",
        key: ObjectKey::new("ns", "i"),
        former_owner: None,
        since: Some(time("2026-01-01T00:00:00Z")),
        finalizers: vec!["a.b/c".into()],
    };
    assert_eq!(leaving(&metadata), own);
    assert_eq!(own.to_string(), "Deployment i is being deleted and will be recreated");
    metadata["ownerReferences"] = json!([owner("u0")]);
    let left = Leaving { former_owner: Some("Instance".to_owned()), ..own };
    assert_eq!(leaving(&metadata), left);
    let message = "Deployment i of a deleted Instance of the same name is still being removed";
    assert_eq!(left.to_string(), message);
    metadata["deletionTimestamp"] = Value::Null;
    assert_eq!(leaving(&metadata).since, None, "the garbage collector has not deleted it yet");
}

#[test]
fn objects_of_other_owners_are_not_changed() {
    let of = |owners: Value, labels: Value| {
        let metadata = json!({"name": "i", "ownerReferences": owners, "labels": labels});
        let metadata: Metadata = serde_json::from_value(metadata).expect("metadata");
        let desired = desired();
        match owner_of(&metadata, &desired) {
            Owner::Us => "us".to_owned(),
            Owner::Predecessor => "predecessor".to_owned(),
            Owner::Foreign(message) => message,
        }
    };
    let mut foreign = owner("u9");
    foreign.name = "j".into();
    assert_eq!(of(json!([owner("u1")]), json!({})), "us", "even without its labels");
    assert_eq!(
        of(json!([owner("u0")]), json!({})),
        "predecessor",
        "a deleted object of the same name owned it"
    );
    assert_eq!(of(json!([foreign]), json!({"instance": "i"})), "belongs to Instance j");
    assert_eq!(of(json!([]), json!({"instance": "i"})), "us", "the owner reference was removed");
    assert_eq!(of(json!([]), json!({"other": "x"})), "us", "the labels were removed, too");
    for (key, value) in [("instance", "j"), ("tenant", "t")] {
        let message = of(json!([]), json!({key: value}));
        assert!(message.starts_with(&format!("has no owner, but its label {key} assigns it to {value}")));
    }
    // With an explicit rule.
    let metadata = |labels: Value| serde_json::from_value(json!({"labels": labels})).expect("metadata");
    let known_by = BTreeMap::from([("mine".to_owned(), "yes".to_owned())]);
    let desired = Desired { known_by: Some(known_by), ..desired() };
    assert!(matches!(owner_of(&metadata(json!({"mine": "yes"})), &desired), Owner::Us));
    assert!(matches!(owner_of(&metadata(json!({})), &desired), Owner::Foreign(_)));
}

#[test]
fn an_object_missing_in_the_store_is_repaired_at_once() {
    let kind = KindInfo { group: "rbac", version: "v1", kind: "RoleBinding", plural: "rolebindings" };
    let body = json!({"subjects": [{"name": "ada"}], "roleRef": {"name": "r"}, "spec": {"b": 2}});
    let desired = Desired {
        manifest: Some(Manifest::new(kind, &ObjectMeta::default(), &body)),
        members: vec!["subjects".into(), "roleRef".into(), "spec".into()],
        fields: Value::Null,
        ..desired()
    };
    let found =
        json!({"subjects": [{"name": "eve"}], "roleRef": {"name": "other"}, "spec": {"a": 1, "b": 2}});
    let wanted = json!({"subjects": [{"name": "ada"}], "spec": {"a": null}});
    assert_eq!(unseen_fields(&desired, &found), wanted);
    assert_eq!(unseen_fields(&desired, &body), json!({}));
    // Members that are set only at creation are left as they are, and the fields of the plan take precedence.
    let created = Desired { members: Vec::new(), ..desired.clone() };
    assert_eq!(unseen_fields(&created, &found), json!({}));
    let fields = json!({"spec": {"replicas": 1}});
    assert_eq!(unseen_fields(&Desired { fields: fields.clone(), ..desired }, &found), fields);
}

#[test]
fn an_invalid_name_never_becomes_part_of_a_path() {
    let secrets = KindInfo::of::<SecretKind>();
    assert_eq!(
        secrets.object_path(&ObjectKey::new("ns", "a.b")).as_deref(),
        Ok("/api/v1/namespaces/ns/secrets/a.b")
    );
    for (namespace, name) in [
        ("ns", "my vm"),
        ("ns", ""),
        ("ns", "../x"),
        ("ns", ".."),
        ("ns", "x?y"),
        ("ns", "x#y"),
        ("ns", "x%2Fy"),
        ("ns", "x/status"),
        ("a b", "x"),
        ("..", "x"),
        ("ns/secrets", "x"),
    ] {
        let error = secrets
            .object_path(&ObjectKey::new(namespace, name))
            .expect_err("the name is invalid")
            .to_string();
        assert!(
            error.starts_with("the API server rejected") && error.contains(" must "),
            "{namespace} {name}: {error}"
        );
    }
}

#[test]
fn the_log_never_shows_the_values_of_a_secret() {
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "data": {"key": "aGlkZGVu"}, "stringData": {"x": "hidden"}});
    let shown_of = |kind| shown(kind, &patch).to_string();
    let secret = shown_of(KindInfo::of::<SecretKind>());
    assert!(!secret.contains("hidden") && !secret.contains("aGlkZGVu"), "{secret}");
    assert!(secret.contains(r#""key":"***""#) && secret.contains(r#""a":"b""#), "{secret}");
    assert_eq!(shown_of(desired().kind), patch.to_string());
}

#[test]
fn only_a_component_and_its_parts_are_within_it() {
    use Component::{Part, Whole, Within};
    let ended = [Part("a"), Within("b", "c"), Component::environment("e")];
    for (component, expected) in [
        (Part("a"), true),
        (Within("a", "x"), true),
        (Within("b", "c"), true),
        (Part("b"), false),
        (Within("b", "d"), false),
        (Component::environment("e"), true),
        (Component::environment("a"), false),
        (Whole, false),
    ] {
        assert_eq!(is_within(&component, &ended), expected, "{component:?}");
        assert!(!is_within(&component, &[]) && !is_within(&component, &[Whole]) || component == Whole);
    }
}

#[test]
fn a_kept_object_loses_our_owner_reference_and_no_other() {
    let other = OwnerReference { controller: None, ..owner("u9") };
    for (owners, left) in [
        (vec![], None),
        (vec![&other], None),
        (vec![&other, &owner("u1")], Some(vec![&other])),
        (vec![&owner("u1")], Some(vec![])),
    ] {
        let kept = Desired { ownership: Ownership::Kept, ..desired() };
        let mut metadata = whole();
        metadata["ownerReferences"] = json!(owners);
        let repaired = repair(&kept, &seen(metadata, &json!({"replicas": 1}))).map(|(patch, _)| patch);
        assert_eq!(repaired, left.map(|left| json!({"metadata": {"ownerReferences": left}})), "{owners:?}");
    }
}

#[test]
fn a_long_value_of_a_secret_is_compared_by_digest_and_sent_whole() {
    let long = |letter: &str| letter.repeat(100_000);
    let kind = KindInfo::of::<SecretKind>();
    let fields = json!({"data": {"long": long("a"), "short": "b", "theirs": null}});
    let desired = Desired { kind, fields, ..desired() };
    let stored = |data: Value| {
        let object: Object<SecretKind> =
            serde_json::from_value(json!({"metadata": whole(), "data": data})).expect("a Secret");
        assert!(object.json().to_string().len() < 1000, "the whole value is not kept");
        repair(&desired, &object).map(|(patch, _)| patch)
    };
    assert_eq!(stored(json!({"long": long("a"), "short": "b"})), None);
    let changed = stored(json!({"long": long("x"), "short": "b"}));
    assert_eq!(changed, Some(json!({"data": {"long": long("a")}})));
    let joined = stored(json!({"long": long("a"), "short": "b", "theirs": long("x")})).expect("a repair");
    assert_eq!(joined["data"]["theirs"], Value::Null, "values added by others are removed");
    // An object that is read bypassing the store has whole values.
    let found = Found {
        metadata: serde_json::from_value(whole()).expect("metadata"),
        object: json!({"data": {"long": long("a"), "short": "b"}}),
    };
    assert_eq!(repair(&desired, &found), None);
}
