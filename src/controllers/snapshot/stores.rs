//! The stores of the snapshot loop, and the snapshots that their changes add to the queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::children::{self, job_key};
use super::image::directory;
use super::observe::{Observed, instance_key};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::instance_snapshot::{InstanceSnapshot, InstanceSnapshotKind, SnapshotPhase};
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::text::Text;
use crate::api::{Kind, labels};
use crate::config::Layout;
use crate::controllers::shared::job_pods::pods_of_jobs;
use crate::controllers::shared::references::{ByInstance, instance_of, template_of};
use crate::kinds::{
    DataVolumeKind, JOB_NAME, NamespaceKind, PodKind, PodOfJobKind, SecretNameKind,
    VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::object_events::Events;
use crate::runtime::queue::Priority;
use crate::runtime::store::{ByController, ByNamespace, Store, index};
use crate::runtime::store_set::{Declaration, StoreSet};
use crate::runtime::watch::Selection;

/// The stores of the snapshot loop.
pub struct Stores {
    /// The labels of the namespaces whose snapshots are reconciled.
    selector: BTreeMap<String, String>,
    snapshots: Arc<Store<InstanceSnapshotKind>>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    tenants: Arc<Store<TenantKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    children: ChildStores,
    machines: Arc<Store<VirtualMachineKind>>,
    machine_instances: Arc<Store<VirtualMachineInstanceKind>>,
    data_volumes: Arc<Store<DataVolumeKind>>,
    pods: Arc<Store<PodKind>>,
    /// The pods of Jobs.
    job_pods: Arc<Store<PodOfJobKind>>,
    /// The Secrets with the login to the registry.
    secrets: Arc<Store<SecretNameKind>>,
    /// The name of these Secrets.
    secret: String,
    layout: Layout,
}

index! {
    /// Snapshots by the Instance that they name.
    struct OfInstance of InstanceSnapshotKind by ObjectKey;
    |snapshot| vec![instance_key(snapshot)]
}

index! {
    /// Waiting snapshots, by the Instance that they name.
    struct WaitingByInstance of InstanceSnapshotKind by ObjectKey;
    |snapshot| {
        let waits = is_open(snapshot) && snapshot.status.phase != SnapshotPhase::Processing;
        waits.then(|| instance_key(snapshot)).into_iter().collect()
    }
}

index! {
    /// Tenants by the path of their repositories.
    struct ByDirectory of TenantKind by Text;
    |tenant| vec![directory(tenant.name()).into()]
}

/// Whether a snapshot has not ended and is not being deleted.
fn is_open(snapshot: &InstanceSnapshot) -> bool {
    !matches!(snapshot.status.phase, SnapshotPhase::Completed | SnapshotPhase::Failed)
        && !snapshot.is_terminating()
}

impl Stores {
    /// Declares the stores. Only snapshots in namespaces with the labels of `selector` are reconciled. `secret` is the
    /// name of the Secret with the login to the registry.
    pub fn declare(
        set: &mut StoreSet<'_>,
        selector: &BTreeMap<String, String>,
        secret: &str,
        layout: Layout,
    ) -> Self {
        let all = Selection::ALL;
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let of_instances = Selection::labelled(labels::INSTANCE);
        let snapshots = snapshots(set);
        let machines: Arc<Store<VirtualMachineKind>> =
            set.store(&ours).optional().index::<ByController>().get();
        let disks = Arc::clone(&machines);
        let (children, jobs) = children::declare(set);
        Self {
            job_pods: pods_of_jobs::<InstanceSnapshotKind>(
                set.store(&Selection::labelled(JOB_NAME)).requests("get"),
                &jobs,
            ),
            secrets: secrets(set, &snapshots, secret),
            secret: secret.to_owned(),
            layout,

            selector: selector.clone(),
            instances: set
                .store::<InstanceKind>(&all)
                .requests("get")
                .wakes_by::<WaitingByInstance, _, _>(&snapshots, |change| {
                    change.object().map(|instance| ObjectKey::of(&**instance))
                })
                .get(),
            templates: set.store(&all).requests("get").get(),
            tenants: set.store(&all).index::<ByDirectory>().get(),
            namespaces: set.store(&all).wakes_objects_within(&snapshots, selector).get(),
            children,
            machine_instances: of_disk_users(set.store(&of_instances).optional(), &snapshots),
            data_volumes: set
                .store::<DataVolumeKind>(&all)
                .optional()
                .wakes_by::<WaitingByInstance, _, _>(&snapshots, move |change| {
                    let disk = change.object()?;
                    disks.get(disk.namespace(), disk.name()).as_deref().and_then(instance_of)
                })
                .get(),
            pods: of_disk_users(set.store(&of_instances).index::<ByInstance>(), &snapshots),
            snapshots,
            machines,
        }
    }

    /// The observation of a snapshot; `None` if it does not exist, or its namespace is not selected.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let snapshot = self.snapshots.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace)?;
        if !namespace.has_labels(&self.selector) {
            return None;
        }
        let of = instance_key(&snapshot);
        let instance = self.instances.get(&of.namespace, &of.name);
        let machines = instance.as_ref().map(|instance| self.machines.by::<ByController>(instance.uid()));
        let machines = machines.unwrap_or_default();
        let named = machines.iter().map(|machine| machine.name());
        let others = self.snapshots.by::<OfInstance>(&of).into_iter();
        let mut observed = Observed {
            children: self.children.children(snapshot.uid(), &[job_key(&snapshot)]),
            job_pods: Vec::new(),
            // The reconciler adds them.
            events: Events::Unknown,
            has_secret: self.secrets.get(&key.namespace, &self.secret).is_some(),
            template: instance.as_ref().and_then(|instance| template_of(instance, &self.templates)),
            running: named
                .clone()
                .filter_map(|name| self.machine_instances.get(&of.namespace, name))
                .collect(),
            disks: named.filter_map(|name| self.data_volumes.get(&of.namespace, name)).collect(),
            pods: self.pods.by::<ByInstance>(&of),
            others: others.filter(|other| other.uid() != snapshot.uid() && is_open(other)).collect(),
            namespace_tenant: namespace.label(labels::NAME).map(str::to_owned),
            repository_owner: instance.as_ref().and_then(|instance| self.repository_owner(instance)),
            layout: self.layout,
            machines,
            instance,
            snapshot,
        };
        let job_pods = observed.job().map(|job| self.job_pods.by::<ByController>(job.uid()));
        observed.job_pods = job_pods.unwrap_or_default();
        Some(observed)
    }

    /// The Tenant that owns the path of the repositories of the Instance's Tenant, if it is another one: the oldest
    /// Tenant with that path.
    fn repository_owner(&self, instance: &Instance) -> Option<String> {
        let tenant = &instance.spec.tenant_ref.name;
        let sharing = self.tenants.by::<ByDirectory>(directory(tenant).as_str());
        let first = sharing
            .iter()
            .min_by_key(|tenant| (tenant.metadata.creation_timestamp.clone(), tenant.name().to_owned()))?;
        (*tenant != first.name()).then(|| first.name().to_owned())
    }
}

