//! The stores that the loop reads, and which of their changes concern which shared volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::Room;
use super::observe::{Observed, claim_name, job_names};
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::{Kind, Object, labels};
use crate::controllers::instance::mounts;
use crate::controllers::instance::world::{by_shared_volume, of_shared_volume};
use crate::controllers::nfs_volume::{by_volume, with_volume};
use crate::controllers::wake;
use crate::kinds::{DeploymentKind, JobKind, NamespaceKind, NfsClaimKind, PersistentVolumeKind, SecretKind};
use crate::runtime::ObjectKey;
use crate::runtime::controller::{Reconciler, Source};
use crate::runtime::factory::StoreFactory;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::registry::Registry;
use crate::runtime::store::{Change, Store};
use crate::runtime::watch::Selection;

/// The stores.
pub struct World {
    /// The labels of the namespaces that are ours.
    selector: BTreeMap<String, String>,
    /// Shared volumes.
    pub volumes: Arc<Store<SharedVolumeKind>>,
    /// Namespaces.
    pub namespaces: Arc<Store<NamespaceKind>>,
    /// Templates, by the shared volumes that they mount.
    pub templates: Arc<Store<TemplateKind>>,
    /// The Deployments of Instances, by the shared volumes that they were made to mount.
    pub deployments: Arc<Store<DeploymentKind>>,
    /// The cloud-init Secrets of Instances, by the shared volumes that their machines mount.
    pub secrets: Arc<Store<SecretKind>>,
    /// The claims of shared volumes, by the storage that they got.
    pub claims: Arc<Store<NfsClaimKind>>,
    /// Storage.
    pub storage: Arc<Store<PersistentVolumeKind>>,
    /// Jobs: those of shared volumes carry no label of ours.
    pub jobs: Arc<Store<JobKind>>,
}

impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("World").field("selector", &self.selector).finish_non_exhaustive()
    }
}

/// The name in the index of the objects of Instances that mount a shared volume.
fn mounting(volume: &ObjectKey) -> String {
    format!("mounting:{volume}")
}

fn by_mount<T: Kind>(object: &Object<T>) -> Vec<String> {
    mounts::noted(object).iter().map(mounting).collect()
}

impl World {
    /// The stores of `factory` that the loop reads.
    pub fn new(factory: &mut StoreFactory, selector: &BTreeMap<String, String>) -> Self {
        let of_instances =
            || Selection::labels(format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE));
        let of_volumes =
            Selection::labels(format!("{}={}", labels::VOLUME_TYPE, labels::VOLUME_TYPE_SHARED_VOLUME));
        let world = Self {
            selector: selector.clone(),
            volumes: factory.store(Selection::default()),
            namespaces: factory.store(Selection::default()),
            templates: factory.store(Selection::default()),
            deployments: factory.store(of_instances()),
            secrets: factory.store(of_instances()),
            claims: factory.store(of_volumes),
            storage: factory.store(Selection::default()),
            jobs: factory.store(Selection::default()),
        };
        world.templates.index(by_shared_volume);
        world.deployments.index(by_mount);
        world.secrets.index(by_mount);
        world.claims.index(by_volume);
        world
    }

    /// The stores of what the loop writes.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.add(&self.volumes);
        registry.add(&self.claims);
        registry.add(&self.jobs);
        registry
    }

    /// What a pass over a shared volume knows; `None` when it is gone, or in a namespace that is not ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let volume = self.volumes.get(&key.namespace, &key.name)?;
        self.namespaces.get("", &key.namespace).filter(|namespace| namespace.has_labels(&self.selector))?;
        let claim = self.claims.get(&key.namespace, &claim_name(&key.name));
        let storage = claim.as_ref().and_then(|claim| claim.spec.volume_name.clone());
        let [ours, former] = job_names(&key.name);
        let found = |name: &str| self.jobs.get(&key.namespace, name);
        let (job_name, job) = match (found(&ours), found(&former)) {
            (None, Some(job)) if job.controller_uid() == Some(volume.uid()) => (former, Some(job)),
            (job, _) => (ours, job),
        };
        let templates = self.templates.indexed(&of_shared_volume(key));
        let of_instance = |namespace: &str, name: Option<&str>| Some(ObjectKey::new(namespace, name?));
        let deployments = self.deployments.indexed(&mounting(key));
        let secrets = self.secrets.indexed(&mounting(key));
        let instances = deployments
            .iter()
            .map(|object| of_instance(object.namespace(), object.label(labels::INSTANCE)))
            .chain(
                secrets.iter().map(|object| of_instance(object.namespace(), object.label(labels::INSTANCE))),
            );
        Some(Observed {
            templates: templates.iter().map(|template| ObjectKey::of(&**template)).collect(),
            instances: instances.flatten().collect(),
            storage: storage.and_then(|name| self.storage.get("", &name)),
            claim,
            job,
            job_name,
            volume,
        })
    }

    /// A user of shared volumes: those that are being deleted may be free now, or have one more to name.
    fn released<T: Kind>(
        &self,
        change: &Change<T>,
        queue: &Queue,
        volumes: fn(&Object<T>) -> Vec<String>,
        name: fn(&ObjectKey) -> String,
    ) {
        let of = |object: &Option<Arc<Object<T>>>| -> BTreeSet<String> {
            object.as_ref().map(|object| volumes(object).into_iter().collect()).unwrap_or_default()
        };
        let (before, now) = (of(&change.old), of(&change.new));
        if before == now {
            return;
        }
        for key in self.volumes.keys() {
            let known = name(&key);
            if before.contains(&known) != now.contains(&known)
                && self.volumes.get(&key.namespace, &key.name).is_some_and(|volume| volume.is_terminating())
            {
                queue.add(key, Priority::Change);
            }
        }
    }
}

impl Source for World {
    fn subscribe(self: &Arc<Self>, queue: &Arc<Queue>) {
        let added = Arc::clone(queue);
        self.volumes.subscribe(move |change| {
            if let Some(volume) = change.object().filter(|_| change.origin != Some(Room::NAME)) {
                added.add(ObjectKey::of(&**volume), Priority::Change);
            }
        });
        wake::owners::<SharedVolumeKind, _>(&self.claims, queue, Room::NAME);
        wake::owners::<SharedVolumeKind, _>(&self.jobs, queue, Room::NAME);
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.storage.subscribe(move |change| {
            let Some(storage) = change.object() else { return };
            for claim in world.claims.indexed(&with_volume(storage.name())) {
                wake::owner::<SharedVolumeKind, _>(&*claim, &added);
            }
        });
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.templates
            .subscribe(move |change| world.released(change, &added, by_shared_volume, of_shared_volume));
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.deployments.subscribe(move |change| world.released(change, &added, by_mount, mounting));
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.secrets.subscribe(move |change| world.released(change, &added, by_mount, mounting));
        wake::residents(&self.namespaces, &self.volumes, queue, &self.selector);
    }

    fn enqueue_all(&self, queue: &Queue) {
        for key in self.volumes.keys() {
            queue.add(key, Priority::Background);
        }
    }
}
