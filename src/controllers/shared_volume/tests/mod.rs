//! Tests of plans and reports, with JSON as the API server returns it.

mod deletion;
mod mirrors;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::observe::Observed;
use super::plan::plan;
use super::reconcile::Settings;
use super::report::report;
use super::stores::Stores;
use crate::api::Object;
use crate::api::shared_volume::{SharedVolumeKind, SharedVolumePhase};
use crate::controllers::shared::responsibility::{Responsibility, Standing};
use crate::controllers::shared::waits::nfs_class_fault;
use crate::fixtures::{now, object};
use crate::kinds::{JobKind, NfsClaim};
use crate::runtime::apply::Failure;
use crate::runtime::children::Children;
use crate::runtime::component::Component;
use crate::runtime::error::ApiError;
use crate::runtime::merge;
use crate::runtime::object_events::Events;
use crate::runtime::plan::Plan;
use crate::runtime::queue::Action;
use crate::runtime::reconciler::{Outcome, Reconciled, Report};
use crate::runtime::store::StoreFactory;
use crate::runtime::store_set::StoreSet;

const OWNER: &str = r#"[{"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "SharedVolume", "name": "data.one",
    "uid": "v1", "controller": true, "blockOwnerDeletion": true}]"#;

fn owners() -> Value {
    serde_json::from_str(OWNER).expect("JSON")
}

/// A volume without children, with further members.
fn fresh(more: &Value) -> Observed {
    let mut volume = json!({
        "metadata": {"name": "data.one", "namespace": "workspace-tea", "uid": "v1", "generation": 1},
        "spec": {"prettyName": "Data", "size": "10Gi"},
    });
    merge::apply(&mut volume, more);
    Observed {
        volume: object(&volume),
        standing: Standing::Selected,
        persistent_volume: None,
        class_fault: None,
        events: Events::Unknown,
        children: Children::default(),
        templates: BTreeSet::new(),
        instances: BTreeSet::new(),
        mirrors: BTreeSet::new(),
    }
}

fn claim(more: &Value) -> Arc<NfsClaim> {
    let mut claim = json!({
        "metadata": {
            "name": "shvol-data.one", "namespace": "workspace-tea", "uid": "c1", "ownerReferences": owners(),
            "labels": {
                "crownlabs.polito.it/managed-by": "instance", "crownlabs.polito.it/volume-type": "sharedvolume",
            },
        },
        "spec": {"resources": {"requests": {"storage": "10Gi"}}, "volumeName": "pv"},
        "status": {"phase": "Bound"},
    });
    merge::apply(&mut claim, more);
    object(&claim)
}

/// A volume whose claim is bound to a folder on NFS.
fn bound(more: &Value, of_claim: &Value) -> Observed {
    let attributes = json!({"server": "nfs", "clusterID": "rook", "share": "/exports/pv"});
    let storage = json!({"metadata": {"name": "pv"}, "spec": {"csi": {"volumeAttributes": attributes}}});
    let mut observed = Observed { persistent_volume: Some(object(&storage)), ..fresh(more) };
    observed.children.set([claim(of_claim)]);
    observed
}

fn made(plan: &Plan, kind: &str) -> Value {
    let desired = plan.ensure.iter().find(|desired| desired.kind.kind == kind).expect("planned");
    desired.manifest.as_ref().expect("complete").json().clone()
}

fn planned(observed: &Observed) -> Plan {
    plan(observed, &Settings::default(), now())
}

fn reported(observed: &Observed, failures: &[Failure]) -> Report<SharedVolumeKind> {
    report(&Reconciled::of(
        observed,
        &Settings::default(),
        &planned(observed),
        &Outcome::of(failures.to_vec()),
        now(),
    ))
}

fn condition<'a>(report: &'a Report<SharedVolumeKind>, kind: &str) -> (&'a str, &'a str) {
    let conditions = &report.status.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind).expect("the condition");
    (&found.reason, &found.message)
}

