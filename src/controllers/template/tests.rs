//! Tests of plans and reports, with JSON as the API server returns it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::GenericRef;
use crate::api::reason::{self, Reason};
use crate::api::requirements::{ClassProperties, Cluster, NodeRoom, Pool, Settings, VolumeState};
use crate::api::template::TemplateKind;
use crate::api::workspace::WorkspaceKind;
use crate::config::{LocalVm, StorageMode};
use crate::fixtures::{now, object};
use crate::runtime::merge;
use crate::runtime::plan::KindInfo;
use crate::runtime::store::StoreFactory;
use crate::runtime::store_set::StoreSet;

/// How long a problem elsewhere must last to make a Template `Stalled`.
const STALLED_AFTER: Duration = Duration::from_mins(2);

/// A Template of a course with one environment and these further members.
fn observed(more: &Value) -> Observed {
    let mut environment = json!({
        "name": "desktop", "environmentType": "VirtualMachine", "image": "example.org/desktop", "persistent": true,
        "resources": {"cpu": 4, "reservedCPUPercentage": 50, "memory": "4Gi", "disk": "10Gi"},
    });
    merge::apply(&mut environment, more);
    let quota = json!({"cpu": 8, "memory": "8Gi", "instances": 2});
    Observed {
        template: object(json!({
            "metadata": {"name": "lab", "namespace": "workspace-tea", "uid": "t", "generation": 3},
            "spec": {"prettyName": "Lab", "description": "d", "environmentList": [environment]},
        })),
        workspace: Some(object(json!({"metadata": {"name": "tea"}, "spec": {"quota": quota}}))),
        volumes: [].into(),
        cluster: Arc::new(Cluster { has_kubevirt: true, has_cdi: true, ..Cluster::default() }),
        has_import_secret: true,
    }
}

/// The problems of a Template.
fn problems(observed: &Observed) -> Vec<(Reason, String)> {
    let problems = plan(observed, &LocalVm::default()).problems;
    problems.into_iter().map(|problem| (problem.reason, problem.message)).collect()
}

/// The conditions after a reconcile, each as `type=status reason`, and the number of events.
fn reported(observed: &Observed) -> (Vec<String>, usize) {
    let now: Timestamp = now();
    let report = report(observed, STALLED_AFTER, &plan(observed, &LocalVm::default()), now);
    let conditions = &report.status.conditions;
    let texts = conditions.iter().map(|each| format!("{}={} {}", each.type_, each.status, each.reason));
    (texts.collect(), report.events.len())
}

#[test]
fn a_valid_template_without_its_class_and_volume_is_not_ready() {
    let mount = json!({"sharedVolume": {"name": "data", "namespace": "workspace-tea"}, "mountPath": "/data"});
    let mut observed = observed(&json!({"storageClassName": "fast", "sharedVolumeMounts": [mount]}));
    let volume = GenericRef::new("workspace-tea", "data");
    observed.volumes = [(volume.clone(), VolumeState::Exported)].into();
    assert_eq!(problems(&observed), []);
    observed.volumes = [(volume, VolumeState::Waiting(String::new()))].into();
    let slow = ("slow".to_owned(), ClassProperties::default());
    Arc::make_mut(&mut observed.cluster).storage_classes = Some([slow].into());
    let found = problems(&observed);
    let reasons: Vec<Reason> = found.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(reasons, [reason::STORAGE_CLASS_NOT_FOUND, reason::SHARED_VOLUME_NOT_READY]);
    assert!(
        found[0].1.contains("storage class fast") && found[1].1.contains("workspace-tea/data"),
        "{found:?}"
    );
    let (conditions, events) = reported(&observed);
    assert_eq!(
        conditions,
        ["Valid=True Valid", "Ready=False StorageClassNotFound", "Stalled=False StorageClassNotFound"]
    );
    assert_eq!(events, 2);
}