/// Declares the store of snapshots. When one ends, waiting snapshots of the same Instance are added to the queue.
fn snapshots(set: &mut StoreSet<'_>) -> Arc<Store<InstanceSnapshotKind>> {
    let snapshots = set.store::<InstanceSnapshotKind>(&Selection::ALL).requests("get patch");
    let snapshots = snapshots.objects(is_open).index::<OfInstance>().index::<WaitingByInstance>().get();
    let (queue, waiting) = (Arc::clone(set.queue()), Arc::clone(&snapshots));
    snapshots.subscribe(move |change| {
        let open = |snapshot: &Option<Arc<InstanceSnapshot>>| snapshot.as_deref().is_some_and(is_open);
        if let Some(snapshot) = change.object().filter(|_| open(&change.old) && !open(&change.new)) {
            for key in waiting.keys_by::<WaitingByInstance>(&instance_key(snapshot)) {
                queue.add(key, Priority::Change);
            }
        }
    });
    snapshots
}

/// Declares the store of the Secrets with the login to the registry. A change adds the snapshots of the
/// namespace.
fn secrets(
    set: &mut StoreSet<'_>,
    snapshots: &Arc<Store<InstanceSnapshotKind>>,
    secret: &str,
) -> Arc<Store<SecretNameKind>> {
    if secret.is_empty() {
        return Arc::new(Store::new(false));
    }
    snapshots.index::<ByNamespace>();
    let secrets = set.store::<SecretNameKind>(&Selection::named(secret));
    let secrets = secrets.wakes_by::<ByNamespace, _, _>(snapshots, |change| {
        change.object_if(|_| ()).map(|secret| secret.metadata.namespace.clone())
    });
    secrets.get()
}

/// Declares the store of a kind whose objects use the disks of an Instance. A change adds the waiting snapshots of the
/// Instance.
fn of_disk_users<T: Kind>(
    store: Declaration<'_, '_, T>,
    snapshots: &Arc<Store<InstanceSnapshotKind>>,
) -> Arc<Store<T>> {
    let store = store.wakes_by::<WaitingByInstance, _, _>(snapshots, |change| {
        change.object().and_then(|object| instance_of(&**object))
    });
    store.get()
}
