//! The stores of the shared volume loop, and which of their changes add which volumes to the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::observe::{Observed, claim_name, job_names};
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::{Kind, Object, labels};
use crate::controllers::shared::nfs_volume::ByVolume;
use crate::controllers::shared::references::{BySharedVolume, instance_of, mounted_volumes};
use crate::kinds::{DeploymentKind, JobKind, NamespaceKind, NfsClaimKind, PersistentVolumeKind, SecretKind};
use crate::runtime::ObjectKey;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{Change, Index, Store};
use crate::runtime::store_set::{Declaration, StoreSet, enqueue_controller};
use crate::runtime::watch::Selection;

/// The stores of the shared volume loop.
pub struct Stores {
    /// The labels of the namespaces whose volumes are reconciled.
    selector: BTreeMap<String, String>,
    volumes: Arc<Store<SharedVolumeKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    templates: Arc<Store<TemplateKind>>,
    /// Deployments of Instances.
    deployments: Arc<Store<DeploymentKind>>,
    /// cloud-init Secrets of Instances.
    secrets: Arc<Store<SecretKind>>,
    claims: Arc<Store<NfsClaimKind>>,
    persistent_volumes: Arc<Store<PersistentVolumeKind>>,
    /// Jobs: those of shared volumes carry no label of ours.
    jobs: Arc<Store<JobKind>>,
}

/// Objects of Instances by the shared volumes that they mount.
struct ByMount;

impl<T: Kind> Index<T> for ByMount {
    type Key = ObjectKey;

    fn keys(object: &Object<T>) -> Vec<ObjectKey> {
        mounted_volumes(object).into_iter().collect()
    }
}

impl Stores {
    /// Declares the stores. Only volumes in namespaces with the labels of `selector` are reconciled.
    pub fn declare(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>) -> Self {
        let all = Selection::All;
        let of_instances = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let of_volumes = Selection::label(labels::VOLUME_TYPE, labels::VOLUME_TYPE_SHARED_VOLUME);
        let volumes = set.store(&all).written().objects(|_| true).get();
        let claims = set.store(&of_volumes).written().index::<ByVolume>();
        let claims: Arc<Store<NfsClaimKind>> = claims.wakes_controller::<SharedVolumeKind>().get();
        let claimed = Arc::clone(&claims);
        Self {
            selector: selector.clone(),
            namespaces: set.store(&all).wakes_residents(&volumes, selector).get(),
            templates: of_users::<_, BySharedVolume>(set.store(&all), &volumes),
            deployments: of_users::<_, ByMount>(set.store(&of_instances), &volumes),
            secrets: of_users::<_, ByMount>(set.store(&of_instances), &volumes),
            persistent_volumes: set
                .store::<PersistentVolumeKind>(&all)
                .on_change(move |change, queue| {
                    let Some(volume) = change.object() else { return };
                    for claim in claimed.by::<ByVolume>(volume.name()) {
                        enqueue_controller::<SharedVolumeKind, _>(&claim, queue);
                    }
                })
                .get(),
            jobs: set.store(&all).written().wakes_controller::<SharedVolumeKind>().get(),
            volumes,
            claims,
        }
    }

    /// What the stores have about a shared volume; `None` when it does not exist, or is in a namespace that
    /// is not ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let volume = self.volumes.get(&key.namespace, &key.name)?;
        self.namespaces.get("", &key.namespace).filter(|namespace| namespace.has_labels(&self.selector))?;
        let claim = self.claims.get(&key.namespace, &claim_name(&key.name));
        let bound = claim.as_ref().and_then(|claim| claim.spec.volume_name.clone());
        let [ours, former] = job_names(&key.name);
        let found = |name: &str| self.jobs.get(&key.namespace, name);
        let (job_name, job) = match (found(&ours), found(&former)) {
            (None, Some(job)) if job.controller_uid() == Some(volume.uid()) => (former, Some(job)),
            (job, _) => (ours, job),
        };
        let deployments = self.deployments.by::<ByMount>(key);
        let secrets = self.secrets.by::<ByMount>(key);
        let of_deployments = deployments.iter().filter_map(|deployment| instance_of(&**deployment));
        let of_secrets = secrets.iter().filter_map(|secret| instance_of(&**secret));
        Some(Observed {
            templates: self.templates.keys_by::<BySharedVolume>(key).into_iter().collect(),
            instances: of_deployments.chain(of_secrets).collect(),
            persistent_volume: bound.and_then(|name| self.persistent_volumes.get("", &name)),
            claim,
            job,
            job_name,
            volume,
        })
    }
}

/// Declares the store of a kind whose objects use shared volumes, which the index `I` finds. A change of the
/// volumes that an object uses adds those that are being deleted: they may be unused now, or the message
/// about their users changes.
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
    store.index::<I>().on_change(enqueue).get()
}
