//! Tests of obstacles, one unmet requirement at a time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::api::reason::Reason;

/// The spec of a Template with one persistent machine, extended by these fields.
fn template(more: &Value) -> TemplateSpec {
    let mut environment = json!({
        "name": "desktop", "environmentType": "VirtualMachine", "image": "example.org/desktop", "persistent": true,
        "resources": {"cpu": 4, "reservedCPUPercentage": 50, "memory": "4Gi", "disk": "10Gi"},
    });
    json_patch::merge(&mut environment, more);
    let spec = json!({"prettyName": "Lab", "description": "d", "environmentList": [environment]});
    serde_json::from_value(spec).expect("a spec")
}

/// A node that runs virtual machines, with these taints, labels and amounts.
fn node(taints: &[&str], labels: &Value, allocatable: &Value) -> NodeRoom {
    let mut all = json!({"cpu": "4", "memory": "8Gi"});
    json_patch::merge(&mut all, allocatable);
    let amounts: BTreeMap<String, String> = serde_json::from_value(all).expect("amounts");
    let mut all = json!({"disk": "fast", "kubevirt.io/schedulable": "true"});
    json_patch::merge(&mut all, labels);
    NodeRoom {
        labels: serde_json::from_value(all).expect("labels"),
        allocatable: amounts
            .into_iter()
            .map(|(name, amount)| (name, amount.parse().expect("an amount")))
            .collect(),
        is_cordoned: false,
        taints: taints.iter().map(|taint| (*taint).to_owned()).collect(),
    }
}

/// A cluster that meets all requirements.
fn whole() -> Cluster {
    Cluster {
        settings: Settings { my_drive_class: Some("nfs".to_owned()), ..Settings::default() },
        has_kubevirt: true,
        has_cdi: true,
        nodes: vec![node(&[], &json!({}), &json!({}))],
        storage_classes: Some([("fast", false), ("nfs", false), ("usual", true)].map(own).into()),
        ingress_classes: Some(IngressClasses::WithDefault),
        gateways: None,
    }
}

fn own((name, is_default): (&str, bool)) -> (String, ClassProperties) {
    (name.to_owned(), ClassProperties { is_default, ..ClassProperties::default() })
}

/// The obstacles of a Template in a cluster without shared volumes.
fn found(cluster: &Cluster, more: &Value) -> Vec<Obstacle> {
    let spec = template(more);
    let around = Surroundings::of_template(cluster, &|_| VolumeState::Missing, true);
    obstacles(&spec, &spec.environment_list[0], &around)
}

fn reasons(cluster: &Cluster, more: &Value) -> Vec<Reason> {
    found(cluster, more).into_iter().map(|obstacle| obstacle.reason).collect()
}

#[test]
fn a_cluster_with_everything_has_no_obstacle() {
    for more in [
        json!({}),
        json!({"storageClassName": "fast"}),
        json!({"environmentType": "CloudVM"}),
        json!({"environmentType": "Container", "persistent": false}),
        json!({"guiEnabled": false, "mountMyDriveVolume": false, "mode": "Exam"}),
    ] {
        assert_eq!(found(&whole(), &more), [], "{more}");
    }
}

#[test]
fn each_missing_part_of_a_bare_cluster_is_named() {
    let bare = Cluster {
        has_kubevirt: false,
        has_cdi: false,
        storage_classes: Some(BTreeMap::new()),
        ingress_classes: Some(IngressClasses::Missing),
        ..whole()
    };
    let classes = [reason::STORAGE_CLASS_NOT_FOUND; 2];
    let machine = [&[reason::KUBEVIRT_MISSING][..], &classes[..], &[reason::INGRESS_CLASS_MISSING]].concat();
    assert_eq!(reasons(&bare, &json!({})), machine);
    let container = json!({"environmentType": "Container"});
    assert_eq!(reasons(&bare, &container), [&classes[..], &[reason::INGRESS_CLASS_MISSING]].concat());
    let messages: Vec<String> =
        found(&bare, &container).into_iter().map(|obstacle| obstacle.message).collect();
    for (message, words) in messages.iter().zip([
        "no class of the cluster is the default",
        "class nfs of MyDrive",
        "no Ingress class",
    ]) {
        assert!(message.starts_with("environment desktop: ") && message.contains(words), "{message}");
    }
    // An exam in a machine mounts nothing. An environment without a web interface needs no Ingress.
    let exam = json!({"mode": "Exam", "guiEnabled": false, "persistent": false});
    assert_eq!(reasons(&bare, &exam), [reason::KUBEVIRT_MISSING]);
}

