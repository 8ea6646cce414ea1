//! Tests of the parts of an object that count as changes, and of look-ups.

use serde_json::json;

use super::*;
use crate::api::instance::InstanceKind;
use crate::kinds::NamespaceKind;

#[test]
fn every_difference_except_the_version_is_a_change() {
    let base = json!({
        "metadata": {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "1", "generation": 1},
        "spec": {"clusterIP": "x"},
    });
    for (part, is_change) in [
        (json!({}), false),
        (json!({"spec": {"clusterIP": "y"}}), true),
        (json!({"metadata": {"labels": {"a": "b"}}}), true),
        (json!({"metadata": {"annotations": {"a": "b"}}}), true),
        (
            json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "2"}]}}),
            true,
        ),
        (json!({"metadata": {"finalizers": ["a/b"]}}), true),
        (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), true),
        (json!({"metadata": {"generation": 2}}), true),
        (json!({"metadata": {"uid": "2"}}), true),
    ] {
        let (store, log) = recorded();
        let object = |part: &serde_json::Value| -> Service {
            let mut object = base.clone();
            crate::runtime::merge::apply(&mut object, part);
            serde_json::from_value(object).expect("a Service")
        };
        store.begin_list();
        store.list_object(object(&json!({})));
        store.end_list();
        drain(&log);
        let mut changed = part.clone();
        changed["metadata"]["resourceVersion"] = "2".into();
        store.apply_event(object(&changed));
        assert_eq!(drain(&log).is_empty(), !is_change, "{part}");
    }
}

#[test]
fn the_status_and_a_malformed_spec_of_an_instance_are_changes() {
    let store: Arc<Store<InstanceKind>> = Arc::new(Store::new(false));
    let count = Arc::new(Mutex::new(0));
    let sink = Arc::clone(&count);
    store.subscribe(move |_| *sink.lock().expect("no panic") += 1);
    store.begin_list();
    store.end_list();
    for (version, part, expected) in [
        (1, json!({}), 1),
        (2, json!({}), 1),
        (3, json!({"status": {"phase": "Ready"}}), 2),
        (4, json!({"status": {"phase": "Ready"}, "spec": {"running": "yes"}}), 3),
    ] {
        let mut object = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": version.to_string()}});
        crate::runtime::merge::apply(&mut object, &part);
        store.apply_event(serde_json::from_value(object).expect("an Instance"));
        assert_eq!(*count.lock().expect("no panic"), expected, "{part}");
    }
}

#[test]
fn versions_that_are_not_numbers_count_as_later_if_they_differ() {
    let (store, log) = recorded();
    let other = |version: &str, ip: &str| {
        let mut object = service("a", "1", 0, ip);
        object.metadata.resource_version = Some(ResourceVersion::Other(version.into()));
        object
    };
    store.apply_event(other("x", "one"));
    store.apply_event(other("b", "two"));
    assert_eq!(drain(&log), ["+a", "~a"]);
    store.apply_event(other("b", "three"));
    assert_eq!(drain(&log), Vec::<String>::new(), "the same version");
}

