//! The stores of the shared volume loop, and the volumes that their changes add to the queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::children;
use super::observe::Observed;
use crate::api::names::label_sized;
use crate::api::quantity::Quantity;
use crate::api::shared_volume::{SharedVolume, SharedVolumeKind, SharedVolumePhase};
use crate::api::template::TemplateKind;
use crate::api::text::Text;
use crate::api::{Kind, Object, labels};
use crate::controllers::shared::former::Census;
use crate::controllers::shared::nfs_volume::{ByVolume, shared_claim};
use crate::controllers::shared::references::{BySharedVolume, instance_of, mounted_volumes};
use crate::controllers::shared::responsibility::Responsibility;
use crate::controllers::shared::waits::nfs_class_fault;
use crate::kinds::{
    DeploymentKind, NamespaceKind, PersistentVolumeKind, SecretNameKind, StorageClassKind, UsedQuota,
    UsedQuotaKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::cluster::{known_classes, storage_classes};
use crate::runtime::object_events::Events;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::selection::{Label, Selection};
use crate::runtime::store::{Change, Index, Store, index};
use crate::runtime::store_set::{Declaration, StoreSet, enqueue_all, enqueue_controller};

/// The stores of the shared volume loop.
pub struct Stores {
    /// The responsibility of this daemon: volumes in namespaces with the labels of the selector are reconciled.
    responsibility: Responsibility,
    volumes: Arc<Store<SharedVolumeKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    templates: Arc<Store<TemplateKind>>,
    /// Deployments of Instances.
    deployments: Arc<Store<DeploymentKind>>,
    /// cloud-init Secrets of Instances.
    secrets: Arc<Store<SecretNameKind>>,
    persistent_volumes: Arc<Store<PersistentVolumeKind>>,
    storage_classes: Arc<Store<StorageClassKind>>,
    children: ChildStores,
}

/// Objects of Instances by the shared volumes that they mount.
struct ByMount;

impl<T: Kind> Index<T> for ByMount {
    type Key = ObjectKey;

    fn keys(object: &Object<T>) -> Vec<ObjectKey> {
        mounted_volumes(object).into_iter().collect()
    }
}

index! {
    /// Shared volumes that a quota has rejected, by their namespace.
    struct RefusedByNamespace of SharedVolumeKind by Text;
    |volume| {
        let is_refused = volume.status.phase == SharedVolumePhase::ResourceQuotaExceeded;
        is_refused.then(|| volume.metadata.namespace.clone()).into_iter().collect()
    }
}

index! {
    /// `PersistentVolume`s of mirrors by the claim that they mirror. Long names are cut.
    struct ByOrigin of PersistentVolumeKind by ObjectKey;
    |volume| {
        let [namespace, claim] = [labels::MIRRORED_NAMESPACE, labels::MIRRORED_CLAIM].map(|key| volume.label(key));
        namespace.zip(claim).map(|(namespace, claim)| ObjectKey::new(namespace, claim)).into_iter().collect()
    }
}

impl Stores {
    /// Declares the stores. Only volumes in namespaces of this daemon are reconciled.
    pub fn declare(set: &mut StoreSet<'_>, responsibility: &Responsibility) -> Self {
        let all = Selection::ALL;
        let of_instances = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let volumes = set.store(&all).requests("patch").objects(|_| true).index::<RefusedByNamespace>().get();
        // A quota shows whether a rejected claim can be retried. The quotas of Tenants have this label, and change with
        // each of their pods.
        let quotas = set.store::<UsedQuotaKind>(&Selection::of(Label::Absent(labels::MANAGED_BY)));
        quotas
            .wakes_by::<RefusedByNamespace, _, _>(&volumes, |change| {
                let quota = change.old.as_deref().filter(|_| has_room(change))?;
                Some(quota.metadata.namespace.clone())
            })
            .get();
        let (children, claims) = children::declare(set);
        Self {
            responsibility: responsibility.clone(),
            namespaces: set.store(&all).wakes_objects_within(&volumes, &responsibility.selector).get(),
            templates: of_users::<_, BySharedVolume>(set.store(&all), &volumes),
            deployments: of_users::<_, ByMount>(set.store(&of_instances), &volumes),
            secrets: of_users::<_, ByMount>(set.store(&of_instances), &volumes),
            persistent_volumes: set
                .store::<PersistentVolumeKind>(&all)
                .requests("list")
                .index::<ByOrigin>()
                .on_change(move |change, queue| {
                    let Some(volume) = change.object() else { return };
                    let origins = ByOrigin::keys(volume).into_iter();
                    let origins = origins.filter_map(|origin| claims.get(&origin.namespace, &origin.name));
                    for claim in claims.by::<ByVolume>(volume.name()).into_iter().chain(origins) {
                        enqueue_controller::<SharedVolumeKind>(&claim.metadata, queue);
                    }
                })
                .get(),
            storage_classes: storage_classes(set, enqueue_all(&volumes)),
            volumes,
            children,
        }
    }

    /// Counts the volumes that were taken under another selector.
    pub fn census(&self) -> Census {
        let (namespaces, selector) = (Arc::clone(&self.namespaces), self.responsibility.selector.clone());
        let is_selected = move |volume: &SharedVolume| {
            namespaces.get("", volume.namespace()).is_some_and(|namespace| namespace.has_labels(&selector))
        };
        let finalizer = labels::SHARED_VOLUME_FINALIZER;
        Census::new("SharedVolumes", &self.volumes, finalizer, &self.responsibility, is_selected)
    }

    /// The observation of a shared volume; `None` if it does not exist, or if its namespace is not selected and it has
    /// no finalizer of this daemon.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let volume = self.volumes.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace)?;
        let is_selected = namespace.has_labels(&self.responsibility.selector);
        let standing = self.responsibility.standing(&volume, labels::SHARED_VOLUME_FINALIZER, is_selected)?;
        let deployments = self.deployments.by::<ByMount>(key);
        let secrets = self.secrets.by::<ByMount>(key);
        let origin =
            ObjectKey::new(label_sized(&key.namespace, ""), label_sized(&shared_claim(&key.name), ""));
        let of_deployments = deployments.iter().filter_map(|deployment| instance_of(&**deployment));
        let of_secrets = secrets.iter().filter_map(|secret| instance_of(&**secret));
        let mut observed = Observed {
            standing,
            templates: self.templates.keys_by::<BySharedVolume>(key).into_iter().collect(),
            instances: of_deployments.chain(of_secrets).collect(),
            mirrors: self.persistent_volumes.keys_by::<ByOrigin>(&origin).into_iter().collect(),
            persistent_volume: None,
            class_fault: None,
            // The reconciler adds them.
            events: Events::Unknown,
            children: self.children.children(volume.uid(), &children::keys(key)),
            volume,
        };
        let bound = observed.claim().and_then(|claim| claim.spec.volume_name.clone());
        let class = observed.claim().map(|claim| claim.spec.storage_class_name.clone().unwrap_or_default());
        observed.class_fault =
            class.and_then(|class| nfs_class_fault(known_classes(&self.storage_classes).as_ref(), &class));
        observed.persistent_volume = bound.and_then(|name| self.persistent_volumes.get("", &name));
        Some(observed)
    }
}

