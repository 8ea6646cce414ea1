//! The Instances that are queued when another object changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::condition::{Condition, MY_DRIVE_READY, READY, RECONCILED};
use crate::api::instance::InstanceKind;
use crate::api::meta::Metadata;
use crate::api::public_key::within_limits;
use crate::api::reason;
use crate::api::requirements::OF_CLUSTERS;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::text::Text;
use crate::api::{Kind, labels};
use crate::config::{Storage, StorageMode};
use crate::controllers::shared::entrance::ByManagedWorkspace;
use crate::controllers::shared::references::{
    ByCanonicalName, ByExport, BySharedVolume, ByTemplate, ByTenant, OfWorkspace, instance_of,
};
use crate::kinds::{DataVolumeKind, PersistentVolumeClaimKind, SecretKind, VirtualMachineKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildChange;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{ByNamespace, Index as _, Store, index};
use crate::runtime::store_set::{Declaration, StoreSet};
use crate::runtime::watch::Selection;

/// The condition that explains a missing personal volume of a Tenant. Its Instances report the same cause.
fn my_drive(tenant: &Tenant) -> Option<&Condition> {
    tenant.status.conditions.iter().find(|condition| condition.type_ == MY_DRIVE_READY)
}

/// Declares the store of Tenants. If the SSH keys of a Tenant change, the Tenant's Instances and the Instances of the
/// Workspaces that the Tenant manages are queued, because their machines contain the keys.
pub fn tenants(
    set: &mut StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
    templates: &Arc<Store<TemplateKind>>,
) -> Arc<Store<TenantKind>> {
    let templates = Arc::clone(templates);
    let known = |tenant: &Tenant| {
        (within_limits(&tenant.spec.public_keys).to_vec(), ByManagedWorkspace::keys(tenant))
    };
    set.store::<TenantKind>(&Selection::ALL)
        .index::<ByManagedWorkspace>()
        .wakes_by::<ByTenant, _, _>(instances, move |change| {
            let tenant = change.object_if(|tenant| (known(tenant), my_drive(tenant)));
            tenant.map(|tenant| tenant.metadata.name.clone())
        })
        .wakes_by::<ByTemplate, _, _>(instances, move |change| {
            let is_news = change.object_if(known).is_some();
            let sides = [&change.old, &change.new].into_iter().flatten().filter(|_| is_news);
            let workspaces: BTreeSet<Text> = sides.flat_map(|side| ByManagedWorkspace::keys(side)).collect();
            let keys = |workspace| templates.keys_by::<OfWorkspace>(workspace);
            workspaces.iter().flat_map(keys).collect::<Vec<_>>()
        })
        .get()
}

/// Declares the store of shared volumes. A change of a volume queues the Instances of the Templates that mount it.
pub fn shared_volumes(
    set: &mut StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
    templates: &Arc<Store<TemplateKind>>,
) -> Arc<Store<SharedVolumeKind>> {
    let templates = Arc::clone(templates);
    let store = set.store::<SharedVolumeKind>(&Selection::ALL).optional().index::<ByExport>();
    let store = store.wakes_by::<ByTemplate, _, _>(instances, move |change| {
        let key = change.object().map(|volume| ObjectKey::of(&**volume));
        key.map(|key| templates.keys_by::<BySharedVolume>(&key)).unwrap_or_default()
    });
    store.get()
}

/// Declares the store of mirrors, if volumes are mirrored, and returns it with the class of new ones. A new or deleted
/// mirror queues the Instances in its namespace, because it may be the mirror of their personal volume.
pub fn mirrors(
    set: &mut StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
    storage: &Storage,
) -> Option<(String, Arc<Store<PersistentVolumeClaimKind>>)> {
    if storage.mode == StorageMode::Nfs {
        return None;
    }
    let mirrors = Selection::label(labels::VOLUME_TYPE, labels::VOLUME_TYPE_MIRROR);
    let store = set.store::<PersistentVolumeClaimKind>(&mirrors);
    let store = store.wakes_by::<ByNamespace, _, _>(instances, |change| {
        let is_other = change.old.is_some() != change.new.is_some();
        change.object().filter(|_| is_other).map(|claim| claim.metadata.namespace.clone())
    });
    Some((storage.mirror_class.clone(), store.get()))
}

/// Declares the store of `DataVolume`s. A change of a disk queues the Instance of the virtual machine with the same
/// name.
pub fn data_volumes(
    set: &mut StoreSet<'_>,
    machines: &Arc<Store<VirtualMachineKind>>,
) -> Arc<Store<DataVolumeKind>> {
    let machines = Arc::clone(machines);
    let store = set.store::<DataVolumeKind>(&Selection::ALL).optional();
    let store = store.on_change(move |change, queue| {
        let Some(disk) = change.object() else { return };
        let machine = machines.get(disk.namespace(), disk.name());
        if let Some(key) = machine.as_deref().and_then(instance_of) {
            queue.add(key, Priority::Change);
        }
    });
    store.get()
}

index! {
    /// Instances that report a missing part of the cluster, or an Ingress that no controller serves, all under one
    /// key. A change of the Ingress classes may help.
    pub struct Hindered of InstanceKind by ();
    |instance| {
        let is_it = |condition: &Condition| {
            let is_missing = || OF_CLUSTERS.iter().any(|reason| condition.reason == **reason);
            let is_ignored = || condition.type_ == READY && condition.reason == *reason::ROUTE_IGNORED;
            condition.status == "False" && (condition.type_ == RECONCILED && is_missing() || is_ignored())
        };
        instance.status.conditions.iter().any(is_it).then_some(()).into_iter().collect()
    }
}

/// Queues all Instances when the Secret with the key of host names changes, if there is one.
pub fn on_host_key<'s, 'f>(
    secrets: Declaration<'s, 'f, SecretKind>,
    instances: &Arc<Store<InstanceKind>>,
    host_key: Option<&ObjectKey>,
) -> Declaration<'s, 'f, SecretKind> {
    let Some(host_key) = host_key.cloned() else { return secrets };
    let instances = Arc::clone(instances);
    secrets.on_change(move |change, queue| {
        if change.object().is_some_and(|secret| ObjectKey::of(&**secret) == host_key) {
            instances.keys().into_iter().for_each(|key| queue.add(key, Priority::Background));
        }
    })
}

/// Returns a function that queues these Instances when the cluster changes.
pub fn hindered(instances: &Arc<Store<InstanceKind>>) -> impl Fn(&Queue) + Send + Sync + 'static {
    let instances = Arc::clone(instances);
    move |queue| {
        for key in instances.keys_by::<Hindered>(&()) {
            queue.add(key, Priority::Background);
        }
    }
}

