//! The loop in single situations.

use serde_json::{Value, json};

use super::world::{SYSTEM, World};
use crate::controllers::pod_config::observe::{FINALIZER, LABEL};
use crate::controllers::pod_network::{LinkProblem, pool_name};

/// The default sample of this kind, with two attachments.
pub const SAMPLE: [&str; 2] = ["pc0 pcbr0 192.168.100.0/24", "pc1 pcbr1 192.168.99.0/24"];

impl World {
    /// A settled world with a `PodConfig` and two pods.
    pub fn with_sample() -> Self {
        let mut world = Self::new();
        world.config("lab", "net", &SAMPLE);
        world.pod("lab", "a", "net", "n1");
        world.pod("lab", "b", "net", "n2");
        world.settle();
        world
    }

    pub fn status(&self, name: &str) -> &Value {
        &self.get("PodConfig", "lab", name).expect("a PodConfig")["status"]
    }

    pub fn phase(&self, name: &str) -> String {
        self.status(name)["phase"].as_str().unwrap_or_default().to_owned()
    }

    /// Status, reason and message of a condition.
    pub fn condition(&self, name: &str, type_: &str) -> [String; 3] {
        let list = self.status(name)["conditions"].as_array().cloned().unwrap_or_default();
        let found = list.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default();
        ["status", "reason", "message"].map(|member| found[member].as_str().unwrap_or_default().to_owned())
    }

    pub fn has_pool(&self, range: &str) -> bool {
        self.get("ConfigMap", SYSTEM, &pool_name("lab", range)).is_some()
    }

    /// The number of events that begin with this text.
    pub fn told(&self, begin: &str) -> usize {
        self.events.iter().filter(|event| event.starts_with(begin)).count()
    }
}

#[test]
fn the_sample_gives_two_pods_their_addresses_on_both_networks() {
    let mut world = World::with_sample();
    assert_eq!(world.addresses("lab", "a"), ["pc0 192.168.100.2", "pc1 192.168.99.2"]);
    assert_eq!(world.addresses("lab", "b"), ["pc0 192.168.100.3", "pc1 192.168.99.3"]);
    assert_eq!(world.phase("net"), "configured");
    let text = |name: &str, number: u8| {
        json!({"podName": name, "configList": [
            format!("{{podVethName:pc077 podIPAddr:192.168.100.{number}/24 peerVethName:hpc077 bridge:pcbr0}}"),
            format!("{{podVethName:pc177 podIPAddr:192.168.99.{number}/24 peerVethName:hpc177 bridge:pcbr1}}"),
        ]})
    };
    assert_eq!(world.status("net")["podConfigurations"], json!([text("a", 2), text("b", 3)]));
    assert_eq!(world.condition("net", "Ready")[..2], ["True", "Configured"]);
    assert_eq!(world.condition("net", "Reconciled")[0], "True");
    assert_eq!(world.told("Configured pod "), 2);
    // The gateways are in the records, for the bridges.
    let pools: Vec<_> =
        world.pools().into_iter().map(|(pool, _)| (pool.gateway.to_string(), pool.bridges)).collect();
    assert_eq!(
        pools,
        [
            ("192.168.100.1".to_owned(), vec!["pcbr0".to_owned()]),
            ("192.168.99.1".to_owned(), vec!["pcbr1".to_owned()])
        ]
    );
    world.delete("lab", "net");
    world.settle();
    assert!(
        world.get("PodConfig", "lab", "net").is_none() && world.links.is_empty() && world.pools().is_empty()
    );
    assert_eq!(world.told("Released pod "), 2);
    let left =
        world.objects.keys().filter(|key| key.0 == "ConfigMap" && !key.2.starts_with("podnet-node")).count();
    assert_eq!(left, 0);
}

#[test]
fn the_finalizer_is_set_before_an_address_is_allocated() {
    let mut world = World::new();
    world.config("lab", "net", &SAMPLE);
    world.pod("lab", "a", "net", "n1");
    let plan = world.planned("lab", "net");
    assert_eq!((plan.patches.len(), plan.ensure.len()), (1, 0), "{plan:#?}");
    assert_eq!(plan.patches[0].patch["metadata"]["finalizers"], json!([FINALIZER]));
    world.reconcile("lab", "net", 1);
    let plan = world.planned("lab", "net");
    assert_eq!((plan.patches.len(), plan.ensure.len()), (0, 2), "{plan:#?}");
}

