use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::controllers::tenant::fixtures::{observed, owners, settings};
use crate::controllers::tenant::report::report;
use crate::fixtures::{now, object};
use crate::kinds::JobKind;
use crate::runtime::apply::Failure;
use crate::runtime::error::{ApiError, Leaving};
use crate::runtime::reconciler::{Outcome, Reconciled};
use crate::runtime::{ObjectKey, merge};

fn planned(observed: &Observed) -> Plan<Effect> {
    let settings = settings();
    let mut plan = Plan::default();
    super::plan(Children { observed, settings: &settings }, now(), &mut plan);
    plan
}

/// The claim of `ada.rossi` that this loop has created, with changes.
fn claim_with(more: &Value) -> Arc<NfsClaim> {
    let mut value = json!({
        "metadata": {
            "name": "ada-rossi-drive", "namespace": "mydrive-pvcs", "uid": "d1",
            "labels": {"crownlabs.polito.it/managed-by": "tenant", "crownlabs.polito.it/operator-selector": "test"},
            "annotations": {OWNER: "ada.rossi", EMAIL: "ada@example.org", TENANT_UID: "u1"},
        },
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    });
    merge::apply(&mut value, more);
    object(value)
}

fn bound(observed: &mut Observed, attributes: &Value) {
    let status = json!({"status": {"phase": "Bound"}, "spec": {"volumeName": "pv-1"}});
    observed.children.set::<NfsClaimKind>([claim_with(&status)]);
    observed.volume = Some(object(json!({
        "metadata": {"name": "pv-1", "uid": "v1"}, "spec": {"csi": {"volumeAttributes": attributes}},
    })));
}

fn nfs() -> Value {
    json!({"server": "nfs", "clusterID": "rook", "share": "/exports/ada"})
}

fn kinds(plan: &Plan<Effect>) -> Vec<&str> {
    plan.ensure.iter().map(|desired| desired.kind.kind).collect()
}

#[test]
fn a_new_claim_is_annotated_with_its_tenant_and_has_no_owner() {
    let plan = planned(&observed(&json!({}), &[]));
    let claim = plan.ensure[0].manifest.as_ref().expect("it is made").json();
    assert_eq!(claim["metadata"]["annotations"][OWNER], "ada.rossi");
    assert_eq!(claim["metadata"]["labels"][labels::TENANT], "ada.rossi");
    assert_eq!(claim["metadata"].get("ownerReferences"), None);
    assert_eq!(kinds(&plan), ["PersistentVolumeClaim"]);
}

#[test]
fn a_bound_volume_gets_a_secret_and_is_prepared_once() {
    let mut observed = observed(&json!({}), &[]);
    bound(&mut observed, &nfs());
    let plan = planned(&observed);
    assert_eq!(kinds(&plan), ["PersistentVolumeClaim", "Secret", "Job"]);
    assert_eq!(plan.ensure[0].labels[labels::VOLUME_PROVISIONING], "pending");
    let secret = plan.ensure[1].manifest.as_ref().expect("it is made").json();
    assert_eq!(secret["data"], json!({"server-name": "bmZzLnJvb2s=", "path": "L2V4cG9ydHMvYWRh"}));
    assert_eq!(secret["type"], "Opaque");
    let job = |status: Value| {
        object(
            json!({"metadata": {"name": "ada-rossi-drive-provision", "uid": "j1", "ownerReferences": owners("u1")},
            "status": status}),
        )
    };
    observed.children.set::<JobKind>([job(json!({"succeeded": 1}))]);
    let plan = planned(&observed);
    assert_eq!(plan.ensure[0].labels[labels::VOLUME_PROVISIONING], "completed");
    assert_eq!(kinds(&plan), ["PersistentVolumeClaim", "Secret"]);
    // The Job has been cleaned up since, and is not created again.
    observed.children.set::<JobKind>([]);
    let completed = json!({"metadata": {"labels": {labels::VOLUME_PROVISIONING: "completed"}},
        "status": {"phase": "Bound"}, "spec": {"volumeName": "pv-1"}});
    observed.children.set::<NfsClaimKind>([claim_with(&completed)]);
    assert_eq!(kinds(&planned(&observed)), ["PersistentVolumeClaim", "Secret"]);
}