#[test]
fn objects_are_found_by_name_namespace_and_controller() {
    let (store, _) = recorded();
    for (name, uid) in [("a", "u1"), ("b", "u2"), ("c", "u1")] {
        let owners = json!([
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true},
            {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u9"},
        ]);
        let metadata = json!({"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "ownerReferences": owners});
        store.apply_event(
            serde_json::from_value(json!({"metadata": metadata, "spec": {}})).expect("a Service"),
        );
    }
    // An index that is registered later contains the existing objects.
    store.index::<ByController>();
    store.index::<ByNamespace>();
    store.index::<ByController>();
    store.apply_event(service("d", "d", 1, "x"));
    let names = |keys: Vec<ObjectKey>| keys.iter().map(|key| key.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(store.keys_by::<ByController>("u1")), ["a", "c"]);
    assert_eq!(names(store.keys_by::<ByController>("u9")), Vec::<String>::new());
    assert_eq!(names(store.keys_by::<ByNamespace>("ns")), ["a", "b", "c", "d"]);
    let found = store
        .find_by::<ByController, _>("u1", |object| (object.name() != "a").then(|| object.name().to_owned()));
    assert_eq!(found.as_deref(), Some("c"));
    let mut all = names(store.keys());
    all.sort();
    assert_eq!(all, ["a", "b", "c", "d"]);
    // An index follows changes of an object's keys.
    let owned = json!({"name": "a", "namespace": "ns", "uid": "a", "resourceVersion": "2"});
    store.apply_event(serde_json::from_value(json!({"metadata": owned, "spec": {}})).expect("a Service"));
    assert_eq!(names(store.keys_by::<ByController>("u1")), ["c"]);
}

#[test]
fn an_object_is_returned_if_the_part_has_changed() {
    let (old, new) = (Arc::new(service("a", "1", 1, "x")), Arc::new(service("a", "1", 2, "y")));
    let change = |old: Option<&Arc<Service>>, new: Option<&Arc<Service>>| Change::<ServiceKind> {
        old: old.cloned(),
        new: new.cloned(),
        origin: None,
    };
    let ip =
        |change: &Change<ServiceKind>| change.object_if(|object| object.spec.cluster_ip.clone()).is_some();
    assert!(
        ip(&change(Some(&old), Some(&new))) && ip(&change(None, Some(&new))) && ip(&change(Some(&old), None))
    );
    assert!(!ip(&change(Some(&old), Some(&old))));
    assert!(change(Some(&old), Some(&new)).object_if(|object| object.uid().to_owned()).is_none());
}

#[test]
fn a_store_reports_its_scope_and_its_state() {
    let (all, some) = (Store::<ServiceKind>::new(true), Store::<ServiceKind>::new(false));
    assert!(all.is_whole() && !some.is_whole());
    assert_eq!(all.state(), StoreState::Syncing);
    all.mark_missing();
    assert_eq!(all.state(), StoreState::Missing);
    all.begin_list();
    all.end_list();
    assert_eq!(all.state(), StoreState::Synced);
}

#[test]
fn written_stores_take_responses_and_lists() {
    use crate::runtime::plan::KindInfo;
    use crate::runtime::watch::Selection;

    let kind = KindInfo::of::<ServiceKind>();
    let (store, log) = recorded();
    let mut written = WrittenStores::default();
    assert!(written.get(kind).is_err(), "not declared");
    written.add(&store, &Selection::label("a", "b"));
    let list = |path: &str, query: &str| (path.to_owned(), query.to_owned());
    assert_eq!(written.list(kind), list("/api/v1/services", "labelSelector=a%3Db"));
    let mut within = WrittenStores::default();
    within.add(&store, &Selection::labelled("a").within("ns"));
    assert_eq!(within.list(kind), list("/api/v1/namespaces/ns/services", "labelSelector=a"));
    let untyped = Arc::clone(written.get(kind).expect("declared"));
    assert_eq!(untyped.is_whole(), store.is_whole());
    let whole: Arc<dyn AnyStore> = Arc::new(Store::<ServiceKind>::new(true));
    assert!(whole.is_whole());
    let list = |names: &[&str]| {
        untyped.begin_list();
        for name in names {
            let metadata = json!({"name": name, "namespace": "ns", "uid": *name, "resourceVersion": "1"});
            untyped
                .take_listed(json!({"metadata": metadata, "spec": {"clusterIP": "x"}}).to_string().as_bytes())
                .expect("a Service");
        }
        untyped.end_list();
    };
    list(&["a", "b"]);
    assert_eq!((drain(&log), store.state()), (vec!["+a".to_owned(), "+b".to_owned()], StoreState::Synced));
    let seen = untyped.seen(&ObjectKey::new("ns", "a")).expect("listed");
    assert_eq!((&*seen.metadata().uid, &seen.json()["spec"]["clusterIP"]), ("a", &json!("x")));
    list(&["b"]);
    assert_eq!(drain(&log), ["-a"]);
    untyped.record_deletion(&ObjectKey::new("ns", "b"), "b", "loop");
    assert_eq!(drain(&log), ["-b!"]);
    assert!(untyped.seen(&ObjectKey::new("ns", "b")).is_none());
}

#[test]
fn two_loops_share_the_store_of_one_selection() {
    let mut factory = StoreFactory::default();
    let all = Selection::ALL;
    let (one, labelled) = (factory.store::<ServiceKind>(&all), Selection::labelled("a"));
    assert!(Arc::ptr_eq(&one, &factory.store(&all)));
    assert!(!Arc::ptr_eq(&one, &factory.store(&labelled)));
    let namespaces = factory.store::<NamespaceKind>(&all);
    assert!(one.is_whole() && namespaces.is_whole() && !factory.store::<ServiceKind>(&labelled).is_whole());
    let object = json!({"kind": "Service", "metadata": {"name": "s", "namespace": "ns", "resourceVersion": "1"}, "spec": {}});
    assert!(factory.offer(&object).expect("a Service"));
    assert_eq!((one.keys().len(), namespaces.keys().len()), (1, 0));
    assert!(!factory.offer(&json!({"kind": "Pod", "metadata": {"name": "p"}})).expect("no store reads it"));
    factory.end_lists();
    assert_eq!(one.state(), StoreState::Synced);
}
