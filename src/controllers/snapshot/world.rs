//! The stores that the loop reads, and which of their changes concern which snapshots.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Room;
use super::image::directory;
use super::observe::{Observed, instance_key};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::instance_snapshot::{InstanceSnapshot, InstanceSnapshotKind, SnapshotPhase};
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::{Kind, labels};
use crate::controllers::instance::observe::template_key;
use crate::controllers::instance::world::{by_instance, by_owner};
use crate::controllers::wake;
use crate::kinds::{
    DataVolumeKind, JobKind, NamespaceKind, PodKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
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
    /// Snapshots, by the Instance that they name.
    pub snapshots: Arc<Store<InstanceSnapshotKind>>,
    /// Instances.
    pub instances: Arc<Store<InstanceKind>>,
    /// Templates.
    pub templates: Arc<Store<TemplateKind>>,
    /// Tenants, by their repositories.
    pub tenants: Arc<Store<TenantKind>>,
    /// Namespaces.
    pub namespaces: Arc<Store<NamespaceKind>>,
    /// Jobs: those of snapshots carry no label of ours.
    pub jobs: Arc<Store<JobKind>>,
    /// Virtual machines of Instances.
    pub machines: Arc<Store<VirtualMachineKind>>,
    /// Those that run.
    pub running: Arc<Store<VirtualMachineInstanceKind>>,
    /// Disks that are being filled.
    pub disks: Arc<Store<DataVolumeKind>>,
    /// The pods of Instances.
    pub pods: Arc<Store<PodKind>>,
}

impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("World").field("selector", &self.selector).finish_non_exhaustive()
    }
}

/// The name in the index of what is of an Instance.
fn of_instance(key: &ObjectKey) -> String {
    format!("snapshot:{key}")
}

fn by_reference(snapshot: &InstanceSnapshot) -> Vec<String> {
    vec![of_instance(&instance_key(snapshot))]
}

/// The name in the index of Tenants whose repositories are the same.
fn sharing(directory: &str) -> String {
    format!("repositories:{directory}")
}

fn by_directory(tenant: &Tenant) -> Vec<String> {
    vec![sharing(&directory(tenant.name()))]
}

/// Whether a snapshot is still to be made.
fn is_open(snapshot: &InstanceSnapshot) -> bool {
    !matches!(snapshot.status.phase, SnapshotPhase::Completed | SnapshotPhase::Failed)
        && !snapshot.is_terminating()
}

