//! Tests of the content of a store, its notifications, and the order of versions.

mod parts;

use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::api::meta::ResourceVersion;
use crate::kinds::{
    ClusterRoleKind, JobKind, NetworkPolicyKind, NfsClaimKind, Service, ServiceKind, ServiceSpec,
};
use crate::runtime::watch::Selection;

fn service(name: &str, uid: &str, version: u64, ip: &str) -> Service {
    let mut object = Service::new(Some("ns"), name, ServiceSpec { cluster_ip: Some(ip.to_owned()) });
    object.metadata.uid = uid.into();
    object.metadata.resource_version = Some(ResourceVersion::Number(version));
    object
}

/// Objects by their uid.
struct ByUid;

impl<T: Kind> Index<T> for ByUid {
    type Key = String;

    fn keys(object: &Object<T>) -> Vec<String> {
        vec![object.uid().to_owned()]
    }
}

/// Returns a store and the log of its changes: `+name`, `~name`, `-name`, with `!` for our own writes.
fn recorded() -> (Arc<Store<ServiceKind>>, Arc<Mutex<Vec<String>>>) {
    let store = Arc::new(Store::new(false));
    store.index::<ByUid>();
    let log = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&log);
    store.subscribe(move |change: &Change<ServiceKind>| {
        let sign = match (&change.old, &change.new) {
            (None, Some(_)) => "+",
            (Some(_), Some(_)) => "~",
            _ => "-",
        };
        let name = change.object().map(|object| object.name().to_owned()).unwrap_or_default();
        let own = if change.origin.is_some() { "!" } else { "" };
        sink.lock().expect("no panic").push(format!("{sign}{name}{own}"));
    });
    (store, log)
}

fn drain(log: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *log.lock().expect("no panic"))
}

#[test]
fn the_event_of_our_own_write_changes_nothing() {
    let (store, log) = recorded();
    store.begin_list();
    store.end_list();
    store.record(service("a", "1", 5, "x"), "loop");
    assert_eq!(drain(&log), ["+a!"]);
    store.apply_event(service("a", "1", 5, "x"));
    assert_eq!(drain(&log), Vec::<String>::new());
    store.apply_event(service("a", "1", 4, "old"));
    assert_eq!(store.get("ns", "a").expect("kept").spec.cluster_ip.as_deref(), Some("x"), "an older event");
    store.apply_event(service("a", "1", 6, "x"));
    assert_eq!(drain(&log), Vec::<String>::new(), "only the version differs");
    assert_eq!(
        store.get("ns", "a").expect("kept").metadata.resource_version,
        Some(ResourceVersion::Number(6))
    );
    store.apply_event(service("a", "1", 7, "y"));
    assert_eq!(drain(&log), ["~a"]);
}

#[test]
fn versions_are_compared_as_numbers() {
    let (store, _) = recorded();
    store.apply_event(service("a", "1", 9, "x"));
    store.apply_event(service("a", "1", 10, "y"));
    assert_eq!(store.get("ns", "a").expect("kept").spec.cluster_ip.as_deref(), Some("y"));
}

#[test]
fn a_late_event_does_not_restore_an_object_that_we_deleted() {
    let (store, log) = recorded();
    store.apply_event(service("a", "1", 5, "x"));
    store.record_deletion(&ObjectKey::new("ns", "a"), "1", "loop");
    store.apply_event(service("a", "1", 6, "z"));
    assert!(store.get("ns", "a").is_none());
    store.delete_event(&service("a", "1", 7, "z"));
    assert_eq!(drain(&log), ["+a", "-a!"]);
    // A new object with the same name is a different object.
    store.apply_event(service("a", "2", 8, "n"));
    assert_eq!(drain(&log), ["+a"]);
    store.delete_event(&service("a", "1", 7, "z"));
    assert!(store.get("ns", "a").is_some(), "the event was about its predecessor");
}

#[test]
fn a_late_response_does_not_restore_an_object_that_the_watch_showed_deleted() {
    let (store, log) = recorded();
    store.apply_event(service("a", "1", 5, "x"));
    // Our patch removes the last finalizer. The response and the event of the deletion arrive in any order.
    store.delete_event(&service("a", "1", 7, "x"));
    store.record(service("a", "1", 6, "y"), "loop");
    store.record(service("a", "1", 7, "y"), "loop");
    assert!(store.get("ns", "a").is_none());
    assert_eq!(drain(&log), ["+a", "-a"]);
    // The watch has not shown the new object yet.
    store.record(service("a", "2", 8, "z"), "loop");
    assert_eq!(drain(&log), ["+a!"]);
    // A list removes it, at a version that no event shows.
    store.begin_list();
    store.end_list();
    store.record(service("a", "2", 9, "z"), "loop");
    assert_eq!(drain(&log), ["-a"]);
}

