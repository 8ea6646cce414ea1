//! Volumes that environments mount through mirrors.

use super::*;
use crate::api::shared_volume::SharedVolumeStatus;
use crate::config::StorageMode;
use crate::controllers::shared::mirrors::PERMITTED;

/// The settings with mirrors.
pub fn mirrored() -> Settings {
    Settings { storage: StorageMode::Mirror, ..Settings::default() }
}

/// A bound and prepared volume whose `PersistentVolume` has this source.
fn ready(source: &Value) -> Observed {
    let completed = json!({"metadata": {"labels": {"crownlabs.polito.it/volume-provisioning": "completed"}}});
    let protected = json!({"metadata": {"finalizers": ["crownlabs.polito.it/shvolctrl-volume-protection"]}});
    let storage = object(json!({"metadata": {"name": "pv"}, "spec": source}));
    Observed { persistent_volume: Some(storage), ..bound(&protected, &completed) }
}

fn status(observed: &Observed, settings: &Settings) -> SharedVolumeStatus {
    let plan = plan(observed, settings, now());
    report(&Reconciled::of(observed, settings, &plan, &Outcome::default(), now())).status
}

#[test]
fn a_claim_permits_mirrors_in_personal_namespaces_only_with_mirrors() {
    let permitted = |settings: &Settings| {
        let plan = plan(&fresh(&json!({})), settings, now());
        plan.ensure[0].annotations.get(PERMITTED).cloned().flatten()
    };
    assert_eq!(permitted(&Settings::default()), None);
    assert_eq!(permitted(&mirrored()).as_deref(), Some("crownlabs.polito.it/type=tenant"));
}

#[test]
fn a_volume_of_any_csi_driver_can_be_mirrored() {
    let rbd = json!({"csi": {"driver": "cephfs.csi.ceph.com", "volumeHandle": "v"}});
    let found = status(&ready(&rbd), &mirrored());
    assert_eq!((found.phase, &*found.pv_name, &*found.server_address), (SharedVolumePhase::Ready, "pv", ""));
    assert_eq!(status(&ready(&rbd), &Settings::default()).phase, SharedVolumePhase::Error);
    let local = ready(&json!({"hostPath": {"path": "/srv"}}));
    let plan = plan(&local, &mirrored(), now());
    let message = &plan.problems[0].message;
    assert_eq!(plan.problems[0].reason, "MissingCSI");
    assert!(
        message.ends_with("PersistentVolume pv is not of a CSI driver (spec.csi), so it cannot be mirrored"),
        "{message}"
    );
}

#[test]
fn a_volume_on_nfs_keeps_its_location_with_mirrors() {
    let nfs = json!({"csi": {"volumeAttributes": {"server": "nfs", "share": "/exports/pv"}}});
    let found = status(&ready(&nfs), &mirrored());
    assert_eq!((&*found.server_address, &*found.export_path), ("nfs", "/exports/pv"));
}
