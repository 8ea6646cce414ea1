//! The Instances that a change of an object queues.

use serde_json::{Value, json};

use super::*;
use crate::kinds::Deployment;
use crate::runtime::queue::{Action, Queue};
use crate::runtime::store::{AnyStore, StoreFactory};

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
        Stores::declare(&mut set, &BTreeMap::new(), &InstanceConfig::classic(), Settings::default(), true);
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
