//! Plans and reports, from JSON as the API server has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::reason::{self, Reason};
use crate::api::template::TemplateKind;
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, Object};
use crate::config::LocalVm;
use crate::runtime::ObjectKey;
use crate::runtime::merge;
use crate::runtime::plan::KindInfo;
use crate::runtime::store::StoreFactory;
use crate::runtime::store_set::StoreSet;

fn object<T: Kind>(value: &Value) -> Arc<Object<T>> {
    Arc::new(serde_json::from_value(value.clone()).expect("objects are read leniently"))
}

/// A Template of a course with one environment, which has these further members.
fn observed(more: &Value) -> Observed {
    let mut environment = json!({
        "name": "desktop", "environmentType": "VirtualMachine", "image": "example.org/desktop", "persistent": true,
        "resources": {"cpu": 4, "reservedCPUPercentage": 50, "memory": "4Gi", "disk": "10Gi"},
    });
    merge::apply(&mut environment, more);
    let quota = json!({"cpu": 8, "memory": "8Gi", "instances": 2});
    Observed {
        template: object(&json!({
            "metadata": {"name": "lab", "namespace": "workspace-tea", "uid": "t", "generation": 3},
            "spec": {"prettyName": "Lab", "description": "d", "environmentList": [environment]},
        })),
        workspace: Some(object(&json!({"metadata": {"name": "tea"}, "spec": {"quota": quota}}))),
        missing_volumes: [].into(),
        missing_classes: [].into(),
        nodes: Vec::new(),
    }
}

fn node(more: &Value) -> Value {
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"disk": "fast"}},
        "spec": {}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}},
    });
    merge::apply(&mut node, more);
    node
}

/// The problems of a Template.
fn problems(observed: &Observed) -> Vec<(Reason, String)> {
    let problems = plan(observed, &LocalVm::default()).problems;
    problems.into_iter().map(|problem| (problem.reason, problem.message)).collect()
}

/// The conditions after a reconcile, each as `type=status reason`, and the number of events.
fn reported(observed: &Observed) -> (Vec<String>, usize) {
    let now: Timestamp = "2026-03-04T05:06:07Z".parse().expect("a time");
    let report = report(observed, &plan(observed, &LocalVm::default()), now);
    let conditions = &report.status.conditions;
    let texts = conditions.iter().map(|each| format!("{}={} {}", each.type_, each.status, each.reason));
    (texts.collect(), report.events.len())
}

#[test]
fn nodes_have_room_or_the_largest_is_named() {
    let gpu = json!({"resources": {"otherResources": {"a.b/gpu": "1"}}});
    let tainted = json!({"spec": {"taints": [{"key": "a.b/gpu", "effect": "NoSchedule"}]}});
    let of_gpu = json!({"status": {"allocatable": {"a.b/gpu": "1"}}});
    let mut with_gpu = tainted.clone();
    merge::apply(&mut with_gpu, &of_gpu);
    let small = json!({"status": {"allocatable": {"cpu": "1"}}});
    let little = json!({"status": {"allocatable": {"memory": "1Gi"}}});
    for (environment, nodes, message) in [
        (json!({}), vec![], ""),
        (json!({}), vec![json!({})], ""),
        // 4 GiB and 500 MB for KubeVirt.
        (
            json!({}),
            vec![small.clone(), little.clone()],
            "it requests cpu 2, memory 4794967296; of 2 that it may run on, the largest have cpu 4, memory 8Gi",
        ),
        (json!({}), vec![small.clone(), json!({})], ""),
        (
            json!({}),
            vec![json!({"spec": {"unschedulable": true}})],
            "of 1 that it may run on, all are cordoned",
        ),
        (json!({}), vec![tainted.clone()], "all are cordoned or tainted"),
        (gpu.clone(), vec![tainted], "the largest have a.b/gpu 0, cpu 4"),
        (gpu.clone(), vec![with_gpu], ""),
        (json!({"nodeSelector": {"disk": "fast"}}), vec![json!({})], ""),
        (
            json!({"nodeSelector": {"disk": "slow"}}),
            vec![json!({})],
            "no node has the labels of its node selector, disk=slow",
        ),
        (json!({"nodeSelector": {}}), vec![json!({})], ""),
        (json!({}), vec![json!({"spec": {"taints": [{"key": "x", "effect": "PreferNoSchedule"}]}})], ""),
    ] {
        let mut observed = observed(&environment);
        observed.workspace = None;
        observed.nodes = nodes.iter().map(|more| object(&node(more))).collect();
        let found = problems(&observed);
        match message {
            "" => assert_eq!(found, [], "{environment} {nodes:?}"),
            _ => assert!(
                found.len() == 1 && found[0].0 == reason::NO_NODE && found[0].1.contains(message),
                "{found:?}"
            ),
        }
    }
}

