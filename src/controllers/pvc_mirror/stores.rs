//! The stores of the mirror loop, and the claims that their changes add to the queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decide::{PROVISIONED_BY, is_of, origin};
use super::observe::Observed;
use super::reconcile::Settings;
use crate::api::text::Text;
use crate::kinds::{
    MirrorClaim, MirrorClaimKind, MirrorClaimSpec, MirrorVolumeKind, NamespaceKind, StorageClassKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::selection::Selection;
use crate::runtime::store::{ByNamespace, Index as _, Store, StoreState, index};
use crate::runtime::store_set::StoreSet;

/// The stores of the mirror loop.
pub struct Stores {
    /// The labels of the namespaces whose claims are provisioned.
    selector: BTreeMap<String, String>,
    settings: Settings,
    claims: Arc<Store<MirrorClaimKind>>,
    volumes: Arc<Store<MirrorVolumeKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    classes: Arc<Store<StorageClassKind>>,
}

index! {
    /// Mirrors by their origin.
    struct ByOrigin of MirrorClaimKind by ObjectKey;
    |claim| origin(claim).into_iter().collect()
}

index! {
    /// Volumes that a provisioner has created, by that provisioner and the namespace and name of their claim.
    struct ByClaim of MirrorVolumeKind by (Text, ObjectKey);
    |volume| {
        let claim = volume.spec.claim_ref.as_ref();
        let provisioner = volume.annotation(PROVISIONED_BY).map(Text::from);
        let key = claim.map(|claim| ObjectKey::new(claim.namespace.clone(), claim.name.clone()));
        provisioner.zip(key).into_iter().collect()
    }
}

impl Stores {
    /// Declares the stores.
    pub fn declare(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>, settings: &Settings) -> Self {
        let all = Selection::ALL;
        let queue = Arc::clone(set.queue());
        let claims = set.store::<MirrorClaimKind>(&all).requests("get").listed(is_mirror);
        let claims = claims.index::<ByOrigin>().index::<ByNamespace>().get();
        let (mirrors, provisioner) = (Arc::clone(&claims), settings.provisioner.clone());
        claims.subscribe(move |change| {
            let Some(claim) = change.object() else { return };
            let key = ObjectKey::of(&**claim);
            for mirror in mirrors.keys_by::<ByOrigin>(&key) {
                queue.add(mirror, Priority::Change);
            }
            if is_of(claim, &provisioner) {
                queue.add(key, Priority::Change);
            }
        });
        let provisioner = Text::from(settings.provisioner.as_str());
        Self {
            selector: selector.clone(),
            volumes: set
                .store::<MirrorVolumeKind>(&all)
                .requests("create delete")
                .index::<ByClaim>()
                .on_foreign_change(move |change, queue| {
                    let keys = change.object().map(|volume| ByClaim::keys(volume)).unwrap_or_default();
                    for (_, claim) in keys.into_iter().filter(|(by, _)| *by == provisioner) {
                        queue.add(claim, Priority::Change);
                    }
                })
                .get(),
            namespaces: set
                .store::<NamespaceKind>(&all)
                .requests("get")
                .wakes_by::<ByNamespace, _, _>(&claims, |change| {
                    let changed = change.object_if(|namespace| namespace.metadata.labels.clone());
                    changed.map(|namespace| namespace.metadata.name.clone())
                })
                .get(),
            classes: set.store(&all).get(),
            settings: settings.clone(),
            claims,
        }
    }

    /// The observation of a claim; `None` if it is no mirror, and no volume is left of one with its name.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let provisioner = &self.settings.provisioner;
        let claim = self.claims.get(&key.namespace, &key.name).filter(|claim| is_of(claim, provisioner));
        let by = (Text::from(provisioner.as_str()), key.clone());
        let volumes = self.volumes.by::<ByClaim>(&by);
        if claim.is_none() && volumes.is_empty() {
            return None;
        }
        let absent = || {
            Arc::new(MirrorClaim::new(Some(key.namespace.as_str()), &key.name, MirrorClaimSpec::default()))
        };
        let claim = claim.unwrap_or_else(absent);
        let origin = origin(&claim).and_then(|origin| self.claims.get(&origin.namespace, &origin.name));
        let bound = origin.as_ref().and_then(|origin| origin.spec.volume_name.clone());
        let namespace = self.namespaces.get("", &key.namespace);
        let class = claim.spec.storage_class_name.as_ref().and_then(|class| self.classes.get("", class));
        Some(Observed {
            is_selected: namespace.as_ref().is_some_and(|namespace| namespace.has_labels(&self.selector)),
            namespace,
            source: bound.and_then(|volume| self.volumes.get("", &volume)),
            origin,
            reclaim_policy: class.map(|class| class.spec.reclaim_policy.to_string()).unwrap_or_default(),
            volumes,
            // The reconciler adds it.
            told: None,
            claim,
        })
    }

    /// A message about the storage class of mirrors, if it is missing or unsuitable.
    pub fn class_fault(&self) -> Option<String> {
        if self.classes.state() == StoreState::Syncing {
            return None;
        }
        let Settings { provisioner, class } = &self.settings;
        let key = "storage.mirrorClass";
        let Some(found) = self.classes.get("", class) else {
            return Some(format!(
                "StorageClass {class} ({key}) does not exist, so no volume is mirrored. Create it with the provisioner \
                 {provisioner}"
            ));
        };
        if found.spec.provisioner != *provisioner {
            let other = &found.spec.provisioner;
            return Some(format!(
                "StorageClass {class} ({key}) has the provisioner {other}, so this daemon does not provision its claims. \
                 Correct controllers.pvcMirror.provisioner, which is {provisioner}, or the class"
            ));
        }
        found.spec.allow_volume_expansion.then(|| {
            format!(
                "StorageClass {class} ({key}) has allowVolumeExpansion: true, but a mirror cannot grow. Create it again \
                 without"
            )
        })
    }
}

/// Whether a claim mirrors another one.
fn is_mirror(claim: &MirrorClaim) -> bool {
    origin(claim).is_some()
}
