//! Deletions of volumes that are in use.

use std::time::Duration;

use super::mirrors::mirrored;
use super::*;
use crate::runtime::plan::Requeue;
use crate::runtime::{ObjectKey, finalizer};

#[test]
fn a_volume_in_use_keeps_its_finalizer() {
    let more = json!({"metadata": {
        "deletionTimestamp": "2026-03-04T05:00:00Z",
        "finalizers": ["other", "crownlabs.polito.it/shvolctrl-volume-protection"],
    }});
    let mut observed = bound(&more, &json!({}));
    observed.templates = [("workspace-tea", "b"), ("workspace-tea", "a"), ("workspace-milk", "a")]
        .map(|(namespace, name)| ObjectKey::new(namespace, name))
        .into();
    observed.instances = [ObjectKey::new("tenant-ada", "lab")].into();
    let told = reported(&observed, &[]);
    let expected = "Cannot delete shvol since it is mounted on [a b lab] (Templates workspace-milk/a, \
                    workspace-tea/a, workspace-tea/b; Instances tenant-ada/lab): it is deleted as soon as none of \
                    them mounts it";
    assert_eq!(told.status.phase, SharedVolumePhase::Deleting);
    assert_eq!(condition(&told, "DeletionBlocked"), ("InUse", expected));
    assert_eq!(told.events.len(), 1);
    let mut again = Object::clone(&observed.volume);
    again.status = told.status;
    let again = Observed { volume: Arc::new(again), ..observed };
    assert_eq!(reported(&again, &[]).events, Vec::new(), "told once");
    let many = (0..30).map(|n| ObjectKey::new("tenant-ada", format!("lab-{n:02}"))).collect();
    let crowded = reported(&Observed { templates: BTreeSet::new(), instances: many, ..again.clone() }, &[]);
    assert!(condition(&crowded, "DeletionBlocked").1.contains("tenant-ada/lab-19 and 10 more)"));
    let free = bound(&more, &json!({}));
    assert_eq!(planned(&again).remove_finalizer, None, "it is used");
    let finalizer = planned(&free).remove_finalizer.expect("nobody uses it");
    assert_eq!(
        finalizer::removal(&*free.volume, finalizer).expect("a patch").patch,
        json!({"metadata": {"finalizers": ["other"]}})
    );
}

#[test]
fn a_volume_with_a_mirror_keeps_its_finalizer() {
    let more = json!({"metadata": {
        "deletionTimestamp": "2026-03-04T05:00:00Z",
        "finalizers": ["crownlabs.polito.it/shvolctrl-volume-protection"],
    }});
    let mut observed = bound(&more, &json!({}));
    observed.mirrors = [ObjectKey::new("", "pvc-1")].into();
    let blocked = planned(&observed);
    assert_eq!((blocked.remove_finalizer, blocked.requeue), (None, Requeue::After(Duration::from_mins(1))));
    let told = reported(&observed, &[]);
    let expected = "Cannot delete shvol since it is mounted on [pvc-1] (PersistentVolumes of mirrors pvc-1): it is deleted \
                    as soon as none of them mounts it";
    assert_eq!(condition(&told, "DeletionBlocked"), ("InUse", expected));
    // With mirrors, the API server is asked for them before the volume is deleted.
    observed.mirrors.clear();
    for (settings, checked) in [(Settings::default(), 3), (mirrored(), 4)] {
        let planned = plan(&observed, &settings, now());
        assert!(planned.remove_finalizer.is_some());
        assert_eq!(planned.finalizer_preconditions.len(), checked);
    }
}