impl World {
    /// The stores of `factory` that the loop reads.
    pub fn new(factory: &mut StoreFactory, selector: &BTreeMap<String, String>) -> Self {
        let ours = Selection::labels(format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE));
        let of_instances = Selection::labels(labels::INSTANCE);
        let world = Self {
            selector: selector.clone(),
            snapshots: factory.store(Selection::default()),
            instances: factory.store(Selection::default()),
            templates: factory.store(Selection::default()),
            tenants: factory.store(Selection::default()),
            namespaces: factory.store(Selection::default()),
            jobs: factory.store(Selection::default()),
            machines: factory.store(ours),
            running: factory.store(of_instances.clone()),
            disks: factory.store(Selection::default()),
            pods: factory.store(of_instances),
        };
        world.snapshots.index(by_reference);
        world.tenants.index(by_directory);
        world.machines.index(by_owner);
        world.pods.index(by_instance);
        world
    }

    /// The stores of what the loop writes, and of what it reads anew.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.add(&self.snapshots);
        registry.add(&self.jobs);
        registry.add(&self.instances);
        registry.add(&self.templates);
        registry
    }

    /// What a pass over a snapshot knows; `None` when it is gone, or in a namespace that is not ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let snapshot = self.snapshots.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace)?;
        if !namespace.has_labels(&self.selector) {
            return None;
        }
        let of = instance_key(&snapshot);
        let instance = self.instances.get(&of.namespace, &of.name);
        let machines = instance.as_ref().map(|instance| self.machines.indexed(instance.uid()));
        let machines = machines.unwrap_or_default();
        let named = machines.iter().map(|machine| machine.name());
        let others = self.snapshots.indexed(&of_instance(&of)).into_iter();
        Some(Observed {
            template: instance.as_ref().and_then(|instance| {
                let reference = template_key(instance);
                self.templates.get(&reference.namespace, &reference.name)
            }),
            job: self.jobs.get(&key.namespace, &super::job::name(&key.name)),
            running: named.clone().filter_map(|name| self.running.get(&of.namespace, name)).collect(),
            disks: named.filter_map(|name| self.disks.get(&of.namespace, name)).collect(),
            pods: self.pods.indexed(&of.to_string()),
            others: others.filter(|other| other.uid() != snapshot.uid() && is_open(other)).collect(),
            resident: namespace.label(labels::NAME).map(str::to_owned),
            repository_owner: instance.as_ref().and_then(|instance| self.repository_owner(instance)),
            machines,
            instance,
            snapshot,
        })
    }

    /// The Tenant that has the repositories of an Instance's Tenant, if it is another: whoever was first.
    fn repository_owner(&self, instance: &Instance) -> Option<String> {
        let tenant = &instance.spec.tenant_ref.name;
        let sharing = self.tenants.indexed(&sharing(&directory(tenant)));
        let first = sharing
            .iter()
            .min_by_key(|tenant| (tenant.metadata.creation_timestamp.clone(), tenant.name().to_owned()))?;
        (first.name() != tenant).then(|| first.name().to_owned())
    }

    /// The Instance of a snapshot, and the Template of that, if it is known.
    pub fn references(observed: &Observed) -> (ObjectKey, Option<ObjectKey>) {
        (instance_key(&observed.snapshot), observed.instance.as_deref().map(template_key))
    }

    /// A snapshot: itself, and those that wait for it.
    fn own(&self, change: &Change<InstanceSnapshotKind>, queue: &Queue) {
        let Some(snapshot) = change.object() else { return };
        if change.origin != Some(Room::NAME) {
            queue.add(ObjectKey::of(&**snapshot), Priority::Change);
        }
        let open = |snapshot: &Option<Arc<InstanceSnapshot>>| snapshot.as_ref().is_some_and(|s| is_open(s));
        if open(&change.old) && !open(&change.new) {
            self.waiting(&instance_key(snapshot), queue);
        }
    }

    /// Something of an Instance, which may have kept a disk busy.
    fn freed<T: Kind>(&self, change: &Change<T>, queue: &Queue) {
        let Some(object) = change.object() else { return };
        if let Some(name) = object.label(labels::INSTANCE) {
            self.waiting(&ObjectKey::new(object.namespace(), name), queue);
        }
    }

    /// Asks for the snapshots of an Instance that wait for their turn.
    fn waiting(&self, instance: &ObjectKey, queue: &Queue) {
        for snapshot in self.snapshots.indexed(&of_instance(instance)) {
            if is_open(&snapshot) && snapshot.status.phase != SnapshotPhase::Processing {
                queue.add(ObjectKey::of(&*snapshot), Priority::Change);
            }
        }
    }
}

impl Source for World {
    fn subscribe(self: &Arc<Self>, queue: &Arc<Queue>) {
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.snapshots.subscribe(move |change| world.own(change, &added));
        wake::owners::<InstanceSnapshotKind, _>(&self.jobs, queue, Room::NAME);
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.instances.subscribe(move |change| {
            if let Some(instance) = change.object() {
                world.waiting(&ObjectKey::of(&**instance), &added);
            }
        });
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.running.subscribe(move |change| world.freed(change, &added));
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.pods.subscribe(move |change| world.freed(change, &added));
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.disks.subscribe(move |change| {
            let Some(disk) = change.object() else { return };
            let machine = world.machines.get(disk.namespace(), disk.name());
            if let Some(name) = machine.as_ref().and_then(|machine| machine.label(labels::INSTANCE)) {
                world.waiting(&ObjectKey::new(disk.namespace(), name), &added);
            }
        });
        wake::residents(&self.namespaces, &self.snapshots, queue, &self.selector);
    }

    fn enqueue_all(&self, queue: &Queue) {
        for key in self.snapshots.keys() {
            if self.snapshots.get(&key.namespace, &key.name).is_some_and(|snapshot| is_open(&snapshot)) {
                queue.add(key, Priority::Background);
            }
        }
    }
}
