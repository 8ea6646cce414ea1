//! The mirror of a personal volume in the personal namespace, which machines mount instead of the NFS export.

use jiff::Timestamp;

use super::{found, stored};
use crate::api::labels;
use crate::config::StorageMode;
use crate::controllers::shared::children::Child;
use crate::controllers::shared::mirrors::{PERMITTED, drive_names, fault, is_of, personal_namespace, spec};
use crate::controllers::shared::nfs_volume::Location;
use crate::controllers::shared::waits;
use crate::controllers::tenant::Effect;
use crate::controllers::tenant::children::{Children, MY_DRIVE, SECRET};
use crate::controllers::tenant::observe::Observed;
use crate::kinds::{NfsClaim, NfsClaimKind};
use crate::runtime::ObjectKey;
use crate::runtime::plan::Plan;

impl Observed {
    /// The claim of the personal volume, which a mirror has as its origin.
    fn origin(&self) -> ObjectKey {
        ObjectKey::new(self.volume_namespace.as_str(), self.names().claim)
    }

    /// The possible keys of the mirror.
    pub fn mirror_keys(&self) -> [ObjectKey; 2] {
        let names = self.names();
        drive_names(&names.claim).map(|name| ObjectKey::new(names.namespace.as_str(), name))
    }

    /// The key of the mirror. One that a Go operator has made keeps its name.
    fn mirror_key(&self) -> ObjectKey {
        let [ours, former] = self.mirror_keys();
        let is_kept = self.mirror_at(&former).is_some_and(|mirror| {
            let source = mirror.spec.data_source_ref.as_ref();
            is_of(source, &self.origin())
        });
        if is_kept { former } else { ours }
    }

    fn mirror_at(&self, key: &ObjectKey) -> Option<&NfsClaim> {
        self.children.get::<NfsClaimKind>(&key.namespace, &key.name)
    }
}

impl<'a> Children<'a> {
    /// The annotation of the claim that permits the personal namespace to mirror it.
    pub fn permitted(self) -> Option<(String, Option<String>)> {
        let value = || Some(personal_namespace(self.observed.tenant.name()));
        (self.settings.storage.mode == StorageMode::Mirror).then(|| (PERMITTED.to_owned(), value()))
    }

    /// The mirror.
    pub fn mirror(self) -> Child<'a> {
        let parent = self.parent().with(&[(labels::VOLUME_TYPE, labels::VOLUME_TYPE_MIRROR)]);
        let body = move || spec(&self.settings.storage.mirror_class, &self.observed.origin());
        parent.child::<NfsClaimKind>(&self.observed.mirror_key().name, &SECRET, 1, body)
    }
}

