//! The Instances that a change of an object queues.

use serde_json::{Value, json};

use super::*;
use crate::config::Access;
use crate::kinds::Deployment;
use crate::runtime::queue::{Action, Queue};
use crate::runtime::store::{AnyStore, Index as _, StoreFactory};

/// The name that identifies the loop as a writer.
const LOOP: &str = "instance";

/// The stores of the loop with four Instances: `a`, `a.b` and `a-b`, whose names conflict, and `a-b-c`.
struct World {
    factory: StoreFactory,
    queue: Arc<Queue>,
}

impl World {
    fn new() -> Self {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new(LOOP, &mut factory);
        Stores::declare(
            &mut set,
            &BTreeMap::new(),
            &InstanceConfig::classic(),
            Settings::default(),
            true,
            &Storage::default(),
            "daemon",
        );
        let queue = Arc::clone(set.queue());
        for name in ["a", "a.b", "a-b", "a-b-c"] {
            let instance = json!({
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance",
                "metadata": {"name": name, "namespace": "tenant-ada", "uid": name, "resourceVersion": "1"},
                "spec": {
                    "template.crownlabs.polito.it/TemplateRef": {"name": "box", "namespace": "workspace-tea"},
                    "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
                },
            });
            assert!(factory.offer(&instance).expect("an Instance"));
        }
        Self { factory, queue }
    }

    fn deployments(&mut self) -> Arc<Store<DeploymentKind>> {
        self.factory.store(&Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE))
    }

    /// Drains the queue, and returns the names of the queued Instances.
    async fn woken(&self) -> Vec<String> {
        let mut names = Vec::new();
        while self.queue.waiting() > 0 {
            let job = self.queue.next().await.expect("the queue is open");
            names.push(job.key.name.to_string());
            self.queue.done(job, Action::AwaitChange);
        }
        names.sort();
        names
    }
}

/// A Deployment called `a-b` that the Instance with this name controls.
fn deployment(uid: &str, controller: &str, version: u64) -> Deployment {
    let owner: Value = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": controller, "uid": controller,
        "controller": true,
    });
    let object = json!({
        "metadata": {
            "name": "a-b", "namespace": "tenant-ada", "uid": uid, "resourceVersion": version.to_string(),
            "labels": {labels::MANAGED_BY: labels::MANAGED_BY_INSTANCE}, "ownerReferences": [owner],
        },
        "spec": {"replicas": 1},
    });
    serde_json::from_value(object).expect("a Deployment")
}

#[tokio::test]
async fn a_deleted_object_wakes_the_instances_that_may_use_its_name() {
    let mut world = World::new();
    let store = world.deployments();
    store.record(deployment("first", "a.b", 1), LOOP);
    world.woken().await;
    store.record_deletion(&ObjectKey::new("tenant-ada", "a-b"), "first", LOOP);
    assert_eq!(
        world.woken().await,
        ["a", "a-b"],
        "removed by the loop for a.b, which needs no further reconcile"
    );

    store.record(deployment("second", "a.b", 2), LOOP);
    world.woken().await;
    store.delete_event(&deployment("second", "a.b", 3));
    assert_eq!(world.woken().await, ["a", "a-b", "a.b"], "removed by another client");

    store.apply_event(deployment("third", "an-older-one", 4));
    world.woken().await;
    store.delete_event(&deployment("third", "an-older-one", 5));
    assert_eq!(world.woken().await, ["a", "a-b", "a.b"], "of an Instance that is gone");
}

#[tokio::test]
async fn a_change_of_the_controller_wakes_these_instances_and_other_changes_do_not() {
    let mut world = World::new();
    let store = world.deployments();
    store.record(deployment("first", "a.b", 1), LOOP);
    world.woken().await;
    store.record(deployment("first", "a.b", 2), LOOP);
    assert_eq!(world.woken().await, Vec::<String>::new(), "a write of the loop");
    store.apply_event(deployment("first", "a-b", 3));
    assert_eq!(world.woken().await, ["a", "a-b", "a.b"]);
}

#[test]
fn the_older_instance_owns_the_name_of_a_proxy() {
    let taken = |mode: AccessMode, younger: &str, has_gui: bool| {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new(LOOP, &mut factory);
        let access = Access { mode, ..Access::default() };
        let config = InstanceConfig { access, ..InstanceConfig::classic() };
        let storage = Storage::default();
        let stores = Stores::declare(
            &mut set,
            &BTreeMap::new(),
            &config,
            Settings::default(),
            true,
            &storage,
            "daemon",
        );
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant-ada"}}),
            json!({
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Template",
                "metadata": {"name": "box", "namespace": "workspace-tea"},
                "spec": {"environmentList": [
                    {"name": "main", "environmentType": "Container", "image": "img", "guiEnabled": has_gui},
                ]},
            }),
        ];
        objects.extend(["a", "a-oauth2-proxy"].map(|name| {
            let created = if name == younger { "2026-01-02T00:00:00Z" } else { "2026-01-01T00:00:00Z" };
            json!({
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance",
                "metadata": {"name": name, "namespace": "tenant-ada", "creationTimestamp": created},
                "spec": {
                    "running": true,
                    "template.crownlabs.polito.it/TemplateRef": {"name": "box", "namespace": "workspace-tea"},
                    "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
                },
            })
        }));
        for object in &mut objects {
            object["metadata"]["uid"] = object["metadata"]["name"].clone();
            object["metadata"]["resourceVersion"] = "1".into();
            assert!(factory.offer(object).expect("an object"));
        }
        ["a", "a-oauth2-proxy"].map(|name| {
            let observed = stores.observe(&ObjectKey::new("tenant-ada", name)).expect("an Instance");
            observed.taken.get("a-oauth2-proxy").cloned()
        })
    };
    let (of_a, of_other) = (Some("a".to_owned()), Some("a-oauth2-proxy".to_owned()));
    assert_eq!(taken(AccessMode::PerInstance, "a", true), [of_other, None]);
    assert_eq!(taken(AccessMode::PerInstance, "a-oauth2-proxy", true), [None, of_a]);
    // Without a web interface, or without a proxy for each Instance, nothing else has the name.
    assert_eq!(taken(AccessMode::PerInstance, "a-oauth2-proxy", false), [None, None]);
    assert_eq!(taken(AccessMode::Shared, "a-oauth2-proxy", true), [None, None]);
}

#[test]
fn an_instance_without_a_part_of_the_cluster_or_with_an_ignored_route_waits_for_the_cluster() {
    for (type_, status, reason, is_waiting) in [
        ("Reconciled", "False", "KubeVirtMissing", true),
        ("Reconciled", "False", "TemplateNotFound", false),
        ("Ready", "False", "RouteIgnored", true),
        ("Ready", "False", "RouteRefused", false),
        ("Ready", "True", "Ready", false),
    ] {
        let condition = json!({"type": type_, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let instance: Instance =
            serde_json::from_value(json!({"status": {"conditions": [condition]}})).expect("lenient");
        assert_eq!(Hindered::keys(&instance).len(), usize::from(is_waiting), "{type_} {reason}");
    }
}