#[test]
fn a_list_removes_objects_that_it_does_not_contain() {
    let (store, log) = recorded();
    store.begin_list();
    store.list_object(service("a", "1", 1, "x"));
    store.list_object(service("b", "2", 2, "x"));
    store.end_list();
    drain(&log);
    store.begin_list();
    store.list_object(service("b", "2", 2, "x"));
    store.record(service("c", "3", 9, "x"), "loop"); // made while the list was under way
    assert!(store.get("ns", "a").is_some(), "nothing is removed before the list ends");
    store.end_list();
    assert_eq!(drain(&log), ["+c!", "-a"]);
    assert!(store.get("ns", "c").is_some());
    assert_eq!(store.state(), StoreState::Synced);
}

#[test]
fn a_list_replaces_newer_versions_from_before_it() {
    let (store, log) = recorded();
    let ip = |name: &str| store.get("ns", name).and_then(|object| object.spec.cluster_ip.clone());
    store.begin_list();
    store.list_object(service("a", "1", 50, "x"));
    store.end_list();
    store.record(service("a", "1", 70, "y"), "loop");
    store.record(service("b", "2", 80, "x"), "loop");
    store.apply_event(service("c", "3", 90, "x"));
    store.record_deletion(&ObjectKey::new("ns", "c"), "3", "loop");
    drain(&log);
    // etcd is restored from a backup: `a` is older, `b` did not exist yet, `c` exists again.
    store.begin_list();
    store.list_object(service("a", "1", 40, "w"));
    store.list_object(service("c", "3", 45, "x"));
    store.end_list();
    assert_eq!(drain(&log), ["~a", "+c", "-b"]);
    assert_eq!((ip("a").as_deref(), ip("c").as_deref()), (Some("w"), Some("x")));
    // From then on the versions of the restored cluster count, also for our own writes.
    store.record(service("a", "1", 46, "z"), "loop");
    store.record(service("d", "4", 47, "n"), "loop");
    store.apply_event(service("a", "1", 48, "q"));
    assert_eq!(drain(&log), ["~a!", "+d!", "~a"]);
}

#[test]
fn a_list_does_not_replace_our_writes_during_it() {
    let (store, log) = recorded();
    store.begin_list();
    store.list_object(service("a", "1", 5, "x"));
    store.list_object(service("b", "2", 6, "x"));
    store.end_list();
    drain(&log);
    store.begin_list();
    store.record(service("a", "1", 8, "y"), "loop");
    store.record_deletion(&ObjectKey::new("ns", "b"), "2", "loop");
    store.list_object(service("a", "1", 5, "x"));
    store.list_object(service("b", "2", 6, "x"));
    store.end_list();
    // An event from before the deletion.
    store.apply_event(service("b", "2", 7, "z"));
    assert_eq!(drain(&log), ["~a!", "-b!"]);
    assert_eq!(store.get("ns", "a").expect("kept").spec.cluster_ip.as_deref(), Some("y"));
}

#[test]
fn the_index_follows_the_objects() {
    let (store, _) = recorded();
    store.apply_event(service("b", "1", 1, "x"));
    store.apply_event(service("a", "1", 2, "x"));
    let names: Vec<_> =
        store.by::<ByUid>(&"1".to_owned()).iter().map(|object| object.name().to_owned()).collect();
    assert_eq!(names, ["a", "b"]);
    store.apply_event(service("a", "2", 3, "x"));
    assert_eq!(store.by::<ByUid>(&"1".to_owned()).len(), 1);
    assert_eq!(store.by::<ByUid>(&"2".to_owned()).len(), 1);
    store.delete_event(&service("b", "1", 4, "x"));
    assert!(store.by::<ByUid>(&"1".to_owned()).is_empty());
}