#[test]
fn claim_and_job_have_the_fields_of_the_go_operators_objects() {
    let plan = planned(&fresh(&json!({})));
    let expected = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "shvol-data.one",
            "namespace": "workspace-tea",
            "labels": {
                "crownlabs.polito.it/managed-by": "instance", "crownlabs.polito.it/volume-type": "sharedvolume",
            },
            "ownerReferences": owners(),
        },
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "rook-nfs",
            "resources": {"requests": {"storage": "10Gi"}},
        },
    });
    assert_eq!(made(&plan, "PersistentVolumeClaim"), expected);
    assert_eq!(plan.ensure.len(), 1, "no Job before there is storage");
    assert_eq!(
        plan.patches[0].patch,
        json!({"metadata": {"labels": {"crownlabs.polito.it/managed-by": "instance"}}})
    );
    let resources = json!({"cpu": "100m", "memory": "128Mi"});
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "shvol-data-one-provision", "namespace": "workspace-tea", "ownerReferences": owners(),
        },
        "spec": {
            "backoffLimit": 3,
            "ttlSecondsAfterFinished": 604_800,
            "template": {"spec": {
                "restartPolicy": "OnFailure",
                "containers": [{
                    "name": "chown-container",
                    "image": "busybox",
                    "command": ["chown", "-R", "1010:1010", "/media/mydrive"],
                    "volumeMounts": [{"name": "drive", "mountPath": "/media/mydrive"}],
                    "resources": {"requests": resources, "limits": resources},
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "seccompProfile": {"type": "RuntimeDefault"},
                    },
                }],
                "volumes": [{"name": "drive", "persistentVolumeClaim": {"claimName": "shvol-data.one"}}],
            }},
        },
    });
    let plan = planned(&bound(&json!({}), &json!({})));
    assert_eq!(made(&plan, "Job"), expected);
    let labels = &plan.ensure.iter().find(|desired| desired.kind.kind != "Job").expect("the claim").labels;
    assert_eq!(labels.get("crownlabs.polito.it/volume-provisioning").map(String::as_str), Some("pending"));
}