#[test]
fn a_machine_with_a_disk_needs_cdi_and_the_import_secret() {
    let cluster = Cluster { has_cdi: false, ..whole() };
    assert_eq!(reasons(&cluster, &json!({})), [reason::CDI_MISSING]);
    assert_eq!(reasons(&cluster, &json!({"persistent": false})), [""; 0]);
    assert_eq!(reasons(&cluster, &json!({"environmentType": "Container"})), [""; 0]);
    for (kind, has_disk, expected) in [
        ("VirtualMachine", false, &[reason::IMPORT_SECRET_MISSING][..]),
        ("VirtualMachine", true, &[][..]),
        ("CloudVM", false, &[][..]),
    ] {
        let spec = template(&json!({"environmentType": kind}));
        let whole = whole();
        let volume = |_: &GenericRef| VolumeState::Missing;
        let around = Surroundings { has_disk, ..Surroundings::of_template(&whole, &volume, false) };
        let found = obstacles(&spec, &spec.environment_list[0], &around);
        assert_eq!(
            found.iter().map(|obstacle| obstacle.reason).collect::<Vec<_>>(),
            expected,
            "{kind} {has_disk}"
        );
        assert!(!found.iter().any(Obstacle::stops_start));
    }
}

#[test]
fn an_instance_that_has_its_disk_and_my_drive_needs_no_classes() {
    let cluster = Cluster { storage_classes: Some(BTreeMap::new()), ..whole() };
    let spec = template(&json!({}));
    for (has_disk, has_my_drive, count) in
        [(false, false, 2), (true, false, 1), (false, true, 1), (true, true, 0)]
    {
        let volume = |_: &GenericRef| VolumeState::Missing;
        let around =
            Surroundings { has_disk, has_my_drive, ..Surroundings::of_template(&cluster, &volume, true) };
        assert_eq!(
            obstacles(&spec, &spec.environment_list[0], &around).len(),
            count,
            "{has_disk} {has_my_drive}"
        );
    }
    // Unknown state causes no obstacle.
    let unknown = Cluster { storage_classes: None, ingress_classes: None, ..whole() };
    assert_eq!(found(&unknown, &json!({"storageClassName": "fast"})), []);
}

#[test]
fn a_shared_volume_is_an_obstacle_unless_it_is_exported() {
    let reference = json!({"name": "data", "namespace": "workspace-tea"});
    let mount = |path: &str| json!({"sharedVolume": reference, "mountPath": path});
    let more = json!({"sharedVolumeMounts": [mount("/a"), mount("/b")]});
    assert_eq!(reasons(&whole(), &more), [reason::SHARED_VOLUME_NOT_FOUND], "once");
    let spec = template(&more);
    let (environment, volume) = (&spec.environment_list[0], GenericRef::new("workspace-tea", "data"));
    let waiting = of_volume(environment, &volume, &VolumeState::Waiting(String::new())).expect("an obstacle");
    assert!(waiting.is_waiting && waiting.message.contains("workspace-tea/data"), "{waiting:?}");
    assert_eq!(of_volume(environment, &volume, &VolumeState::Exported), None);
}

#[test]
fn an_ingress_class_that_is_not_the_default_is_no_obstacle() {
    let cluster = Cluster { ingress_classes: Some(IngressClasses::WithoutDefault), ..whole() };
    assert_eq!(reasons(&cluster, &json!({})), [""; 0], "a controller may accept Ingresses without a class");
}

#[test]
fn a_web_interface_needs_the_gateways_that_are_configured() {
    let wanted = GenericRef::new("gateways", "labs");
    let ingress_classes = Some(IngressClasses::Missing);
    let mut cluster = Cluster { ingress_classes, gateways: Some([].into()), ..whole() };
    cluster.settings.gateways = vec![wanted.clone()];
    assert_eq!(reasons(&cluster, &json!({})), [reason::GATEWAY_MISSING]);
    assert!(found(&cluster, &json!({}))[0].message.contains("Gateway gateways/labs does not exist"));
    cluster.gateways = Some([wanted].into());
    assert_eq!(reasons(&cluster, &json!({})), [""; 0]);
}

