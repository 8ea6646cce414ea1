//! The plan of a mirror: a pure function of the observed state.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use super::decide::{Decision, PROVISIONED_BY, decide, released, volume_name};
use super::observe::Observed;
use super::reconcile::Settings;
use crate::api::labels;
use crate::api::names::label_sized;
use crate::controllers::shared::children::Parent;
use crate::kinds::{MirrorClaim, MirrorClaimKind, MirrorVolume, MirrorVolumeKind, NamespaceKind};
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::plan::{Desired, KindInfo, Ownership, Plan, Removal};

/// The time until a claim is looked at again whose origin is not bound. The binding of the origin queues it anyway.
const AGAIN: Duration = Duration::from_mins(1);

/// The plan.
pub fn plan(observed: &Observed, settings: &Settings) -> Plan {
    let mut plan = Plan::default();
    plan.remove.extend(released(observed).map(|volume| Removal::of(&**volume, Component::Whole)));
    match decide(observed, settings) {
        Decision::Mirror(origin, source) => {
            // A watch may lag behind: the origin may no longer permit the namespace, or the namespace may have lost the
            // labels.
            plan.confirm = vec![
                (KindInfo::of::<MirrorClaimKind>(), ObjectKey::of(&*observed.claim)),
                (KindInfo::of::<MirrorClaimKind>(), ObjectKey::of(origin)),
                (KindInfo::of::<NamespaceKind>(), ObjectKey::new("", observed.claim.namespace())),
            ];
            plan.ensure.push(volume(observed, settings, origin, source));
        }
        Decision::Refuse(refusal) if refusal.is_waiting => plan.requeue_after(AGAIN),
        Decision::Refuse(_) | Decision::None => {}
    }
    plan
}

/// The volume of a mirror. It has no owner: the controller manager releases it when the claim is gone. Its annotation
/// keeps the CSI driver from deleting the data.
fn volume(observed: &Observed, settings: &Settings, origin: &MirrorClaim, source: &MirrorVolume) -> Desired {
    let claim = &observed.claim;
    let labels = [
        (labels::MIRRORED_VOLUME, source.name()),
        (labels::MIRRORED_CLAIM, origin.name()),
        (labels::MIRRORED_NAMESPACE, origin.namespace()),
    ];
    let parent = Parent {
        owner: OwnerReference::default(),
        namespace: String::new(),
        labels: labels.map(|(key, value)| (key.to_owned(), label_sized(value, ""))).into(),
        seen: None,
    };
    let body = || body(observed, source);
    let child = parent.child::<MirrorVolumeKind>(&volume_name(claim), &Component::Whole, 0, body);
    let mut child = child.annotated([(PROVISIONED_BY.to_owned(), Some(settings.provisioner.clone()))]);
    child.desired.ownership = Ownership::Unowned;
    child.desired.identity.clear();
    child.made()
}

fn body(observed: &Observed, source: &MirrorVolume) -> Value {
    let claim = &observed.claim;
    let policy = Some(&*observed.reclaim_policy).filter(|policy| !policy.is_empty()).unwrap_or("Delete");
    let mut spec = json!({
        "capacity": {"storage": "1"},
        "accessModes": claim.spec.access_modes,
        "persistentVolumeReclaimPolicy": policy,
        "storageClassName": claim.spec.storage_class_name,
        "csi": source.spec.csi,
        "claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace(), "name": claim.name(), "uid": claim.uid(),
        },
    });
    if let Some(mode) = &source.spec.volume_mode {
        spec["volumeMode"] = mode.as_str().into();
    }
    if !source.spec.mount_options.is_empty() {
        spec["mountOptions"] = json!(source.spec.mount_options);
    }
    json!({"spec": spec})
}