#[test]
fn the_phase_follows_the_claim_and_the_job() {
    let phase = |observed: &Observed| reported(observed, &[]).status.phase;
    assert_eq!(phase(&fresh(&json!({}))), SharedVolumePhase::Pending);
    let unbound = bound(&json!({}), &json!({"status": {"phase": "Pending"}}));
    assert_eq!(phase(&unbound), SharedVolumePhase::Pending);
    assert_eq!(
        phase(&Observed { persistent_volume: None, ..bound(&json!({}), &json!({})) }),
        SharedVolumePhase::Pending
    );
    let preparing = reported(&bound(&json!({}), &json!({})), &[]);
    assert_eq!(preparing.status.phase, SharedVolumePhase::Provisioning);
    assert_eq!(
        (&*preparing.status.server_address, &*preparing.status.export_path, &*preparing.status.pv_name),
        ("nfs.rook", "/exports/pv", "pv")
    );
    // The Job has succeeded: the label of the claim and the finalizer are planned, and then the volume is ready.
    let done = object(
        json!({"metadata": {"name": "shvol-data-one-provision", "namespace": "workspace-tea", "ownerReferences": owners()}, "status": {"succeeded": 1}}),
    );
    let mut succeeded = bound(&json!({}), &json!({}));
    succeeded.children.set::<JobKind>([done]);
    let finalizers = &planned(&succeeded).patches[0].patch["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["crownlabs.polito.it/shvolctrl-volume-protection"]));
    assert_eq!(phase(&succeeded), SharedVolumePhase::Provisioning);
    let completed = json!({"metadata": {"labels": {"crownlabs.polito.it/volume-provisioning": "completed"}}});
    let protected = json!({"metadata": {"finalizers": ["crownlabs.polito.it/shvolctrl-volume-protection"]}});
    assert_eq!(phase(&bound(&json!({}), &completed)), SharedVolumePhase::Provisioning);
    let ready = bound(&protected, &completed);
    let told = reported(&ready, &[]);
    assert_eq!(told.status.phase, SharedVolumePhase::Ready);
    assert_eq!(told.events, Vec::new());
    // After the Job has expired, no new one is needed.
    assert!(planned(&ready).ensure.iter().all(|desired| desired.kind.kind != "Job"));
}

#[test]
fn problems_are_reported() {
    let error = |observed: &Observed, reason: &str, sentence: &str| {
        let told = reported(observed, &[]);
        assert_eq!(told.status.phase, SharedVolumePhase::Error, "{reason}");
        let (found, message) = condition(&told, "Reconciled");
        assert_eq!(found, reason);
        assert!(message.starts_with(sentence), "{message}");
        assert_eq!(told.events[0].reason, reason);
    };
    for (size, why) in [
        ("0", "is not a positive amount"),
        ("-5Gi", "is not a positive amount"),
        ("much", "is not an amount of storage"),
        ("", "is not an amount of storage"),
    ] {
        let observed = fresh(&json!({"spec": {"size": size}}));
        assert!(planned(&observed).ensure.is_empty(), "nothing is created for {size:?}");
        let sentence = format!("spec.size {size:?} {why}: set it to an amount above 0, such as 10Gi");
        error(&observed, "InvalidSize", &sentence);
    }
    error(&fresh(&json!({"spec": 5})), "InvalidSpec", "the spec cannot be read: spec: ");
    error(
        &bound(&json!({"spec": {"size": "5Gi"}}), &json!({})),
        "InvalidSize",
        "Size cannot be less than previous value: the volume has 10Gi and spec.size asks for 5Gi; set it to 10Gi",
    );
    let local = object(json!({"metadata": {"name": "pv"}, "spec": {}}));
    let local = Observed { persistent_volume: Some(local), ..bound(&json!({}), &json!({})) };
    error(&local, "MissingCSI", "PV misses CSI params: PersistentVolume pv names no NFS server and share");
    let ended = json!({"metadata": {"name": "shvol-data-one-provision", "namespace": "workspace-tea", "ownerReferences": owners()}, "status": {"conditions": [
        {"type": "Failed", "status": "True", "message": "too often"},
    ]}});
    let mut failed = bound(&json!({}), &json!({}));
    failed.children.set::<JobKind>([object(&ended)]);
    error(
        &failed,
        "ProvisioningFailed",
        "the volume could not be prepared: Job workspace-tea/shvol-data-one-provision has failed: too often; \
         delete the Job",
    );
    let quota = Failure {
        component: Component::Part("volume"),
        kind: "PersistentVolumeClaim",
        name: "shvol-data.one".to_owned(),
        error: ApiError::QuotaExceeded("exceeded quota: q".to_owned()),
    };
    let told = reported(&fresh(&json!({})), &[quota]);
    assert_eq!(told.status.phase, SharedVolumePhase::ResourceQuotaExceeded);
    assert_eq!(
        condition(&told, "Reconciled"),
        ("ResourceQuotaExceeded", "PVC exceeded the resource quota: exceeded quota: q")
    );
}

#[test]
fn a_volume_grows() {
    let larger = planned(&bound(&json!({"spec": {"size": "20Gi"}}), &json!({})));
    let growth = larger.patches.iter().find(|patch| patch.kind.kind == "PersistentVolumeClaim");
    assert_eq!(
        growth.expect("growth").patch,
        json!({"spec": {"resources": {"requests": {"storage": "20Gi"}}}})
    );
    // The same size in other units.
    let same = planned(&bound(&json!({"spec": {"size": "10240Mi"}}), &json!({})));
    assert!(same.patches.iter().all(|patch| patch.kind.kind == "SharedVolume"));
    assert!(same.problems.is_empty());
}

#[test]
fn a_quota_with_free_capacity_wakes_its_rejected_volumes() {
    let mut factory = StoreFactory::default();
    let mut set = StoreSet::new("sharedVolume", &mut factory);
    Stores::declare(&mut set, &Responsibility::default());
    let queue = set.finish().queue;
    let offer = |object: Value| assert!(factory.offer(&object).expect("it can be read"), "it is stored");
    let volume = |namespace: &str, name: &str, phase: &str| {
        let metadata = json!({"name": name, "namespace": namespace, "uid": name});
        offer(json!({"kind": "SharedVolume", "metadata": metadata, "status": {"phase": phase}}));
    };
    volume("course", "refused", "ResourceQuotaExceeded");
    volume("course", "ready", "Ready");
    volume("other", "elsewhere", "ResourceQuotaExceeded");
    let woken = || {
        let mut woken = Vec::new();
        while let Some(job) = queue.next().now_or_never().flatten() {
            woken.push(job.key.to_string());
            queue.done(job, Action::AwaitChange);
        }
        woken
    };
    woken();
    let quota = |version: u32, hard: &str, used: &str| {
        let status = json!({"hard": {"requests.storage": hard}, "used": {"requests.storage": used}});
        let metadata =
            json!({"name": "q", "namespace": "course", "uid": "q", "resourceVersion": version.to_string()});
        offer(json!({"kind": "ResourceQuota", "metadata": metadata, "status": status}));
        woken()
    };
    let nobody: [&str; 0] = [];
    assert_eq!(quota(1, "4Gi", "4Gi"), nobody, "a new one takes room");
    assert_eq!(quota(2, "2Gi", "4Gi"), nobody, "a smaller one, too");
    assert_eq!(quota(3, "2048Mi", "4Gi"), nobody, "the same, spelled otherwise");
    assert_eq!(quota(4, "4Gi", "4Gi"), ["course/refused"], "it is raised");
    assert_eq!(quota(5, "4Gi", "3Gi"), ["course/refused"], "something was freed");
    assert_eq!(quota(6, "4Gi", "4Gi"), nobody, "and taken");
}

#[test]
fn the_job_of_a_claim_being_deleted_is_removed_first() {
    let job = |owner: &str| {
        let mut owners = owners();
        owners[0]["uid"] = owner.into();
        object(
            json!({"metadata": {"name": "shvol-data-one-provision", "namespace": "workspace-tea", "uid": "j1", "ownerReferences": owners}}),
        )
    };
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}});
    let mut former = json!({"metadata": {"ownerReferences": owners()}});
    former["metadata"]["ownerReferences"][0]["uid"] = "v0".into();
    for claim in [&deleted, &former] {
        let mut observed = bound(&json!({}), claim);
        let kinds = |plan: &Plan| -> [Vec<&str>; 2] {
            [
                plan.ensure.iter().map(|desired| desired.kind.kind).collect(),
                plan.remove.iter().map(|removal| removal.kind.kind).collect(),
            ]
        };
        let plan = planned(&observed);
        assert_eq!(kinds(&plan), [vec!["PersistentVolumeClaim"], vec![]], "{claim}: no Job yet");
        let reasons: Vec<&str> = plan.problems.iter().map(|problem| problem.reason.as_str()).collect();
        let told: &[&str] = if claim == &deleted { &["ClaimTerminating"] } else { &[] };
        assert_eq!(reasons, told, "{claim}");
        assert!(plan.problems.iter().all(|problem| problem.message.contains("remain: a.b/c")), "{claim}");
        observed.children.set::<JobKind>([job("v1")]);
        assert_eq!(kinds(&planned(&observed)), [vec!["PersistentVolumeClaim"], vec!["Job"]], "{claim}");
        // The Job of a former volume blocks the new one.
        observed.children.set::<JobKind>([job("v0")]);
        assert_eq!(kinds(&planned(&observed)), [vec!["PersistentVolumeClaim", "Job"], vec![]], "{claim}");
    }
}

#[test]
fn the_cause_of_an_unbound_claim_is_reported() {
    let mut observed = bound(
        &json!({}),
        &json!({"status": {"phase": "Pending"}, "spec": {"volumeName": null},
        "metadata": {"creationTimestamp": "2026-03-04T05:06:00Z"}}),
    );
    observed.persistent_volume = None;
    observed.class_fault = nfs_class_fault(Some(&BTreeMap::new()), "rook-nfs");
    let report = report(&Reconciled::of(
        &observed,
        &Settings::default(),
        &planned(&observed),
        &Outcome::default(),
        now(),
    ));
    assert_eq!(report.status.phase, SharedVolumePhase::Pending);
    let reconciled = report.status.conditions.iter().find(|condition| condition.type_ == "Reconciled");
    let reconciled = reconciled.expect("Reconciled");
    assert_eq!(&*reconciled.reason, "StorageClassNotFound");
    let claim = "PersistentVolumeClaim workspace-tea/shvol-data.one is not bound";
    assert_eq!(&*reconciled.message, format!("{claim}: storageclass \"rook-nfs\" not found"));
}
