//! Tests of plans and reports, with JSON as the API server returns it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::observe::Observed;
use super::plan::plan;
use super::reconcile::Settings;
use super::report::report;
use crate::controllers::shared::mirrors::PERMITTED;
use crate::fixtures::{now, object};
use crate::kinds::{MirrorClaim, MirrorVolume, Namespace};
use crate::runtime::merge;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Outcome, Reconciled};

const PROVISIONER: &str = "pmp.crownlabs.polito.it";

fn settings() -> Settings {
    Settings { provisioner: PROVISIONER.to_owned(), class: "pvc-mirror".to_owned() }
}

/// The claim of a mirror in the personal namespace of `ada`, with these changes.
fn claim(more: &Value) -> Arc<MirrorClaim> {
    let mut claim = json!({
        "metadata": {
            "name": "ada-drive-mirror", "namespace": "tenant-ada", "uid": "c1",
            "annotations": {"volume.kubernetes.io/storage-provisioner": PROVISIONER},
        },
        "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "pvc-mirror",
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "ada-drive", "namespace": "drives"},
        },
        "status": {"phase": "Pending"},
    });
    merge::apply(&mut claim, more);
    object(claim)
}

/// The origin, with these changes.
fn origin(more: &Value) -> Arc<MirrorClaim> {
    let permitted = "crownlabs.polito.it/type=tenant,crownlabs.polito.it/name=ada";
    let mut origin = json!({
        "metadata": {"name": "ada-drive", "namespace": "drives", "uid": "o1", "annotations": {PERMITTED: permitted}},
        "spec": {"volumeName": "pv-1"},
        "status": {"phase": "Bound", "accessModes": ["ReadWriteMany"]},
    });
    merge::apply(&mut origin, more);
    object(origin)
}

/// The volume of the origin, with these changes.
fn source(more: &Value) -> Arc<MirrorVolume> {
    let mut volume = json!({
        "metadata": {"name": "pv-1", "uid": "v1"},
        "spec": {
            "csi": {"driver": "nfs.csi", "volumeHandle": "h", "volumeAttributes": {"share": "/a"}},
            "mountOptions": ["nfsvers=4.1"], "volumeMode": "Filesystem",
            "claimRef": {"namespace": "drives", "name": "ada-drive", "uid": "o1"},
        },
    });
    merge::apply(&mut volume, more);
    object(volume)
}

fn namespace(labels: &Value) -> Arc<Namespace> {
    object(json!({"metadata": {"name": "tenant-ada", "labels": labels}}))
}

/// A mirror that is provisioned now.
fn ready() -> Observed {
    Observed {
        claim: claim(&json!({})),
        is_selected: true,
        namespace: Some(namespace(&json!({
            "crownlabs.polito.it/type": "tenant", "crownlabs.polito.it/name": "ada",
        }))),
        origin: Some(origin(&json!({}))),
        source: Some(source(&json!({}))),
        reclaim_policy: "Delete".to_owned(),
        volumes: Vec::new(),
        told: None,
    }
}

/// The reasons and messages of the events of a reconcile.
fn events(observed: &Observed, plan: &Plan) -> Vec<String> {
    let report = report(&Reconciled::of(observed, &settings(), plan, &Outcome::default(), now()));
    assert_eq!(report.status, observed.claim.status, "the status belongs to others");
    report
        .events
        .into_iter()
        .map(|event| format!("{:?} {}: {}", event.type_, event.reason, event.message))
        .collect()
}

#[test]
fn a_permitted_mirror_gets_the_source_of_its_origin() {
    let observed = ready();
    let plan = plan(&observed, &settings());
    let volume = plan.ensure[0].manifest.as_ref().expect("new").json();
    let expected = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": "pvc-c1",
            "labels": {
                "crownlabs.polito.it/mirrored-pv": "pv-1",
                "crownlabs.polito.it/mirrored-pvc-name": "ada-drive",
                "crownlabs.polito.it/mirrored-pvc-namespace": "drives",
            },
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
        },
        "spec": {
            "capacity": {"storage": "1"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "pvc-mirror",
            "csi": {"driver": "nfs.csi", "volumeHandle": "h", "volumeAttributes": {"share": "/a"}},
            "mountOptions": ["nfsvers=4.1"],
            "volumeMode": "Filesystem",
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "tenant-ada",
                "name": "ada-drive-mirror", "uid": "c1",
            },
        },
    });
    assert_eq!(*volume, expected);
    assert_eq!(
        events(&observed, &plan),
        ["Normal MirrorProvisioned: Successfully provisioned volume pvc-c1"]
    );
    let confirmed: Vec<String> = plan.confirm.iter().map(|(_, key)| key.to_string()).collect();
    assert_eq!(confirmed, ["tenant-ada/ada-drive-mirror", "drives/ada-drive", "tenant-ada"]);
}

#[test]
fn a_long_name_of_an_origin_is_shortened_in_labels() {
    let name = "a".repeat(80);
    let observed = Observed { origin: Some(origin(&json!({"metadata": {"name": name}}))), ..ready() };
    let label = &plan(&observed, &settings()).ensure[0].labels["crownlabs.polito.it/mirrored-pvc-name"];
    assert_eq!((label.len(), label.starts_with("aaaa")), (63, true));
}