/// Returns a function that queues the Instance of a changed child, and the Instances that may have waited for its name.
pub fn of_child(
    instances: &Arc<Store<InstanceKind>>,
) -> impl Fn(&ChildChange<'_>, &Queue) + Send + Sync + 'static {
    let instances = Arc::clone(instances);
    move |change, queue| {
        if !change.is_own {
            enqueue_instances([change.old, change.new], &instances, queue);
        }
        enqueue_blocked(change, &instances, queue);
    }
}

/// Queues all other Instances whose objects may have the name of an object that was deleted or got another controller,
/// because they may have had a name conflict. The name begins with the canonical name of such an Instance. The former
/// controller had no conflict, and is notified of foreign changes anyway.
fn enqueue_blocked(change: &ChildChange<'_>, instances: &Store<InstanceKind>, queue: &Queue) {
    let controller = |object: &Metadata| object.controller().map(|owner| owner.uid.clone());
    let Some(old) = change.old else { return };
    let before = controller(old);
    if change.new.is_some_and(|new| controller(new) == before) {
        return;
    }
    let ends = old.name.match_indices('-').map(|(end, _)| end).chain([old.name.len()]);
    for canonical in ends.filter_map(|end| old.name.get(..end)) {
        for instance in instances.by::<ByCanonicalName>(&ObjectKey::new(old.namespace.clone(), canonical)) {
            if before.as_ref().is_none_or(|uid| *instance.uid() != **uid) {
                queue.add(ObjectKey::of(&*instance), Priority::Change);
            }
        }
    }
}

/// Queues the Instances that an object belongs to, before or after the change, according to its labels or owner
/// references.
pub fn enqueue_instances(sides: [Option<&Metadata>; 2], instances: &Store<InstanceKind>, queue: &Queue) {
    let mut keys = BTreeSet::new();
    for object in sides.into_iter().flatten() {
        let owners = object.owner_references.iter().filter(|owner| owner.kind == InstanceKind::KIND);
        let names = owners.map(|owner| &*owner.name).chain(object.labels.get(labels::INSTANCE));
        keys.extend(names.map(|name| ObjectKey::new(object.namespace.clone(), name)));
    }
    for key in keys {
        if instances.get(&key.namespace, &key.name).is_some() {
            queue.add(key, Priority::Change);
        }
    }
}