/// Whether a quota has grown or less of it is used.
fn has_room(change: &Change<UsedQuotaKind>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return change.new.is_none() };
    let amount = |text: Option<&String>| text.and_then(|text| text.parse::<Quantity>().ok());
    let hard = |quota: &UsedQuota, name: &String| amount(quota.status.hard.get(name));
    let used = |quota: &UsedQuota, name: &String| amount(quota.status.used.get(name));
    old.status.hard.keys().any(|name| {
        hard(new, name).is_none_or(|limit| hard(old, name).is_some_and(|before| limit > before))
            || used(new, name) < used(old, name)
    })
}

/// Declares the store of a kind whose objects use shared volumes. The index `I` finds them. A change of the volumes of
/// an object adds volumes that are being deleted, because they may be unused now, or the message about their users may
/// change. The objects are listed before a volume is deleted.
fn of_users<T: Kind, I: Index<T, Key = ObjectKey>>(
    store: Declaration<'_, '_, T>,
    volumes: &Arc<Store<SharedVolumeKind>>,
) -> Arc<Store<T>> {
    let volumes = Arc::clone(volumes);
    let enqueue = move |change: &Change<T>, queue: &Queue| {
        let used = |object: &Option<Arc<Object<T>>>| -> BTreeSet<ObjectKey> {
            object.as_deref().map(|object| I::keys(object).into_iter().collect()).unwrap_or_default()
        };
        for key in used(&change.old).symmetric_difference(&used(&change.new)) {
            if volumes.get(&key.namespace, &key.name).is_some_and(|volume| volume.is_terminating()) {
                queue.add(key.clone(), Priority::Change);
            }
        }
    };
    store.requests("list").index::<I>().on_change(enqueue).get()
}
