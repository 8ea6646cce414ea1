//! What the loop does when records, nodes or addresses are lost, one situation each.

use serde_json::json;

use super::cases::SAMPLE;
use super::world::{SYSTEM, World};
use crate::controllers::pod_config::records::{LIMIT, text};
use crate::controllers::shared::pod_network::{
    LinkProblem, NODE_KEY, Node, RECORD, REPORT, pool_name, report_name,
};

#[test]
fn a_lost_node_is_not_waited_for() {
    let mut world = World::with_sample();
    world.delete("lab", "net");
    world.node("n2", "Unknown");
    // Only the other node works.
    for _ in 0..4 {
        world.reconcile("lab", "net", usize::MAX);
        world.work("n1");
    }
    assert!(world.get("PodConfig", "lab", "net").is_some(), "the node may come back");
    let plan = world.planned("lab", "net");
    assert!(
        matches!(plan.requeue, crate::runtime::plan::Requeue::After(after) if after.as_secs() <= 300),
        "{plan:?}"
    );
    world.now = world.now.checked_add(jiff::SignedDuration::from_secs(60)).expect("a time");
    world.reconcile("lab", "net", usize::MAX);
    let [_, reason, message] = world.condition("net", "DeletionBlocked");
    assert_eq!((reason.as_str(), message.as_str()), ("LinksLeft", "links are still to be removed on n2"));
    world.now = world.now.checked_add(jiff::SignedDuration::from_secs(240)).expect("a time");
    world.reconcile("lab", "net", usize::MAX);
    assert!(world.get("PodConfig", "lab", "net").is_none(), "it is lost");
}

#[test]
fn a_node_that_is_gone_is_looked_for_and_leaves_no_report() {
    let mut world = World::with_sample();
    world.config("lab", "stays", &[]);
    world.settle();
    world.remove("Node", "", "n2");
    world.links.retain(|(node, ..), _| node != "n2");
    world.delete("lab", "net");
    world.reconcile("lab", "net", usize::MAX);
    let plan = world.planned("lab", "stays");
    assert_eq!(plan.confirm.len(), 1, "{plan:?}");
    world.settle();
    assert!(world.get("PodConfig", "lab", "net").is_none());
    let left: Vec<_> = world.objects.keys().filter(|key| key.0 == "ConfigMap").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_node_that_has_never_reported_is_waited_for_as_long_as_a_lost_one() {
    let mut world = World::new();
    world.config("lab", "net", &SAMPLE);
    world.pod("lab", "a", "net", "n1");
    world.reconcile("lab", "net", usize::MAX);
    world.reconcile("lab", "net", usize::MAX);
    world.delete("lab", "net");
    for seconds in [60, 239] {
        world.now = world.now.checked_add(jiff::SignedDuration::from_secs(seconds)).expect("a time");
        world.reconcile("lab", "net", usize::MAX);
        let message = world.condition("net", "DeletionBlocked")[2].clone();
        assert!(message.starts_with("n1 has never reported"), "{message}");
    }
    let requeue = world.planned("lab", "net").requeue;
    assert_eq!(requeue, crate::runtime::plan::Requeue::After(std::time::Duration::from_secs(1)));
    world.now = world.now.checked_add(jiff::SignedDuration::from_secs(1)).expect("a time");
    world.reconcile("lab", "net", usize::MAX);
    assert!(world.get("PodConfig", "lab", "net").is_none() && world.pools().is_empty());
}

#[test]
fn a_node_that_cannot_work_is_waited_for_with_the_reason() {
    let mut world = World::new();
    world.config("lab", "net", &SAMPLE);
    world.pod("lab", "a", "net", "n1");
    world.reconcile("lab", "net", usize::MAX);
    world.reconcile("lab", "net", usize::MAX);
    let problem = LinkProblem { reason: "LinkFailed".to_owned(), message: "it is blind".to_owned() };
    let node = text(&Node { node: "n1".to_owned(), problem: Some(problem) });
    world.put(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {NODE_KEY: node},
        "metadata": {"namespace": SYSTEM, "name": report_name("n1"), "labels": {RECORD: REPORT}}}));
    world.reconcile("lab", "net", usize::MAX);
    let [_, reason, message] = world.condition("net", "Reconciled");
    assert_eq!((reason.as_str(), message.as_str()), ("LinkFailed", "node n1: it is blind"));
    world.delete("lab", "net");
    // Longer than a node is waited for that has never reported.
    world.now = world.now.checked_add(jiff::SignedDuration::from_mins(10)).expect("a time");
    world.reconcile("lab", "net", usize::MAX);
    let message = &world.condition("net", "DeletionBlocked")[2];
    assert_eq!(message, "links are still to be removed on n1; node n1: it is blind");
}