#[test]
fn an_object_kept_as_text_is_returned_unchanged() {
    fn kept<T: Kind>(json: serde_json::Value) -> Arc<Object<T>> {
        assert!(T::ENCODED, "{} is kept as text", T::KIND);
        let object: Object<T> = serde_json::from_value(json).expect("an object");
        let store = Store::<T>::new(false);
        store.index::<ByUid>();
        store.apply_event(object.clone());
        let back = store.get(object.namespace(), object.name()).expect("kept");
        assert_eq!(*back, object);
        assert_eq!(store.by::<ByUid>(object.uid()), [Arc::clone(&back)]);
        back
    }
    let metadata = serde_json::json!({
        "name": "näme", "namespace": "ns", "uid": "1", "resourceVersion": "5", "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
        "labels": {"a.example.org/b": "c"}, "annotations": {"note": "two\nlines, \"quoted\" \\"},
        "finalizers": ["a/b"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "b", "uid": "2", "controller": true}],
    });
    let body = |name: &str, body: serde_json::Value| {
        let mut object = serde_json::json!({"metadata": metadata});
        object[name] = body;
        object
    };
    let whole = kept::<NetworkPolicyKind>(body(
        "spec",
        serde_json::json!({"podSelector": {}, "ingress": [{"from": [{"podSelector": {"a": null}}]}]}),
    ));
    assert_eq!(whole.metadata.labels.iter().count(), 1);
    // The fields of a role are at the top level, not in a spec.
    kept::<ClusterRoleKind>(body("rules", serde_json::json!([{"verbs": ["get"], "resourceNames": ["a"]}])));
    let mut claim = body("status", serde_json::json!({"phase": "Bound"}));
    claim["spec"] = serde_json::json!({"volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}});
    kept::<NfsClaimKind>(claim);
    let failed = serde_json::json!({"conditions": [{"type": "Failed", "status": "True", "message": "why"}]});
    kept::<JobKind>(body("status", failed));
    // A decoding error is kept, too.
    let odd = kept::<NfsClaimKind>(body("spec", serde_json::json!({"resources": 5})));
    assert!(odd.malformed.is_some());
}

#[test]
fn a_response_about_another_object_changes_nothing() {
    let (store, log) = recorded();
    let answer = |kind: &str, namespace: &str, name: &str| {
        serde_json::json!({"kind": kind, "metadata": {
            "namespace": namespace, "name": name, "uid": "u1", "resourceVersion": "1",
        }})
        .to_string()
    };
    let asked = ObjectKey::new("ns", "a");
    for wrong in [
        answer("Service", "ns", "b"),
        answer("Service", "other", "a"),
        answer("Secret", "ns", "a"),
        answer("ServiceList", "ns", "a"),
        "{}".to_owned(),
    ] {
        let error =
            AnyStore::record(&*store, &asked, wrong.as_bytes(), "test").expect_err(&wrong).to_string();
        assert!(error.contains("the request was about Service ns/a"), "{error}");
    }
    assert!(log.lock().expect("a log").is_empty());
    AnyStore::record(&*store, &asked, answer("Service", "ns", "a").as_bytes(), "test").expect("recorded");
    assert!(store.get("ns", "a").is_some());
}

#[test]
fn a_check_compares_an_object_and_updates_the_store() {
    use crate::kinds::{Deployment, DeploymentKind};
    let store = Store::<DeploymentKind>::new(false);
    let object = |version: u32, uid: &str, replicas: u32, note: &str, ready: u32| {
        let metadata = serde_json::json!({
            "name": "a", "namespace": "ns", "uid": uid, "resourceVersion": version.to_string(), "annotations": {"n": note},
        });
        serde_json::json!({
            "metadata": metadata, "spec": {"replicas": replicas}, "status": {"readyReplicas": ready},
        })
    };
    let confirm = |likeness, item: serde_json::Value| {
        store.confirm(item.to_string().as_bytes(), likeness, "check").expect("a valid object")
    };
    let has = || store.get("ns", "a").and_then(|found: Arc<Deployment>| found.spec.replicas);
    assert!(!confirm(Likeness::Existence, object(5, "1", 1, "x", 0)), "the store did not have it");
    assert_eq!(has(), Some(1), "now it does");
    for (likeness, item, expected) in [
        (Likeness::Existence, object(6, "1", 2, "y", 1), true),
        (Likeness::Existence, object(6, "2", 1, "x", 0), false),
        (Likeness::Spec, object(7, "2", 1, "y", 1), true),
        (Likeness::Metadata, object(7, "2", 1, "x", 1), true),
        (Likeness::Metadata, object(8, "2", 1, "y", 1), false),
        (Likeness::Spec, object(9, "2", 2, "y", 1), false),
        (Likeness::Spec, object(9, "2", 2, "y", 1), true),
    ] {
        assert_eq!(confirm(likeness, item.clone()), expected, "{likeness:?} {item}");
    }
    let nothing = store.confirm(b"{}", Likeness::Existence, "check").expect_err("not an object");
    assert!(nothing.to_string().contains("not a list of deployments"), "{nothing}");
}

#[test]
fn a_response_about_an_unselected_object_is_not_kept() {
    let store = StoreFactory::default().store::<ServiceKind>(&Selection::label("managed-by", "instance"));
    let answer = |version: u64, label: &str| -> Service {
        let metadata = json!({"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": version.to_string(),
            "labels": {"managed-by": label}});
        serde_json::from_value(json!({"metadata": metadata})).expect("a Service")
    };
    store.begin_list();
    store.end_list();
    store.record(answer(5, "instance"), "loop");
    assert!(store.get("ns", "a").is_some());
    // A user has removed the label before our write. Nothing follows the response to that write.
    store.record(answer(7, "somebody"), "loop");
    assert!(store.get("ns", "a").is_none());
    // The same if the watch shows the removal before the response arrives.
    store.record(answer(8, "instance"), "loop");
    store.delete_event(&answer(9, "instance"));
    store.record(answer(10, "somebody"), "loop");
    assert!(store.get("ns", "a").is_none());
    store.record(answer(11, "instance"), "loop");
    assert!(store.get("ns", "a").is_some(), "it has the label again");
}
