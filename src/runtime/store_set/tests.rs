//! Tests of the queue additions caused by changes of a store.

use serde_json::{Value, json};

use super::*;
use crate::api::instance::InstanceKind;
use crate::api::tenant::TenantKind;
use crate::kinds::ServiceKind;

fn service(version: u64, owner: &Value) -> Object<ServiceKind> {
    let metadata = json!({"name": "s", "namespace": "ns", "uid": "1", "resourceVersion": version.to_string(), "ownerReferences": [owner]});
    serde_json::from_value(json!({"metadata": metadata, "spec": {}})).expect("a Service")
}

fn owner(kind: &str, name: &str, is_controller: bool) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": name, "controller": is_controller})
}

/// Returns the objects that wait for a worker.
async fn queued(queue: &Queue) -> Vec<String> {
    let mut keys = Vec::new();
    while queue.waiting() > 0 {
        let job = queue.next().await.expect("the queue is open");
        keys.push(job.key.to_string());
        queue.done(job, super::super::queue::Action::AwaitChange);
    }
    keys.sort();
    keys
}

#[tokio::test]
async fn a_child_wakes_its_former_and_current_controller_except_after_own_writes() {
    let mut factory = StoreFactory::default();
    let mut set = StoreSet::new("instance", &mut factory);
    let queue = Arc::clone(set.queue());
    let services = set.store::<ServiceKind>(&Selection::ALL).wakes_controller::<InstanceKind>().get();
    let instance = |name: &str| owner("Instance", name, true);
    services.apply_event(service(1, &instance("a")));
    assert_eq!(queued(&queue).await, ["ns/a"]);
    services.apply_event(service(2, &instance("b")));
    assert_eq!(queued(&queue).await, ["ns/a", "ns/b"]);
    services.record(service(3, &instance("c")), "instance");
    assert!(queued(&queue).await.is_empty(), "the loop knows what it has written");
    services.record(service(4, &instance("d")), "publicExposure");
    assert_eq!(queued(&queue).await, ["ns/c", "ns/d"], "a write of another loop");
    services.apply_event(service(5, &owner("Instance", "e", false)));
    services.apply_event(service(6, &owner("Deployment", "f", true)));
    assert_eq!(queued(&queue).await, ["ns/d"], "neither is an Instance that controls it");
}

#[tokio::test]
async fn a_cluster_scoped_controller_is_woken_by_its_name() {
    let queue = Queue::new("tenant");
    enqueue_controller::<TenantKind>(&service(1, &owner("Tenant", "ada", true)).metadata, &queue);
    assert_eq!(queue.next().await.expect("the queue is open").key, ObjectKey::new("", "ada"));
}

#[tokio::test]
async fn named_objects_need_not_exist() {
    let mut factory = StoreFactory::default();
    let mut set = StoreSet::new("instance", &mut factory);
    let queue = Arc::clone(set.queue());
    let keys = vec![ObjectKey::new("ns", "s"), ObjectKey::new("ns", "absent")];
    let services = set.store::<ServiceKind>(&Selection::ALL).named(keys.clone()).get();
    assert_eq!(queued(&queue).await, ["ns/absent", "ns/s"]);
    let nobody = owner("Instance", "a", false);
    services.apply_event(service(1, &nobody));
    assert_eq!(queued(&queue).await, ["ns/s"]);
    let mut other = service(2, &nobody);
    other.metadata.name = "other".into();
    services.apply_event(other);
    services.record(service(3, &nobody), "instance");
    assert!(queued(&queue).await.is_empty(), "another object, and a write of this loop");
    services.delete_event(&service(4, &nobody));
    assert_eq!(queued(&queue).await, ["ns/s"]);
    assert_eq!((set.finish().keys)(), keys);
}

#[tokio::test]
async fn objects_are_woken_when_their_namespace_becomes_ours_or_ceases_to_be() {
    let selector = BTreeMap::from([("ours".to_owned(), "yes".to_owned())]);
    let mut factory = StoreFactory::default();
    let mut set = StoreSet::new("instance", &mut factory);
    let queue = Arc::clone(set.queue());
    let services = set.store::<ServiceKind>(&Selection::ALL).get();
    let all = Selection::ALL;
    let namespaces = set.store::<NamespaceKind>(&all).wakes_objects_within(&services, &selector).get();
    services.apply_event(service(1, &owner("Instance", "a", true)));
    let mut version = 10;
    for (labels, is_change) in [
        (json!({"ours": "no"}), false),
        (json!({"ours": "yes"}), true),
        (json!({"ours": "yes", "more": "yes"}), false),
        (json!({}), true),
    ] {
        version += 1;
        let metadata =
            json!({"name": "ns", "uid": "n", "resourceVersion": version.to_string(), "labels": labels});
        namespaces.apply_event(serde_json::from_value(json!({"metadata": metadata})).expect("a namespace"));
        assert_eq!(queued(&queue).await, Vec::from_iter(is_change.then(|| "ns/s".to_owned())), "{labels}");
    }
    let metadata = json!({"name": "other", "uid": "o", "resourceVersion": "20", "labels": {"ours": "yes"}});
    namespaces.apply_event(serde_json::from_value(json!({"metadata": metadata})).expect("a namespace"));
    assert!(queued(&queue).await.is_empty(), "the namespace is empty");
}
