//! The loop when records, nodes or addresses are lost.

use serde_json::json;

use super::cases::SAMPLE;
use super::world::{SYSTEM, World};
use crate::controllers::pod_config::records::{LIMIT, text};
use crate::controllers::pod_network::{LinkProblem, NODE_KEY, Node, RECORD, REPORT, pool_name, report_name};
use crate::runtime::plan::Precondition;

impl World {
    /// A node is unavailable for longer than the grace period.
    pub fn lose(&mut self, name: &str) {
        self.node(name, "Unknown");
        self.now = self.now.checked_add(jiff::SignedDuration::from_secs(301)).expect("a time");
        let links = self.links.iter().filter(|((node, ..), _)| node == name);
        self.excused.extend(links.map(|(_, live)| live.allocation.address));
    }

    /// Whether a node is ready.
    pub fn is_ready(&self, name: &str) -> bool {
        let node = self.get("Node", "", name);
        node.is_some_and(|node| node["status"]["conditions"][0]["status"] == "True")
    }

    /// A pod is being deleted, but not gone yet.
    pub fn end(&mut self, namespace: &str, name: &str) {
        let metadata = json!({"deletionTimestamp": self.now.to_string(), "finalizers": ["its/kubelet"]});
        self.patch("Pod", namespace, name, &json!({"metadata": metadata}));
    }

    /// The finalizer of a `PodConfig` is removed by hand, and the `PodConfig` is deleted.
    pub fn force(&mut self, namespace: &str, name: &str) {
        let metadata = json!({"finalizers": null, "deletionTimestamp": self.now.to_string()});
        self.patch("PodConfig", namespace, name, &json!({"metadata": metadata}));
    }
}

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
    assert!(world.get("PodConfig", "lab", "net").is_none(), "the node is lost");
}

