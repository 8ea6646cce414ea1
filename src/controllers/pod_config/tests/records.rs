//! The loop with a record whose content does not name its pool, and with a record that has changed since it was read.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::json;

use super::world::{SYSTEM, World, build};
use crate::controllers::pod_config::PodConfigReconciler;
use crate::controllers::pod_config::stores::records;
use crate::controllers::pod_network::{POOL, pool_name};
use crate::kinds::NetworkRecordKind;
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::Reconciler;
use crate::runtime::store::StoreFactory;

/// A pod has an address of a pool that no node has reported on yet, and the record of the pool was damaged so that its
/// content does not name the pool.
fn damaged() -> World {
    let mut world = World::new();
    world.config("lab", "net", &["x br0 10.1.0.0/28"]);
    world.pod("lab", "a", "net", "n1");
    world.reconcile("lab", "net", usize::MAX);
    world.reconcile("lab", "net", usize::MAX);
    assert_eq!(world.pools().len(), 1);
    let name = pool_name("lab", "10.1.0.0/28");
    world.patch("ConfigMap", SYSTEM, &name, &json!({"data": {"pool": "{"}}));
    world
}

#[test]
fn addresses_of_a_damaged_record_are_not_allocated_in_another_pool() {
    let mut world = damaged();
    world.config("lab", "net", &["x br0 10.1.0.0/29"]);
    world.reconcile("lab", "net", usize::MAX);
    let [_, reason, message] = world.condition("net", "Reconciled");
    assert_eq!(reason, "NetworkOverlap", "{message}");
    // The PodConfig requests the former range again, so the record is used again.
    world.config("lab", "net", &["x br0 10.1.0.0/28"]);
    world.settle();
    assert_eq!(world.addresses("lab", "a"), ["x 10.1.0.2"]);
    assert_eq!(world.pools().len(), 1);
}

#[test]
fn a_damaged_record_is_removed_once_it_is_unused() {
    let mut world = damaged();
    world.config("lab", "net", &[]);
    world.settle();
    assert!(world.records(POOL).is_empty(), "{:?}", world.records(POOL));
}

#[test]
fn a_pool_has_the_same_version_as_its_record() {
    let world = World::with_sample();
    let mut factory = StoreFactory::default();
    let (cell, seen) = (Arc::new(OnceLock::<PodConfigReconciler>::new()), Arc::new(Mutex::new(Vec::new())));
    let (reconciler, views) = (Arc::clone(&cell), Arc::clone(&seen));
    // The store shows a change to this reconcile before the loop is notified.
    factory.store::<NetworkRecordKind>(&records(SYSTEM)).subscribe(move |_| {
        let observed =
            reconciler.get().and_then(|reconciler| reconciler.observe(&ObjectKey::new("lab", "net")));
        for view in observed.into_iter().flat_map(|observed| observed.pools) {
            let recorded = view.record.map_or(0, |record| record.spec.len() - 1);
            views.lock().push((view.pool.entries.len(), recorded));
        }
    });
    let (factory, reconciler, _) = build(&world.config, factory);
    assert!(cell.set(reconciler).is_ok());
    for object in world.objects.values() {
        factory.offer(object).expect("an object");
    }
    seen.lock().clear();
    // Another reconcile has freed an address.
    let name = pool_name("lab", "192.168.99.0/24");
    let mut record = world.get("ConfigMap", SYSTEM, &name).expect("a pool").clone();
    let data = record["data"].as_object_mut().expect("data");
    let uid = data.keys().find(|key| *key != "pool").expect("a pod").clone();
    data.remove(&uid);
    record["metadata"]["resourceVersion"] = "1000".into();
    factory.offer(&record).expect("a record");
    assert_eq!(*seen.lock(), [(1, 1), (2, 2)]);
}