#[test]
fn nothing_blocks_a_deletion_without_pods() {
    let mut world = World::with_sample();
    world.remove("Pod", "lab", "a");
    world.remove("Pod", "lab", "b");
    world.links.clear();
    world.settle();
    world.delete("lab", "net");
    world.reconcile("lab", "net", usize::MAX);
    assert!(world.get("PodConfig", "lab", "net").is_none() && world.pools().is_empty());
}

#[test]
fn a_lost_record_is_made_again_from_the_reports_and_else_from_the_status() {
    let mut world = World::with_sample();
    world.pod("lab", "0-first", "net", "n1");
    world.settle();
    let before: Vec<_> = ["a", "b", "0-first"].map(|pod| world.addresses("lab", pod)).into();
    let name = pool_name("lab", "192.168.100.0/24");
    let again = |world: &mut World| {
        world.restart();
        world.settle();
        let after: Vec<_> = ["a", "b", "0-first"].map(|pod| world.addresses("lab", pod)).into();
        assert_eq!(after, before);
    };
    world.remove("ConfigMap", SYSTEM, &name);
    again(&mut world);
    world.patch("ConfigMap", SYSTEM, &name, &json!({"data": null}));
    again(&mut world);
    world.patch("ConfigMap", SYSTEM, &name, &json!({"data": {"pool": "{}"}}));
    again(&mut world);
    // Neither records nor reports are left: the nodes are new, and the status is all that is known.
    let records: Vec<_> = world.objects.keys().filter(|key| key.0 == "ConfigMap").cloned().collect();
    for (kind, namespace, name) in &records {
        world.remove(kind, namespace, name);
    }
    world.links.clear();
    again(&mut world);
}

#[test]
fn what_a_status_says_is_not_believed_while_there_is_a_record() {
    let mut world = World::with_sample();
    let edited = |address: &str| {
        json!({"status": {"podConfigurations": [{"podName": "c", "configList": [
        format!("{{podVethName:pc077 podIPAddr:{address}/24 peerVethName:hpc077 bridge:pcbr0}}")]}]}})
    };
    world.patch("PodConfig", "lab", "net", &edited("192.168.100.77"));
    world.pod("lab", "c", "net", "n1");
    world.settle();
    assert_eq!(world.addresses("lab", "c"), ["pc0 192.168.100.4", "pc1 192.168.99.4"]);
    // Nor is an address that no pod may have, or that another pod has.
    for address in ["192.168.100.1", "192.168.100.2", "192.168.100.255", "10.0.0.9"] {
        world.remove("ConfigMap", SYSTEM, &pool_name("lab", "192.168.100.0/24"));
        world.patch("PodConfig", "lab", "net", &edited(address));
        world.settle();
        assert_eq!(world.addresses("lab", "c"), ["pc0 192.168.100.4", "pc1 192.168.99.4"]);
    }
}

#[test]
fn a_pool_has_an_end() {
    let mut world = World::new();
    world.config("lab", "net", &["x br0 10.1.0.0/30"]);
    world.pod("lab", "a", "net", "n1");
    world.pod("lab", "b", "net", "n1");
    world.settle();
    assert_eq!(world.addresses("lab", "a"), ["x 10.1.0.2"]);
    let [_, reason, message] = world.condition("net", "Reconciled");
    assert_eq!(reason, "PoolExhausted");
    assert!(
        message.contains("attachment x of pod b: no address of 10.1.0.0/30 is free, all 1 are in use"),
        "{message}"
    );
    world.remove("Pod", "lab", "a");
    world.settle();
    assert_eq!(
        (world.addresses("lab", "b"), world.phase("net")),
        (vec!["x 10.1.0.2".to_owned()], "configured".to_owned())
    );
}

#[test]
fn a_pool_has_no_more_addresses_than_its_record_can_hold() {
    let mut world = World::new();
    world.config("lab", "net", &["x br0 10.1.0.0/16"]);
    (0..LIMIT + 3).for_each(|number| world.pod("lab", &format!("p{number:05}"), "net", "n1"));
    world.settle();
    assert_eq!(world.links.len(), LIMIT);
    let [_, reason, message] = world.condition("net", "Reconciled");
    assert_eq!(reason, "PoolExhausted");
    assert!(
        message.contains("pods p02000, p02001, p02002: 10.1.0.0/16") && message.contains("which is 2000"),
        "{message}"
    );
}

#[test]
fn what_is_left_of_a_namespace_without_any_is_removed_by_others() {
    let mut world = World::with_sample();
    world.config("other", "net", &["x br7 10.7.0.0/24"]);
    world.settle();
    // Somebody takes the finalizer away.
    world.patch(
        "PodConfig",
        "lab",
        "net",
        &json!({"metadata": {"finalizers": null, "deletionTimestamp": "2026-01-02T00:00:00Z"}}),
    );
    world.settle();
    assert!(world.pools().is_empty() && world.links.is_empty());
}