#[test]
fn without_a_large_enough_node_the_largest_is_named() {
    let gpu = json!({"resources": {"otherResources": {"a.b/gpu": "1"}}});
    let tainted = || node(&["a.b/gpu"], &json!({}), &json!({}));
    let with_gpu = || node(&["a.b/gpu"], &json!({}), &json!({"a.b/gpu": "1"}));
    let plain = || node(&[], &json!({}), &json!({}));
    let small = || node(&[], &json!({}), &json!({"cpu": "1"}));
    let little = || node(&[], &json!({}), &json!({"memory": "1Gi"}));
    let cordoned = || NodeRoom { is_cordoned: true, ..plain() };
    let unreported = || NodeRoom { allocatable: BTreeMap::new(), ..plain() };
    for (environment, nodes, message) in [
        (json!({}), vec![], ""),
        (json!({}), vec![plain()], ""),
        // 4 GiB, and 500 MB for KubeVirt.
        (
            json!({}),
            vec![small(), little()],
            "it requests cpu 2, memory 4794967296; the largest of the nodes that it may run on (2) have cpu 4, memory 8Gi",
        ),
        (json!({}), vec![small(), plain()], ""),
        (json!({}), vec![unreported()], ""),
        (json!({}), vec![unreported(), small()], "the nodes that it may run on (1) have cpu 1"),
        (json!({}), vec![cordoned()], "all nodes that it may run on (1) are cordoned"),
        (json!({}), vec![tainted()], "are cordoned or tainted"),
        (gpu.clone(), vec![tainted()], "it may run on (1) have a.b/gpu 0, cpu 4"),
        (gpu, vec![with_gpu()], ""),
        (json!({"nodeSelector": {"disk": "fast"}}), vec![plain()], ""),
        (
            json!({"nodeSelector": {"disk": "slow"}}),
            vec![plain()],
            "no node has the labels of its node selector, disk=slow",
        ),
        (json!({"nodeSelector": {}}), vec![plain()], ""),
    ] {
        let found = found(&Cluster { nodes: nodes.clone(), ..whole() }, &environment);
        match message {
            "" => assert_eq!(found, [], "{environment} {nodes:?}"),
            _ => assert!(
                found.len() == 1 && found[0].reason == reason::NO_NODE && found[0].message.contains(message),
                "{found:?}"
            ),
        }
    }
}

#[test]
fn only_nodes_with_the_label_and_the_device_of_kubevirt_run_virtual_machines() {
    let device = |count: &str| json!({"devices.kubevirt.io/kvm": count});
    let unlabelled = json!({"kubevirt.io/schedulable": null});
    for (nodes, is_able) in [
        (vec![node(&[], &unlabelled, &json!({}))], false),
        (vec![node(&[], &json!({"kubevirt.io/schedulable": "false"}), &device("110"))], false),
        (vec![node(&[], &json!({}), &device("0"))], false),
        (vec![node(&[], &json!({}), &device("110"))], true),
        // KubeVirt uses emulation on this node.
        (vec![node(&[], &json!({}), &json!({}))], true),
        (vec![node(&[], &unlabelled, &json!({})), node(&[], &json!({}), &device("1"))], true),
    ] {
        let cluster = Cluster { nodes: nodes.clone(), ..whole() };
        let of_machine = found(&cluster, &json!({}));
        assert_eq!(of_machine.is_empty(), is_able, "{nodes:?}");
        assert!(of_machine.iter().all(|obstacle| obstacle.message.contains("no node runs virtual machines")));
        assert_eq!(found(&cluster, &json!({"environmentType": "Container"})), []);
    }
}

#[test]
fn a_node_of_a_pool_is_waited_for_where_no_node_fits() {
    let large = json!({"resources": {"cpu": 32}, "environmentType": "Container"});
    let mut cluster = whole();
    let pool = |name: &str, allocatable: Value| Pool {
        name: name.to_owned(),
        node: node(&[], &json!({}), &allocatable),
    };
    cluster.settings.pools = vec![pool("small", json!({})), pool("large", json!({"cpu": "64"}))];
    assert_eq!(reasons(&cluster, &json!({})), [""; 0], "a node fits");
    let waits = found(&cluster, &large);
    assert_eq!(waits.len(), 1);
    assert!(waits[0].is_waiting && waits[0].message.contains("a node of the pool large"), "{waits:?}");
    // The same applies if there is no node at all.
    cluster.nodes = Vec::new();
    assert_eq!(reasons(&cluster, &large), [reason::NODE_ON_DEMAND]);
    cluster.nodes = whole().nodes;
    cluster.settings.pools.pop();
    assert_eq!(reasons(&cluster, &large), [reason::NO_NODE], "no pool is large enough");
}