#[test]
fn a_claim_that_is_not_waiting_for_this_daemon_is_left_alone() {
    let other = json!({"metadata": {"annotations": {"volume.kubernetes.io/storage-provisioner": "other"}}});
    let bound = json!({"spec": {"volumeName": "pvc-c1"}});
    let made = source(&json!({"metadata": {"name": "pvc-c1"}}));
    for (what, observed) in [
        ("another provisioner", Observed { claim: claim(&other), ..ready() }),
        ("bound", Observed { claim: claim(&bound), ..ready() }),
        ("provisioned", Observed { volumes: vec![made], ..ready() }),
        ("gone", Observed { claim: claim(&json!({"metadata": {"uid": ""}})), ..ready() }),
        ("of another daemon", Observed { is_selected: false, ..ready() }),
    ] {
        let plan = plan(&observed, &settings());
        assert_eq!((plan.ensure.len(), plan.remove.len()), (0, 0), "{what}");
        assert_eq!(events(&observed, &plan), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn a_mirror_is_refused_in_the_order_of_the_conditions() {
    let with = |more: Value| Observed { claim: claim(&more), ..ready() };
    let of = |more: Value| Observed { origin: Some(origin(&more)), ..ready() };
    let on = |more: Value| Observed { source: Some(source(&more)), ..ready() };
    let within = |labels: Value| Observed { namespace: Some(namespace(&labels)), ..ready() };
    let data_source = |more: Value| with(json!({"spec": {"dataSourceRef": more}}));
    let annotated = |text: &str| of(json!({"metadata": {"annotations": {PERMITTED: text}}}));
    for (observed, type_, begin) in [
        (data_source(Value::Null), "Warning", "it has no dataSourceRef"),
        (
            data_source(json!({"kind": "VolumeSnapshot"})),
            "Warning",
            "its dataSourceRef VolumeSnapshot ada-drive is not a",
        ),
        (
            data_source(json!({"apiGroup": "example.org"})),
            "Warning",
            "its dataSourceRef PersistentVolumeClaim",
        ),
        (
            data_source(json!({"namespace": null})),
            "Warning",
            "its dataSourceRef PersistentVolumeClaim ada-drive",
        ),
        (
            Observed { origin: None, ..ready() },
            "Warning",
            "Origin PVC does not exist: PersistentVolumeClaim drives/ada-drive",
        ),
        (of(json!({"metadata": {"annotations": null}})), "Warning", "Unauthorized: the annotation"),
        (annotated(""), "Warning", "Unauthorized: the annotation"),
        (annotated("a b"), "Warning", "the annotation pmp.crownlabs.polito.it/required-target-ns-labels of"),
        // A sandbox, the namespace of another user, and one without labels.
        (
            within(json!({"crownlabs.polito.it/type": "sandbox", "crownlabs.polito.it/name": "ada"})),
            "Warning",
            "Unauthorized: ",
        ),
        (
            within(json!({"crownlabs.polito.it/type": "tenant", "crownlabs.polito.it/name": "eve"})),
            "Warning",
            "Unauthorized: ",
        ),
        (Observed { namespace: None, ..ready() }, "Warning", "Unauthorized: "),
        (
            of(json!({"status": {"phase": "Pending"}})),
            "Normal",
            "PersistentVolumeClaim drives/ada-drive is not bound yet",
        ),
        (
            Observed { source: None, ..ready() },
            "Normal",
            "PersistentVolumeClaim drives/ada-drive is not bound yet",
        ),
        (
            of(json!({"status": {"phase": "Lost"}})),
            "Warning",
            "PersistentVolumeClaim drives/ada-drive has lost its volume",
        ),
        (
            of(json!({"status": {"accessModes": ["ReadWriteOnce"]}})),
            "Warning",
            "the volume of PersistentVolumeClaim drives/ada-drive does not have",
        ),
        (on(json!({"spec": {"csi": null}})), "Warning", "PersistentVolume pv-1 is not of a CSI driver"),
        (
            with(json!({"spec": {"volumeMode": "Block"}})),
            "Warning",
            "its volumeMode is Block, but that of PersistentVolumeClaim drives/ada-drive is Filesystem",
        ),
    ] {
        let plan = plan(&observed, &settings());
        assert!(plan.ensure.is_empty(), "{begin}");
        let told = events(&observed, &plan);
        let [event] = &told[..] else { panic!("one event about {begin}: {told:?}") };
        assert!(event.starts_with(&format!("{type_} MirrorRefused: {begin}")), "{event}");
        // It is published once.
        let message = event.split_once(": ").expect("a message").1.to_owned();
        let again = Observed { told: Some(message), ..observed };
        assert_eq!(events(&again, &plan), Vec::<String>::new());
    }
}

#[test]
fn only_a_released_volume_of_a_former_mirror_is_removed() {
    let volume = |uid: &str, phase: &str, policy: &str| {
        source(&json!({
            "metadata": {"name": format!("pvc-{uid}"), "uid": uid, "resourceVersion": "7"},
            "spec": {
                "claimRef": {"namespace": "tenant-ada", "name": "ada-drive-mirror", "uid": uid},
                "persistentVolumeReclaimPolicy": policy,
            },
            "status": {"phase": phase},
        }))
    };
    let removed = |claim: Arc<MirrorClaim>, volume: Arc<MirrorVolume>| -> usize {
        let observed = Observed { claim, volumes: vec![volume], ..ready() };
        plan(&observed, &settings()).remove.len()
    };
    let gone = || claim(&json!({"metadata": {"uid": ""}}));
    for (what, claim, volume, expected) in [
        ("its claim is gone", gone(), volume("c0", "Released", "Delete"), 1),
        ("a new claim has its name", claim(&json!({})), volume("c0", "Released", "Delete"), 1),
        ("the current one", claim(&json!({})), volume("c1", "Released", "Delete"), 0),
        ("bound", gone(), volume("c0", "Bound", "Delete"), 0),
        ("to be kept", gone(), volume("c0", "Released", "Retain"), 0),
    ] {
        assert_eq!(removed(claim, volume), expected, "{what}");
    }
}