#[test]
fn a_pod_has_its_address_before_it_runs_and_keeps_it() {
    let mut world = World::new();
    world.config("lab", "net", &SAMPLE[..1]);
    world.pod("lab", "a", "net", "");
    world.settle();
    assert_eq!((world.phase("net").as_str(), world.pools().len()), ("configuring", 0), "the pod has no node");
    world.patch("Pod", "lab", "a", &json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Pending"}}));
    world.reconcile("lab", "net", usize::MAX);
    assert_eq!(world.pools()[0].1.len(), 1);
    world.settle();
    world.pod("lab", "0-first", "net", "n2");
    world.restart();
    world.settle();
    assert_eq!(world.addresses("lab", "a"), ["pc0 192.168.100.2"]);
    assert_eq!(world.addresses("lab", "0-first"), ["pc0 192.168.100.3"]);
    world.remove("Pod", "lab", "a");
    world.settle();
    world.pod("lab", "c", "net", "n1");
    world.settle();
    assert_eq!(world.addresses("lab", "c"), ["pc0 192.168.100.2"], "the lowest address is free again");
    assert_eq!(world.phase("net"), "configured");
}

#[test]
fn the_phase_shows_whether_interfaces_are_missing() {
    let mut world = World::new();
    world.config("lab", "net", &SAMPLE);
    world.settle();
    assert_eq!(
        (world.phase("net").as_str(), world.status("net")["podConfigurations"].clone()),
        ("unset", json!([]))
    );
    assert_eq!(world.condition("net", "Ready")[..2], ["True", "NoPods"]);
    world.pod("lab", "a", "net", "n1");
    world.settle();
    assert_eq!(world.phase("net"), "configured");
    world.pod("lab", "b", "net", "");
    world.settle();
    assert_eq!(world.phase("net"), "configuring", "the phase moves back");
    assert_eq!(
        world.condition("net", "Ready"),
        ["False", "Configuring", "1 of 2 pods have all their interfaces"]
    );
    world.patch("Pod", "lab", "b", &json!({"status": {"phase": "Succeeded"}}));
    world.settle();
    assert_eq!(world.phase("net"), "configured", "the pod has ended");
    world.patch("Pod", "lab", "a", &json!({"metadata": {"labels": {LABEL: "none"}}}));
    world.settle();
    assert_eq!(world.phase("net"), "unset");
    assert!(world.links.is_empty());
    assert_eq!(world.told("Released pod a"), 1);
}

#[test]
fn invalid_attachments_are_reported_once_and_the_others_are_created() {
    let mut world = World::new();
    let broken = ["x br0 10.1.0.0/24", "y br1 10.96.1.0/24", "z br1 10.2.0.0/31"];
    world.config("lab", "net", &broken);
    world.pod("lab", "a", "net", "n1");
    world.settle();
    assert_eq!((world.phase("net").as_str(), world.addresses("lab", "a").len()), ("configuring", 1));
    let [status, reason, message] = world.condition("net", "Reconciled");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NetworkOverlap"));
    assert!(message.contains("reservedCidrs") && message.contains("[2].cidr"), "{message}");
    assert_eq!(world.condition("net", "Stalled")[0], "True");
    world.restart();
    world.settle();
    assert_eq!((world.told("NetworkOverlap"), world.told("InvalidCIDR")), (1, 1));
}

#[test]
fn problems_of_nodes_are_reported() {
    let mut world = World::with_sample();
    let problem =
        |reason: &str| LinkProblem { reason: reason.to_owned(), message: "eth7 has the name".to_owned() };
    world.broken.insert("pc9".to_owned(), problem("NameConflict"));
    world.broken.insert("pc8".to_owned(), problem("OfTheFuture"));
    world.config("lab", "net", &[SAMPLE[0], "pc9 pcbr9 10.9.0.0/24", "pc8 pcbr8 10.8.0.0/24"]);
    world.settle();
    let [_, reason, message] = world.condition("net", "Reconciled");
    assert_eq!(reason, "LinkFailed", "this version does not know the reason");
    assert!(message.contains("attachment pc9 of pod a: eth7 has the name"), "{message}");
    assert_eq!((world.told("NameConflict"), world.told("LinkFailed")), (2, 2));
    assert_eq!(world.addresses("lab", "a"), ["pc0 192.168.100.2"], "pc1 was removed");
    assert!(!world.has_pool("192.168.99.0/24"));
}

#[test]
fn a_pod_with_the_host_network_is_ignored_and_reported() {
    let mut world = World::with_sample();
    world.pod("lab", "h", "net", "n1");
    world.patch("Pod", "lab", "h", &json!({"spec": {"hostNetwork": true}}));
    world.patch("PodConfig", "lab", "net", &json!({"spec": {"vlans": [{"vlanID": 7}]}}));
    world.settle();
    world.restart();
    world.settle();
    assert_eq!((world.phase("net").as_str(), world.addresses("lab", "h").len()), ("configured", 0));
    assert_eq!((world.told("lab/h HostNetworkPod"), world.told("VlansNotImplemented")), (1, 1));
}

#[test]
fn an_edited_range_rebuilds_and_an_edited_bridge_keeps_the_address() {
    let mut world = World::with_sample();
    world.config("lab", "net", &["pc0 other 192.168.100.0/24", "pc1 pcbr1 192.168.99.0/25"]);
    world.settle();
    assert_eq!(world.addresses("lab", "b"), ["pc0 192.168.100.3", "pc1 192.168.99.3"]);
    assert!(world.links.values().all(|live| ["other", "pcbr1"].contains(&live.allocation.bridge.as_str())));
    assert!(world.has_pool("192.168.99.0/25") && !world.has_pool("192.168.99.0/24"));
    assert_eq!(world.phase("net"), "configured");
}

#[test]
fn a_foreign_namespace_is_ignored_except_for_the_finalizer() {
    let mut world = World::with_sample();
    world.config("elsewhere", "net", &["x br7 10.7.0.0/24"]);
    world.pod("elsewhere", "a", "net", "n1");
    world.settle();
    assert!(world.addresses("elsewhere", "a").is_empty() && world.observed("elsewhere", "net").is_none());
    world.patch("PodConfig", "elsewhere", "net", &json!({"metadata": {"finalizers": [FINALIZER, "other"]}}));
    world.settle();
    let found = world.get("PodConfig", "elsewhere", "net").expect("it stays");
    assert_eq!(found["metadata"]["finalizers"], json!([FINALIZER, "other"]), "it may be another operator's");
}

#[test]
fn networks_of_an_unlisted_namespace_stay_until_they_are_deleted() {
    let mut world = World::with_sample();
    world.settle();
    let before = world.addresses("lab", "a");
    assert!(!before.is_empty());
    world.restart_with(&["other"]);
    world.pod("lab", "late", "net", "n1");
    world.settle();
    assert_eq!(world.addresses("lab", "a"), before, "the links of pods stay");
    assert!(world.addresses("lab", "late").is_empty(), "no further ones are made");
    let found = world.get("PodConfig", "lab", "net").expect("it stays").clone();
    assert_eq!(found["metadata"]["finalizers"], json!([FINALIZER]));
    world.restart_with(&["lab", "other"]);
    world.settle();
    assert_eq!(world.addresses("lab", "a"), before);
    assert!(!world.addresses("lab", "late").is_empty(), "the configuration is corrected");
    world.restart_with(&["other"]);
    world.delete("lab", "net");
    world.settle();
    assert!(world.get("PodConfig", "lab", "net").is_none(), "a deletion is completed");
}

#[test]
fn links_in_a_range_that_is_reserved_later_stay() {
    let mut world = World::with_sample();
    world.settle();
    let before = world.addresses("lab", "a");
    assert!(!before.is_empty());
    world.config.controllers.pod_config.reserved_cidrs =
        vec!["0.0.0.0/1".to_owned(), "128.0.0.0/1".to_owned()];
    world.restart();
    world.pod("lab", "late", "net", "n1");
    world.settle();
    assert_eq!(world.addresses("lab", "a"), before);
    assert!(world.addresses("lab", "late").is_empty());
    assert_eq!(world.condition("net", "Reconciled")[1], "NetworkOverlap");
}

#[test]
fn the_sample_deployment_is_made_kept_and_removed() {
    let mut world = World::with_sample();
    let sample =
        |name: &str, create: bool| json!({"spec": {"sampleDeployment": {"create": create, "name": name}}});
    world.patch("PodConfig", "lab", "net", &sample("lab-pods", true));
    world.settle();
    let made = world.get("Deployment", "lab", "lab-pods").expect("it is made").clone();
    insta::assert_snapshot!("sample_deployment", serde_json::to_string_pretty(&made).expect("JSON"));
    world.patch("Deployment", "lab", "lab-pods", &json!({"spec": {"replicas": 5}}));
    world.settle();
    assert_eq!(world.get("Deployment", "lab", "lab-pods").expect("it stays")["spec"]["replicas"], 2);
    world.patch("PodConfig", "lab", "net", &sample("lab-pods", false));
    world.settle();
    assert!(world.get("Deployment", "lab", "lab-pods").is_none());
    let foreign = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "lab", "name": "mine", "labels": {LABEL: "net"}}});
    world.put(&foreign);
    for (name, reason) in [
        ("mine", "SampleDeploymentConflict"),
        ("", "InvalidSampleDeployment"),
        ("A_b", "InvalidSampleDeployment"),
    ] {
        world.patch("PodConfig", "lab", "net", &sample(name, true));
        world.settle();
        assert_eq!(world.condition("net", "Reconciled")[1], reason);
        assert_eq!(
            (world.told(reason) > 0, world.phase("net").as_str()),
            (true, "configured"),
            "the attachments work"
        );
    }
    assert!(world.get("Deployment", "lab", "mine").is_some());
}
