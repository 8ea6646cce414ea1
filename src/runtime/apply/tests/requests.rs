//! Tests of the engine's requests to the API server, and of the responses' effects.

use std::sync::Arc;

use super::*;
use crate::kinds::{Deployment, DeploymentKind, DeploymentStatus, Secret, SecretKind, Service, ServiceKind};
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::plan::Removal;
use crate::runtime::store::{AnyStore, Store};
use crate::runtime::watch::Selection;

const PATH: &str = "/api/v1/namespaces/ns/services";

/// A Service that belongs to the owner of [`desired`].
fn service(name: &str, version: u32, ip: &str) -> Value {
    json!({
        "kind": "Service", "apiVersion": "v1", "spec": {"clusterIP": ip},
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
            "ownerReferences": [owner("u1")],
        },
    })
}

/// The name of the object in the body of a request.
fn name_in(asked: &Asked) -> String {
    asked.body["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// Responses of an API server that accepts every request.
fn accept(asked: &Asked) -> (u16, Value) {
    match asked.line.split(' ').next() {
        Some("POST") => (201, service(&name_in(asked), 9, "1")),
        Some("DELETE") => (200, json!({"kind": "Status", "status": "Success"})),
        _ => (200, service(asked.name(), 9, "1")),
    }
}

/// Creates an engine, and its store of Services.
fn engine(api: &ApiServer, known: &[Value], is_whole: bool) -> (Engine, Arc<Store<ServiceKind>>) {
    let store = Arc::new(Store::new(is_whole));
    store.begin_list();
    for object in known {
        store.list_object(seen_service(object));
    }
    store.end_list();
    let mut stores = WrittenStores::default();
    stores.add::<ServiceKind>(&store, &Selection::ALL);
    (Engine::new(api.writer(), stores, "tests"), store)
}

fn seen_service(object: &Value) -> Service {
    serde_json::from_value(object.clone()).expect("a Service")
}

/// A Service that must exist.
fn wanted(name: &str, component: Component, wave: u8) -> Desired {
    let kind = KindInfo::of::<ServiceKind>();
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Desired {
        kind,
        key: ObjectKey::new("ns", name),
        component,
        wave,
        manifest: Some(Manifest::new(kind, &metadata, &json!({"spec": {"clusterIP": "1"}}))),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        identity: BTreeMap::new(),
        fields: Value::Null,
        ..desired()
    }
}

async fn applied(engine: &Engine, plan: &Plan) -> Applied {
    let owner = Precondition::Within(KindInfo::of::<ServiceKind>(), "ns".to_owned());
    engine.apply(plan, &owner, |_| true).await
}

#[tokio::test]
async fn the_result_says_whether_anything_was_written() {
    let api = ApiServer::start(accept).await;
    let known = service("known", 1, "1");
    let patches = || vec![ObjectPatch::exactly(&seen_service(&known), json!({"spec": {"clusterIP": "2"}}))];
    let remove = || vec![Removal::of(&seen_service(&known), Component::Whole)];
    let ensure =
        |names: &[&str]| (0..).zip(names).map(|(wave, name)| wanted(name, Component::Whole, wave)).collect();
    let none = Plan::default;
    for (plan, is_written) in [
        (none(), false),
        (Plan { patches: patches(), ..none() }, true),
        (Plan { remove: remove(), ..none() }, true),
        (Plan { patches: patches(), remove: remove(), ..none() }, true),
        (Plan { ensure: ensure(&["known"]), ..none() }, false),
        (Plan { ensure: ensure(&["new"]), ..none() }, true),
        (Plan { ensure: ensure(&["known", "new"]), ..none() }, true),
        (Plan { ensure: ensure(&["new", "known"]), ..none() }, true),
    ] {
        let (engine, _) = engine(&api, std::slice::from_ref(&known), true);
        let applied = applied(&engine, &plan).await;
        assert_eq!(applied.failures, [], "{plan:?}");
        assert_eq!((applied.is_written, applied.is_incomplete), (is_written, false), "{plan:?}");
        assert_eq!(!api.asked().is_empty(), is_written, "{plan:?}");
    }
}

#[tokio::test]
async fn a_guarded_object_is_not_created_after_any_failure_of_its_component() {
    let api = ApiServer::start(accept).await;
    let (engine, _) = engine(&api, &[], true);
    // The store has no object with this name, and the plan does not say how to create it.
    let failing = Desired { manifest: None, ..wanted("guard", Component::Part("a"), 0) };
    let of = |name: &str, component, is_guarded| Desired {
        is_guarded,
        ..wanted(name, Component::Part(component), 1)
    };
    let ensure = vec![failing, of("guarded", "a", true), of("free", "a", false), of("other", "b", true)];
    let applied = applied(&engine, &Plan { ensure, ..Plan::default() }).await;
    let mut made: Vec<String> = api.asked().iter().map(name_in).collect();
    made.sort();
    assert_eq!(made, ["free", "other"]);
    assert_eq!(applied.failures.len(), 1, "{:?}", applied.failures);
}

#[tokio::test]
async fn a_name_conflict_ends_its_component_or_the_plan() {
    let api = ApiServer::start(accept).await;
    let ours = service("a-1", 1, "1");
    let mut foreign = ours.clone();
    foreign["metadata"]["ownerReferences"] = json!([OwnerReference { name: "j".into(), ..owner("u9") }]);
    let ensure = [("a-1", "a", 0), ("a-2", "a", 1), ("b-1", "b", 1), ("b-2", "b", 2)];
    let ensure = ensure.map(|(name, component, wave)| wanted(name, Component::Part(component), wave));
    for (known, stop_at_failure, expected) in [
        (&foreign, false, ["b-1", "b-2"].as_slice()),
        (&foreign, true, &[]),
        (&ours, false, &["a-2", "b-1", "b-2"]),
        (&ours, true, &["a-2", "b-1", "b-2"]),
    ] {
        let (engine, _) = engine(&api, std::slice::from_ref(known), true);
        let plan = Plan { ensure: ensure.to_vec(), stop_at_failure, ..Plan::default() };
        let applied = applied(&engine, &plan).await;
        let mut made: Vec<String> = api.asked().iter().map(name_in).collect();
        // The writes of one wave are concurrent.
        made.sort();
        assert_eq!(made, expected, "{stop_at_failure}");
        assert_eq!(applied.failures.len(), usize::from(*known == foreign), "{:?}", applied.failures);
    }
}

#[tokio::test]
async fn an_object_missing_in_the_store_is_adopted_unless_the_store_holds_all() {
    let api = ApiServer::start(|asked| match asked.line.split(' ').next() {
        Some("POST") => refused(409, "AlreadyExists", "services \"a\" already exists"),
        Some("GET") => (200, service("a", 5, "7")),
        _ => accept(asked),
    })
    .await;
    let desired = Desired { members: vec!["spec".to_owned()], ..wanted("a", Component::Whole, 0) };
    let plan = Plan { ensure: vec![desired], ..Plan::default() };
    let (selecting, store) = engine(&api, &[], false);
    let adopted = applied(&selecting, &plan).await;
    assert_eq!(adopted.failures, []);
    assert!(adopted.is_written && adopted.is_incomplete, "the next plan knows the object");
    let asked = api.asked();
    assert!(asked[1].is(&format!("GET {PATH}/a")) && asked[2].is(&format!("PATCH {PATH}/a?")), "{asked:?}");
    assert_eq!(asked[2].body, json!({"spec": {"clusterIP": "1"}, "metadata": {"uid": "uid-a"}}));
    assert!(store.get("ns", "a").is_some());
    // The watch of all objects will show it.
    let (whole, _) = engine(&api, &[], true);
    let late = applied(&whole, &plan).await;
    assert!(!late.is_incomplete, "{late:?}");
    assert!(late.failures[0].error.to_string().contains("the watch lags behind"), "{late:?}");
    assert_eq!(api.asked().len(), 1);
}

#[tokio::test]
async fn a_status_is_patched_with_the_fields_that_differ() {
    let answer = json!({
        "kind": "Deployment", "status": {"readyReplicas": 3},
        "metadata": {"name": "d", "namespace": "ns", "uid": "u", "resourceVersion": "8"},
    });
    let api = ApiServer::start(move |_| (200, answer.clone())).await;
    let store = Arc::new(Store::<DeploymentKind>::new(true));
    let mut stores = WrittenStores::default();
    stores.add(&store, &Selection::ALL);
    let engine = Engine::new(api.writer(), stores, "tests");
    let status = |ready_replicas| DeploymentStatus { ready_replicas, ..DeploymentStatus::default() };
    let object = |ready_replicas| {
        let metadata = json!({"name": "d", "namespace": "ns", "uid": "u", "resourceVersion": "7"});
        let object: Deployment = serde_json::from_value(json!({"metadata": metadata})).expect("a Deployment");
        Deployment { status: status(ready_replicas), ..object }
    };
    for (old, new, patch) in [
        (None, None, None),
        (Some(2), Some(2), None),
        // The first patch contains the whole status.
        (None, Some(3), Some(json!({"readyReplicas": 3, "conditions": []}))),
        (Some(2), Some(3), Some(json!({"readyReplicas": 3}))),
    ] {
        let is_written = engine.publish(&object(old), &status(new)).await;
        assert_eq!(is_written, Ok(patch.is_some()), "{old:?} {new:?}");
        let expected = patch.map(|patch| Asked {
            line: "PATCH /apis/apps/v1/namespaces/ns/deployments/d/status?fieldManager=crownlabs".to_owned(),
            body: json!({"status": patch, "metadata": {"uid": "u", "resourceVersion": "7"}}),
        });
        assert_eq!(api.asked(), Vec::from_iter(expected), "{old:?} {new:?}");
    }
    assert_eq!(store.get("ns", "d").and_then(|seen| seen.status.ready_replicas), Some(3));
}

#[tokio::test]
async fn objects_that_are_read_update_the_store() {
    let list = |name: &str, next: &str| {
        (200, json!({"items": [service(name, 6, "2")], "metadata": {"continue": next}}))
    };
    let api = ApiServer::start(move |asked| match asked.name() {
        "gone" => refused(404, "NotFound", "services \"gone\" not found"),
        "services" if asked.line.contains("continue=more") => list("b", ""),
        "services" => list("a", "more"),
        name => (200, service(name, 6, "2")),
    })
    .await;
    let known = ["a", "b", "gone"].map(|name| service(name, 5, "1"));
    let kind = KindInfo::of::<ServiceKind>();
    let ips = |store: &Store<ServiceKind>| -> Vec<String> {
        let found = ["a", "b", "gone"].iter().filter_map(|name| store.get("ns", name));
        found
            .map(|found| format!("{} {}", found.name(), found.spec.cluster_ip.as_deref().unwrap_or("")))
            .collect()
    };
    let (one, store) = engine(&api, &known, true);
    for name in ["a", "gone", "no name"] {
        one.refresh(kind, &ObjectKey::new("ns", name)).await.expect("read");
    }
    assert_eq!(ips(&store), ["a 2", "b 1"]);
    assert_eq!(api.lines(), ["a", "gone"].map(|name| format!("GET {PATH}/{name}")));
    let (all, store) = engine(&api, &known, true);
    all.read_all(kind, &Selection::ALL).await.expect("read");
    assert_eq!(ips(&store), ["a 2", "b 2"]);
    assert_eq!(api.asked().len(), 2, "two pages");
}

#[tokio::test]
async fn a_missing_object_fails_its_precondition() {
    let api = ApiServer::start(|asked| {
        let is_there = asked.line.contains("metadata.name=a");
        (200, json!({"items": Vec::from_iter(is_there.then(|| service("a", 5, "1")))}))
    })
    .await;
    let (engine, _) = engine(&api, &["a", "gone"].map(|name| service(name, 5, "1")), true);
    let kind = KindInfo::of::<ServiceKind>();
    let object = |name: &str| Precondition::Object(kind, ObjectKey::new("ns", name));
    assert_eq!(engine.check(&object("a")).await, Ok(()));
    let gone = engine.check(&object("gone")).await;
    assert!(matches!(gone, Err(ApiError::Stale(_))), "{gone:?}");
    let nothing_came = engine.check(&Precondition::Within(kind, "ns".to_owned())).await;
    assert_eq!(nothing_came, Ok(()));
}

#[tokio::test]
async fn a_namespace_with_an_object_that_arrived_after_the_plan_is_not_empty() {
    let api = ApiServer::start(|_| (200, json!({"items": [service("a", 5, "1")]}))).await;
    // The store has it by now, too.
    let (engine, _) = engine(&api, &[service("a", 5, "1")], true);
    let kind = KindInfo::of::<ServiceKind>();
    let found = engine.check(&Precondition::NoneWithin(kind, "ns".to_owned())).await;
    assert!(matches!(found, Err(ApiError::Stale(_))), "{found:?}");
}

#[tokio::test]
async fn a_preview_never_shows_the_values_of_a_secret() {
    let api = ApiServer::start(accept).await;
    let secret = |name: &str| json!({"metadata": {"name": name, "namespace": "ns", "uid": "s", "resourceVersion": "1"}, "data": {"k": "aGlkZGVu"}});
    let there: Secret = serde_json::from_value(secret("there")).expect("a Secret");
    let store = Arc::new(Store::new(true));
    store.begin_list();
    store.list_object(there.clone());
    store.end_list();
    let mut stores = WrittenStores::default();
    stores.add::<SecretKind>(&store, &Selection::ALL);
    let engine = Engine::new(api.writer(), stores, "tests");
    let kind = KindInfo::of::<SecretKind>();
    let metadata = ObjectMeta { name: Some("new".to_owned()), ..ObjectMeta::default() };
    let manifest = Manifest::new(kind, &metadata, &json!({"stringData": {"k": "hidden"}}));
    let new = Desired { kind, manifest: Some(manifest), ..wanted("new", Component::environment("main"), 0) };
    let plan: Plan = Plan {
        ensure: vec![new],
        remove: vec![Removal::of(&there, Component::environment("main"))],
        ..Plan::default()
    };
    let writes = engine.preview(&plan).await.0;
    let text = format!("{writes:?}");
    assert!(writes.len() == 2 && !text.contains("aGlkZGVu") && !text.contains("hidden"), "{text}");
    assert_eq!(
        (&writes[0].body["stringData"]["k"], &writes[1].before["data"]["k"]),
        (&json!("***"), &json!("***"))
    );
}

#[tokio::test]
async fn a_deleted_object_stays_known_while_finalizers_hold_it() {
    let leaving = |name: &str| {
        let mut object = service(name, 9, "1");
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        object
    };
    let api = ApiServer::start(move |asked| match asked.name() {
        "held" => (200, leaving("held")),
        _ => accept(asked),
    })
    .await;
    let [free, held, left] = [service("free", 5, "1"), service("held", 5, "1"), leaving("left")];
    let (engine, store) = engine(&api, &[free.clone(), held.clone(), left.clone()], true);
    let remove = async |removal: &Removal| {
        let plan = Plan { remove: vec![removal.clone()], ..Plan::default() };
        assert_eq!(applied(&engine, &plan).await.failures, []);
        api.asked()
    };
    for object in [free, held] {
        let removal = Removal::of(&seen_service(&object), Component::Whole);
        let asked = remove(&removal).await;
        assert!(asked[0].is(&format!("DELETE {PATH}/{}", removal.key.name)), "{asked:?}");
        let preconditions = json!({"uid": removal.uid, "resourceVersion": "5"});
        assert_eq!(asked[0].body["preconditions"], preconditions);
    }
    assert!(store.get("ns", "free").is_none());
    assert!(store.get("ns", "held").is_some_and(|held| held.is_terminating()));
    // No request is sent for an object that is already being deleted. The store does not know that about a new object
    // with the same name.
    let left = Removal::of(&seen_service(&left), Component::Whole);
    assert_eq!(remove(&left).await, []);
    assert_eq!(remove(&Removal { uid: "another".to_owned(), ..left }).await.len(), 1);
}