#[test]
fn all_labels_of_a_node_are_known() {
    let labels: Value =
        (0..200).map(|n| (format!("cpu-model.node.kubevirt.io/model-{n}"), json!("true"))).collect();
    let mut observed = observed(&json!({"nodeSelector": {"cpu-model.node.kubevirt.io/model-199": "true"}}));
    observed.nodes = vec![object(&node(&json!({"metadata": {"labels": labels}})))];
    assert_eq!(problems(&observed), []);
}

#[test]
fn what_is_missing_is_named() {
    let mount = json!({"sharedVolume": {"name": "data", "namespace": "workspace-tea"}, "mountPath": "/data"});
    let mut observed = observed(&json!({"storageClassName": "fast", "sharedVolumeMounts": [mount]}));
    assert_eq!(problems(&observed), []);
    observed.missing_volumes = [ObjectKey::new("workspace-tea", "data")].into();
    observed.missing_classes = ["fast".to_owned()].into();
    let found = problems(&observed);
    let reasons: Vec<Reason> = found.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(reasons, [reason::SHARED_VOLUME_NOT_FOUND, reason::STORAGE_CLASS_NOT_FOUND]);
    assert!(
        found[0].1.contains("workspace-tea/data") && found[1].1.contains("storage class fast"),
        "{found:?}"
    );
    let (conditions, events) = reported(&observed);
    assert_eq!(conditions, ["Valid=True Valid", "Ready=False SharedVolumeNotFound"]);
    assert_eq!(events, 2);
}

#[test]
fn a_fault_stalls_the_template_until_it_is_corrected() {
    let faulty = observed(&json!({"image": "no image", "resources": {"cpu": 9}}));
    let (conditions, events) = reported(&faulty);
    assert_eq!(
        conditions,
        ["Valid=False InvalidImage", "Ready=False InvalidImage", "Stalled=True InvalidImage"]
    );
    assert_eq!(events, 2, "the image, and the quota");
    let now: Timestamp = "2026-03-04T05:06:07Z".parse().expect("a time");
    let status = |observed: &Observed| report(observed, &plan(observed, &LocalVm::default()), now).status;
    // Said once.
    let mut again = faulty.clone();
    Arc::make_mut(&mut again.template).status = status(&faulty);
    assert_eq!(reported(&again).1, 0);
    assert_eq!(status(&again), again.template.status, "nothing is written");
    // Corrected.
    let mut mended = observed(&json!({}));
    Arc::make_mut(&mut mended.template).status = status(&faulty);
    assert_eq!(reported(&mended), (vec!["Valid=True Valid".to_owned(), "Ready=True Ready".to_owned()], 0));
}

#[test]
fn volumes_that_may_not_be_cloned_are_a_fault() {
    let found = problems(&observed(&json!({"environmentType": "LocalVM", "image": "images/golden"})));
    assert_eq!(found.iter().map(|(reason, _)| *reason).collect::<Vec<_>>(), [reason::LOCAL_VM_DISABLED]);
    let unreadable =
        json!({"metadata": {"name": "lab", "namespace": "workspace-tea"}, "spec": {"environmentList": 1}});
    let observed = Observed { template: object(&unreadable), ..observed(&json!({})) };
    assert!(
        matches!(&problems(&observed)[..], [(reason::INVALID_SPEC, message)] if message.contains("cannot be read"))
    );
}

#[test]
fn which_of_two_limits_counts_is_said_and_is_no_fault() {
    let mut observed = observed(&json!({}));
    let spec = &mut Arc::make_mut(&mut observed.template).spec;
    spec.delete_after = "30d".to_owned();
    let never = Some("never".to_owned());
    spec.cleanup.delete_after_creation.clone_from(&never);
    spec.cleanup.stop_after_inactivity.clone_from(&never);
    spec.cleanup.delete_after_inactivity = never;
    let now: Timestamp = "2026-03-04T05:06:07Z".parse().expect("a time");
    let report = report(&observed, &plan(&observed, &LocalVm::default()), now);
    let valid =
        report.status.conditions.iter().find(|condition| condition.type_ == "Valid").expect("it is there");
    assert_eq!(valid.status, "True");
    assert!(
        valid.message.ends_with("; deleteAfter: 30d counts, since all of cleanup is never"),
        "{}",
        valid.message
    );
    assert_eq!(report.events.len(), 0);
}

#[test]
fn the_store_of_templates_takes_the_answers_to_writes_of_their_status() {
    let mut factory = StoreFactory::default();
    let mut set = StoreSet::new("template", &mut factory);
    Stores::declare(&mut set, &BTreeMap::new());
    let written = set.finish().written;
    assert!(written.get(KindInfo::of::<TemplateKind>()).is_ok());
    assert!(written.get(KindInfo::of::<WorkspaceKind>()).is_err(), "nothing writes these here");
}