#[test]
fn a_deleted_node_is_confirmed_and_its_report_is_removed() {
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
fn a_node_without_a_report_delays_a_deletion_as_long_as_a_lost_node() {
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
fn a_node_with_a_problem_delays_a_deletion_and_the_status_says_why() {
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
    // Longer than the wait for a node that has never reported.
    world.now = world.now.checked_add(jiff::SignedDuration::from_mins(10)).expect("a time");
    world.reconcile("lab", "net", usize::MAX);
    let message = &world.condition("net", "DeletionBlocked")[2];
    assert_eq!(message, "links are still to be removed on n1; node n1: it is blind");
}

#[test]
fn a_link_that_cannot_be_removed_delays_a_deletion_and_the_status_says_why() {
    let mut world = World::with_sample();
    world.delete("lab", "net");
    world.reconcile("lab", "net", usize::MAX);
    let name = report_name("n2");
    let data = world.get("ConfigMap", SYSTEM, &name).expect("a report")["data"].clone();
    let (uid, links) =
        data.as_object().expect("data").iter().find(|(key, _)| *key != NODE_KEY).expect("a pod");
    let mut links: serde_json::Value = serde_json::from_str(links.as_str().expect("a text")).expect("JSON");
    links[0]["problem"] =
        json!({"reason": "LinkFailed", "message": "the link cannot be removed: it is stuck"});
    world.patch("ConfigMap", SYSTEM, &name, &json!({"data": {uid: links.to_string()}}));
    world.work("n1");
    world.now = world.now.checked_add(jiff::SignedDuration::from_secs(60)).expect("a time");
    world.reconcile("lab", "net", usize::MAX);
    world.reconcile("lab", "net", usize::MAX);
    let message = &world.condition("net", "DeletionBlocked")[2];
    let why = "attachment pc0 of pod b on node n2: the link cannot be removed: it is stuck";
    assert_eq!(message, &format!("links are still to be removed on n2; {why}"));
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
fn a_lost_record_is_restored_from_the_reports_or_from_the_status() {
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
    // Neither records nor reports are left: the nodes are new, and only the status remains.
    let records: Vec<_> = world.objects.keys().filter(|key| key.0 == "ConfigMap").cloned().collect();
    for (kind, namespace, name) in &records {
        world.remove(kind, namespace, name);
    }
    world.links.clear();
    again(&mut world);
}

#[test]
fn the_status_is_ignored_while_there_is_a_record() {
    let mut world = World::with_sample();
    let edited = |address: &str| {
        json!({"status": {"podConfigurations": [{"podName": "c", "configList": [
        format!("{{podVethName:pc077 podIPAddr:{address}/24 peerVethName:hpc077 bridge:pcbr0}}")]}]}})
    };
    world.patch("PodConfig", "lab", "net", &edited("192.168.100.77"));
    world.pod("lab", "c", "net", "n1");
    world.settle();
    assert_eq!(world.addresses("lab", "c"), ["pc0 192.168.100.4", "pc1 192.168.99.4"]);
    // An address that pods cannot have, or that another pod has, is ignored as well.
    for address in ["192.168.100.1", "192.168.100.2", "192.168.100.255", "10.0.0.9"] {
        world.remove("ConfigMap", SYSTEM, &pool_name("lab", "192.168.100.0/24"));
        world.patch("PodConfig", "lab", "net", &edited(address));
        world.settle();
        assert_eq!(world.addresses("lab", "c"), ["pc0 192.168.100.4", "pc1 192.168.99.4"]);
    }
}

#[test]
fn an_exhausted_pool_is_reported_until_an_address_is_free() {
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
fn leftovers_of_a_namespace_without_podconfigs_are_removed() {
    let mut world = World::with_sample();
    world.force("lab", "net");
    world.settle();
    assert!(world.pools().is_empty() && world.links.is_empty());
}

/// A world in which node n2 was lost while the `PodConfig` was deleted, and came back with its links.
fn back() -> World {
    let mut world = World::with_sample();
    world.lose("n2");
    world.delete("lab", "net");
    for _ in 0..4 {
        world.reconcile("lab", "net", usize::MAX);
        world.work("n1");
        world.reconcile("lab", "", usize::MAX);
    }
    assert!(world.get("PodConfig", "lab", "net").is_none() && world.pools().is_empty());
    assert_eq!(world.links.len(), 2, "it was not notified");
    world.node("n2", "True");
    world
}

#[test]
fn a_node_that_comes_back_releases_links_of_a_deleted_podconfig() {
    let mut world = back();
    let plan = world.planned("lab", "");
    let [Precondition::Within(kind, namespace)] = &plan.preconditions[..] else { panic!("{plan:#?}") };
    assert_eq!((kind.kind, namespace.as_str()), ("PodConfig", "lab"), "the API server confirms it");
    world.reconcile("lab", "", 1);
    assert_eq!(world.told("n2 LinksLeft "), 0, "the process has died");
    world.restart();
    world.reconcile("lab", "", usize::MAX);
    let told = "n2 LinksLeft links of deleted PodConfigs of namespace lab are still to be removed on this node by podConfigNode: pc";
    assert_eq!(world.told(told), 1, "{:#?}", world.events);
    assert!(world.planned("lab", "").preconditions.is_empty(), "it was read before");
    world.work("n2");
    assert!(world.links.is_empty());
    world.reconcile("lab", "", usize::MAX);
    world.work("n2");
    assert!(world.pools().is_empty() && world.observed("lab", "").is_none());
    assert_eq!(world.told("n2 LinksLeft "), 1);
}

#[test]
fn another_podconfig_of_the_namespace_releases_links_on_a_node_that_comes_back() {
    let mut world = back();
    world.config("lab", "younger", &SAMPLE[..1]);
    world.config("lab", "youngest", &[]);
    world.pod("lab", "c", "younger", "n1");
    world.settle();
    assert!(world.observed("lab", "").is_none(), "it belongs to the other PodConfig");
    assert!(world.told("n2 LinksLeft ") > 0);
    assert_eq!(world.links.len(), 1);
    assert_eq!(world.phase("younger"), "configured");
}

#[test]
fn a_pod_that_is_being_deleted_gets_no_new_link() {
    let mut world = World::new();
    world.config("lab", "net", &SAMPLE[..1]);
    for pod in ["has", "none"] {
        world.pod("lab", pod, "net", "n1");
    }
    world
        .broken
        .insert("pc0".to_owned(), LinkProblem { reason: "LinkFailed".to_owned(), message: String::new() });
    world.settle();
    world.broken.clear();
    world.end("lab", "none");
    world.settle();
    assert_eq!(world.addresses("lab", "has"), ["pc0 192.168.100.2"]);
    assert_eq!(world.addresses("lab", "none"), Vec::<String>::new());
    world.end("lab", "has");
    world.settle();
    assert_eq!(world.addresses("lab", "has"), ["pc0 192.168.100.2"], "it keeps its address");
    let all: Vec<_> = world.pools()[0].1.values().flatten().cloned().collect();
    assert!(all.len() == 2 && all.iter().all(|one| one.ending && !one.release), "{all:?}");
    for pod in ["has", "none"] {
        world.remove("Pod", "lab", pod);
    }
    world.settle();
    assert!(world.links.is_empty() && world.pools()[0].1.is_empty());
}