#[test]
fn a_failed_job_is_reported() {
    let mut observed = observed(&json!({}), &[]);
    bound(&mut observed, &nfs());
    let failed =
        json!({"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}]});
    observed.children.set::<JobKind>([object(json!({
        "metadata": {"name": "ada-rossi-drive-provision", "uid": "j1", "ownerReferences": owners("u1")}, "status": failed,
    }))]);
    let plan = planned(&observed);
    assert_eq!(plan.problems[0].reason, "ProvisioningFailed");
    assert!(plan.problems[0].message.contains("BackoffLimitExceeded"));
}

#[test]
fn a_volume_that_is_not_nfs_gets_no_secret() {
    let mut observed = observed(&json!({}), &[]);
    bound(&mut observed, &json!({}));
    let plan = planned(&observed);
    assert_eq!(kinds(&plan), ["PersistentVolumeClaim", "Job"]);
    assert_eq!(plan.problems[0].reason, "VolumeNotNFS");
}

#[test]
fn a_volume_only_grows() {
    let mut observed = observed(&json!({}), &[]);
    for (asked, grows) in [("1Gi", false), ("2Gi", false), ("512Mi", true), ("0", true), ("", true)] {
        let spec = json!({"spec": {"resources": {"requests": {"storage": asked}}}});
        observed.children.set::<NfsClaimKind>([claim_with(&spec)]);
        assert_eq!(!planned(&observed).patches.is_empty(), grows, "{asked}");
    }
}

#[test]
fn a_kept_volume_is_reused_only_with_the_same_name_and_address() {
    let mut observed = observed(&json!({}), &[]);
    let of = |uid: &str, owner: &str, email: &str| {
        claim_with(&json!({"metadata": {"annotations": {OWNER: owner, EMAIL: email, TENANT_UID: uid}}}))
    };
    let reason =
        |observed: &Observed| planned(observed).problems.first().map(|problem| problem.reason.as_str());
    observed.children.set::<NfsClaimKind>([of("former", "ada.rossi", "Ada@Example.org")]);
    assert_eq!(reason(&observed), None, "the same person");
    assert_eq!(planned(&observed).ensure[0].annotations[TENANT_UID].as_deref(), Some("u1"));
    observed.children.set::<NfsClaimKind>([of("former", "ada.rossi", "other@example.org")]);
    assert_eq!(reason(&observed), Some("NameConflict"), "another person of the same name");
    observed.children.set::<NfsClaimKind>([of("u1", "ada.rossi", "other@example.org")]);
    assert_eq!(reason(&observed), None, "the address of the Tenant has changed");
    observed.children.set::<NfsClaimKind>([of("u2", "ada-rossi", "ada@example.org")]);
    assert_eq!(reason(&observed), Some("NameConflict"), "another name");
}

#[test]
fn a_volume_follows_its_tenant_to_another_selector() {
    let mut observed = observed(&json!({}), &[]);
    let former = json!({"crownlabs.polito.it/operator-selector": "former"});
    let known_by = |observed: &Observed| planned(observed).ensure[0].known_by.clone().expect("labels");
    observed.children.set::<NfsClaimKind>([claim_with(&json!({"metadata": {"labels": former}}))]);
    let ours = BTreeMap::from([(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_TENANT.to_owned())]);
    assert_eq!(known_by(&observed), ours, "it names its Tenant");
    assert_eq!(planned(&observed).ensure[0].labels["crownlabs.polito.it/operator-selector"], "test");
    observed
        .children
        .set::<NfsClaimKind>([claim_with(&json!({"metadata": {"labels": former, "annotations": null}}))]);
    assert_eq!(known_by(&observed).len(), 2, "one without a name is ours only with the selector");
}

#[test]
fn a_claim_being_deleted_is_not_used_and_its_job_is_deleted_first() {
    let job = |tenant: &str| {
        object(json!({
            "metadata": {"name": "ada-rossi-drive-provision", "namespace": "mydrive-pvcs", "uid": "j1", "ownerReferences": owners(tenant)},
            "status": {"succeeded": 1},
        }))
    };
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T05:06:07Z"}});
    let former = json!({"metadata": {"ownerReferences": owners("u0"), "labels": {labels::VOLUME_PROVISIONING: "completed"}}});
    let bound_with = |more: &Value| {
        let mut observed = observed(&json!({}), &[]);
        bound(&mut observed, &nfs());
        let mut value = serde_json::to_value(observed.claim().expect("bound")).expect("JSON");
        merge::apply(&mut value, more);
        observed.children.set::<NfsClaimKind>([object(value)]);
        observed
    };
    let removed =
        |plan: &Plan<Effect>| -> Vec<&str> { plan.remove.iter().map(|removal| removal.kind.kind).collect() };
    for claim in [&deleted, &former] {
        let mut observed = bound_with(claim);
        assert_eq!(
            kinds(&planned(&observed)),
            ["PersistentVolumeClaim"],
            "{claim}: no Secret, and no Job for it"
        );
        observed.children.set::<JobKind>([job("u1")]);
        let plan = planned(&observed);
        assert_eq!((kinds(&plan), removed(&plan)), (vec!["PersistentVolumeClaim"], vec!["Job"]), "{claim}");
        // The Job of a former Tenant blocks the new one.
        observed.children.set::<JobKind>([job("u0")]);
        let plan = planned(&observed);
        assert_eq!((kinds(&plan), removed(&plan)), (vec!["PersistentVolumeClaim", "Job"], vec![]), "{claim}");
    }
}

#[test]
fn an_unbound_claim_is_reported_in_conditions_and_the_tenant_works_without_it() {
    let settings = settings();
    let made =
        json!({"metadata": {"creationTimestamp": "2026-03-04T05:05:57Z"}, "status": {"phase": "Pending"}});
    let mut observed = observed(&json!({}), &[]);
    observed.children.set::<NfsClaimKind>([claim_with(&made)]);
    let waits = planned(&observed);
    assert!(waits.problems.is_empty() && waits.effects.is_empty(), "it may be bound at any moment");
    observed.class_fault = waits::nfs_class_fault(Some(&BTreeMap::new()), "rook-nfs");
    let plan = planned(&observed);
    let outcome = Outcome { effects: Vec::new(), ..Outcome::default() };
    let status = report(&Reconciled::of(&observed, &settings, &plan, &outcome, now())).status;
    let said = |type_: &str| {
        let found = status.conditions.iter().find(|condition| condition.type_ == *type_);
        found.map(|found| (found.status.to_string(), found.reason.to_string(), found.message.to_string()))
    };
    let cause = "PersistentVolumeClaim mydrive-pvcs/ada-rossi-drive is not bound: storageclass \"rook-nfs\" not found";
    let wanted = Some(("False".to_owned(), "StorageClassNotFound".to_owned(), cause.to_owned()));
    assert_eq!((said("MyDriveReady"), said("Reconciled")), (wanted.clone(), wanted));
    let (ready, _, message) = said("Ready").expect("Ready");
    assert_eq!((status.ready, &*ready), (true, "True"));
    assert!(message.ends_with("see condition MyDriveReady"), "{message}");
    // Once the claim is bound, these conditions disappear.
    observed.tenant =
        object(json!({"metadata": {"name": "ada.rossi", "uid": "u1"}, "spec": {}, "status": status}));
    bound(&mut observed, &nfs());
    let status = report(&Reconciled::of(&observed, &settings, &Plan::default(), &outcome, now())).status;
    assert!(!status.conditions.iter().any(|condition| condition.type_ == MY_DRIVE_READY));
}

#[test]
fn a_claim_that_a_finalizer_holds_is_reported_after_a_minute() {
    let settings = settings();
    let mut observed = observed(&json!({}), &[]);
    let leaving = Leaving {
        kind: "PersistentVolumeClaim",
        key: ObjectKey::new("mydrive-pvcs", "ada-rossi-drive"),
        since: Some(now()),
        finalizers: vec!["example.org/backup".into()],
        ..Leaving::default()
    };
    let (kind, name) = (leaving.kind, leaving.key.name.to_string());
    let error = ApiError::Leaving(Box::new(leaving));
    let outcome = Outcome::of(vec![Failure { component: MY_DRIVE, kind, name, error }]);
    bound(&mut observed, &nfs());
    let said = |seconds: i64| {
        let at = now() + jiff::SignedDuration::from_secs(seconds);
        let status = report(&Reconciled::of(&observed, &settings, &planned(&observed), &outcome, at)).status;
        let found = |type_: &str| {
            let found = status.conditions.iter().find(|condition| condition.type_ == *type_);
            found.map(|found| (found.reason.to_string(), found.message.to_string()))
        };
        ["Ready", "Reconciled", "MyDriveReady"].map(found)
    };
    let [ready, reconciled, drive] = said(59).map(|found| found.map(|(reason, _)| reason));
    let known = ["Pending", "Reconciled"].map(|reason| Some(reason.to_owned()));
    assert_eq!(([ready, reconciled], drive), (known, None));
    let message = "PersistentVolumeClaim mydrive-pvcs/ada-rossi-drive is being deleted (since 2026-03-04T05:06:07Z; \
                   its finalizers remain: example.org/backup); it is created again after that";
    let cause = Some(("ObjectTerminating".to_owned(), message.to_owned()));
    assert_eq!(said(60), [cause.clone(), cause.clone(), cause]);
}

#[test]
fn events_about_a_claim_are_read_once_it_has_waited_for_a_minute() {
    let made =
        json!({"metadata": {"creationTimestamp": "2026-03-04T05:04:07Z"}, "status": {"phase": "Pending"}});
    let mut observed = observed(&json!({}), &[]);
    observed.children.set::<NfsClaimKind>([claim_with(&made)]);
    let plan = planned(&observed);
    let about = plan.awaited.as_ref().expect("a question");
    assert_eq!((&*about.namespace, about.uids.contains("d1")), ("mydrive-pvcs", true));
    assert_eq!(plan.problems[0].reason, reason::VOLUME_UNBOUND);
}