#[test]
fn a_course_that_does_not_exist_keeps_the_template_from_being_ready_and_stalls_it_in_time() {
    let of_course = |namespace: &str, course: &str| {
        let mut observed = observed(&json!({}));
        observed.workspace = None;
        let template = Arc::make_mut(&mut observed.template);
        template.metadata.namespace = namespace.into();
        template.spec.workspace_ref.name = course.into();
        observed
    };
    // A Template in the namespace of a Tenant, or without a course, needs no Workspace.
    for (namespace, course) in [("tenant-ada", "ghost"), ("workspace-tea", "")] {
        assert_eq!(reported(&of_course(namespace, course)).0, ["Valid=True Valid", "Ready=True Ready"]);
    }
    let mut observed = of_course("workspace-tea", "ghost");
    let begin: Timestamp = now();
    let at = |observed: &Observed, now| {
        let report = report(observed, STALLED_AFTER, &plan(observed, &LocalVm::default()), now);
        let [_, ready, stalled] = &report.status.conditions[..] else { panic!("{:?}", report.status) };
        assert_eq!((&*ready.status, &*ready.reason), ("False", "WorkspaceNotFound"));
        assert!(ready.message.contains("Workspace ghost"), "{ready:?}");
        (stalled.status.to_string(), report.requeue_after, report.status)
    };
    let (stalled, after, status) = at(&observed, begin);
    assert_eq!((&*stalled, after), ("False", Some(STALLED_AFTER)));
    Arc::make_mut(&mut observed.template).status = status;
    let (stalled, after, _) = at(&observed, begin + Duration::from_secs(119));
    assert_eq!((&*stalled, after), ("False", Some(Duration::from_secs(1))));
    let (stalled, after, _) = at(&observed, begin + STALLED_AFTER);
    assert_eq!((&*stalled, after), ("True", None));
}

#[test]
fn a_template_that_waits_for_a_node_of_a_pool_is_ready_and_reports_it_once() {
    let mut observed = observed(&json!({"nodeSelector": {"pool": "large"}}));
    let room = |labels: Value| NodeRoom {
        labels: serde_json::from_value(labels).expect("labels"),
        allocatable: [("cpu", "64"), ("memory", "256Gi")]
            .map(|(name, amount)| (name.to_owned(), amount.parse().expect("an amount")))
            .into(),
        ..NodeRoom::default()
    };
    let machine = "kubevirt.io/schedulable";
    let cluster = Arc::make_mut(&mut observed.cluster);
    cluster.nodes = vec![room(json!({machine: "true"}))];
    assert_eq!(reported(&observed).0, ["Valid=True Valid", "Ready=False NoNode", "Stalled=False NoNode"]);
    let cluster = Arc::make_mut(&mut observed.cluster);
    let node = room(json!({machine: "true", "pool": "large"}));
    cluster.settings.pools = vec![Pool { name: "large-machines".to_owned(), node }];
    let (conditions, events) = reported(&observed);
    assert_eq!(
        (&conditions[..], events),
        (&["Valid=True Valid", "Ready=True NodeOnDemand"].map(str::to_owned)[..], 1)
    );
    let found = problems(&observed);
    assert!(found[0].1.contains("it waits for a node of the pool large-machines"), "{found:?}");
    let now: Timestamp = now();
    let status = report(&observed, STALLED_AFTER, &plan(&observed, &LocalVm::default()), now).status;
    Arc::make_mut(&mut observed.template).status = status;
    assert_eq!(reported(&observed).1, 0);
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
    let now: Timestamp = now();
    let status = |observed: &Observed| {
        report(observed, STALLED_AFTER, &plan(observed, &LocalVm::default()), now).status
    };
    assert_eq!(status(&faulty).observed_generation, Some(3));
    // Reported once.
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
fn the_effective_one_of_two_limits_is_reported_without_a_fault() {
    let mut observed = observed(&json!({}));
    let spec = &mut Arc::make_mut(&mut observed.template).spec;
    spec.delete_after = "30d".to_owned();
    let never = Some("never".to_owned());
    spec.cleanup.delete_after_creation.clone_from(&never);
    spec.cleanup.stop_after_inactivity.clone_from(&never);
    spec.cleanup.delete_after_inactivity = never;
    let now: Timestamp = now();
    let report = report(&observed, STALLED_AFTER, &plan(&observed, &LocalVm::default()), now);
    let valid =
        report.status.conditions.iter().find(|condition| condition.type_ == "Valid").expect("it is there");
    assert_eq!(valid.status, "True");
    assert!(
        valid.message.ends_with("; deleteAfter: 30d applies, because all of cleanup is never"),
        "{}",
        valid.message
    );
    assert_eq!(report.events.len(), 0);
}

#[test]
fn the_store_of_templates_applies_responses_to_status_writes() {
    let mut factory = StoreFactory::default();
    let mut set = StoreSet::new("template", &mut factory);
    Stores::declare(&mut set, &BTreeMap::new(), Settings::default(), StorageMode::Nfs);
    let written = set.finish().written;
    assert!(written.get(KindInfo::of::<TemplateKind>()).is_ok());
    assert!(written.get(KindInfo::of::<WorkspaceKind>()).is_err(), "nothing writes these here");
}