/// Plans the mirror of a usable claim. An existing Secret with the location of the volume is kept, because machines that
/// were created before use it.
pub fn plan(children: Children<'_>, now: Timestamp, plan: &mut Plan<Effect>) {
    let observed = children.observed;
    if let Ok(Location { server, share }) = found(observed) {
        children.secret(&server, &share).keep(plan);
    }
    let key = observed.mirror_key();
    let Some(mirror) = observed.mirror_at(&key) else {
        // It is created and checked then.
        plan.requeue_after(waits::GRACE);
        children.mirror().ensure(plan);
        return;
    };
    match fault(&key, mirror.spec.data_source_ref.as_ref(), &observed.origin(), MY_DRIVE) {
        Some(problem) => plan.problems.push(problem),
        None => waits::of_claim(mirror, MY_DRIVE, None, &observed.events, stored(observed), now).join(plan),
    }
    children.mirror().ensure(plan);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controllers::tenant::fixtures::{observed, owners, settings};
    use crate::fixtures::{now, object};
    use crate::kinds::SecretKind;

    /// The plan with mirrors for a Tenant whose claim is bound, with these other claims in its personal namespace.
    fn planned(mirrors: &[Value], has_secret: bool) -> Plan<Effect> {
        let mut settings = settings();
        settings.storage.mode = StorageMode::Mirror;
        let mut observed = observed(&json!({}), &[]);
        let claim = json!({
            "metadata": {"name": "ada-rossi-drive", "namespace": "mydrive-pvcs", "uid": "d1"},
            "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv-1"},
            "status": {"phase": "Bound"},
        });
        let claims = mirrors.iter().chain([&claim]).map(object);
        observed.children.set::<NfsClaimKind>(claims);
        let attributes = json!({"server": "nfs", "share": "/exports/ada"});
        let volume = json!({"metadata": {"name": "pv-1"}, "spec": {"csi": {"volumeAttributes": attributes}}});
        observed.volume = Some(object(volume));
        if has_secret {
            let metadata = json!({
                "name": "mydrive-info", "namespace": "tenant-ada-rossi", "uid": "s1", "ownerReferences": owners("u1"),
            });
            observed.children.set::<SecretKind>([object(json!({"metadata": metadata}))]);
        }
        let mut plan = Plan::default();
        super::super::plan(Children { observed: &observed, settings: &settings }, now(), &mut plan);
        plan
    }

    fn mirror(source: &Value) -> Value {
        let metadata = json!({
            "name": "ada-rossi-drive-mirror", "namespace": "tenant-ada-rossi", "uid": "m1",
            "creationTimestamp": "2026-03-04T05:06:07Z", "ownerReferences": owners("u1"),
        });
        json!({"metadata": metadata, "spec": {"dataSourceRef": source}})
    }

    fn kinds(plan: &Plan<Effect>) -> Vec<String> {
        plan.ensure.iter().map(|made| format!("{} {}", made.kind.kind, made.key.name)).collect()
    }

    #[test]
    fn a_bound_volume_gets_a_mirror_instead_of_a_secret() {
        let plan = planned(&[], false);
        let expected = [
            "PersistentVolumeClaim ada-rossi-drive",
            "PersistentVolumeClaim ada-rossi-drive-mirror",
            "Job ada-rossi-drive-provision",
        ];
        assert_eq!(kinds(&plan), expected);
        let permitted = plan.ensure[0].annotations[PERMITTED].as_deref();
        assert_eq!(permitted, Some("crownlabs.polito.it/type=tenant,crownlabs.polito.it/name=ada.rossi"));
        let mirror = plan.ensure[1].manifest.as_ref().expect("it is made").json();
        assert_eq!(mirror["metadata"]["namespace"], "tenant-ada-rossi");
        assert_eq!(mirror["metadata"]["ownerReferences"], owners("u1"));
        let labels = json!({
            "crownlabs.polito.it/managed-by": "tenant", "crownlabs.polito.it/operator-selector": "test",
            "crownlabs.polito.it/volume-type": "mirror",
        });
        assert_eq!(mirror["metadata"]["labels"], labels);
        let expected = json!({
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "pvc-mirror",
            "resources": {"requests": {"storage": "1"}},
            "dataSourceRef": {
                "kind": "PersistentVolumeClaim", "name": "ada-rossi-drive", "namespace": "mydrive-pvcs",
            },
        });
        assert_eq!(mirror["spec"], expected);
    }

    #[test]
    fn the_secret_of_machines_on_nfs_is_kept() {
        assert!(kinds(&planned(&[], true)).contains(&"Secret mydrive-info".to_owned()));
    }

    #[test]
    fn a_mirror_without_its_origin_is_reported() {
        let reasons = |source: &Value| -> Vec<String> {
            planned(&[mirror(source)], false)
                .problems
                .iter()
                .map(|problem| problem.reason.to_string())
                .collect()
        };
        let of = |namespace: &str| json!({"kind": "PersistentVolumeClaim", "name": "ada-rossi-drive", "namespace": namespace});
        assert_eq!(reasons(&of("mydrive-pvcs")), Vec::<String>::new());
        assert_eq!(reasons(&of("elsewhere")), ["MirrorUnusable"]);
        assert_eq!(reasons(&Value::Null), ["MirrorUnusable"]);
    }
}
