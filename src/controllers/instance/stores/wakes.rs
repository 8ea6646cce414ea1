//! Which Instances are reconciled when another object changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::OfWorkspace;
use crate::api::Kind;
use crate::api::instance::InstanceKind;
use crate::api::public_key::within_limits;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::text::Text;
use crate::controllers::shared::entrance::ByManagedWorkspace;
use crate::controllers::shared::references::{
    ByCanonicalName, ByExport, BySharedVolume, ByTemplate, ByTenant, instance_of,
};
use crate::kinds::{DataVolumeKind, VirtualMachineKind};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::store::{ByController, Change, Index as _, Store};
use crate::runtime::store_set::{Declaration, StoreSet};
use crate::runtime::watch::Selection;

/// Whether the spec or the labels have changed.
pub fn spec_changed<T: Kind>(change: &Change<T>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            old.spec != new.spec
                || old.malformed != new.malformed
                || old.metadata.labels != new.metadata.labels
        }
        _ => true,
    }
}

/// When the SSH keys of a Tenant change, its own Instances and those of the Workspaces that it manages are added
/// to the queue: their machines contain the keys.
pub fn tenants(
    set: &mut StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
    templates: &Arc<Store<TemplateKind>>,
) -> Arc<Store<TenantKind>> {
    let templates = Arc::clone(templates);
    let known = |tenant: &Option<Arc<Tenant>>| {
        let tenant = tenant.as_deref()?;
        Some((within_limits(&tenant.spec.public_keys).to_vec(), ByManagedWorkspace::keys(tenant)))
    };
    set.store::<TenantKind>(&Selection::ALL)
        .index::<ByManagedWorkspace>()
        .wakes_by::<ByTenant, _, _>(instances, move |change| {
            let tenant = change.object().filter(|_| known(&change.old) != known(&change.new));
            tenant.map(|tenant| tenant.metadata.name.clone())
        })
        .wakes_by::<ByTemplate, _, _>(instances, move |change| {
            let (before, now) = (known(&change.old), known(&change.new));
            let known = [before.clone(), now.clone()].into_iter().flatten().filter(|_| before != now);
            let workspaces: BTreeSet<Text> = known.flat_map(|(_, workspaces)| workspaces).collect();
            let keys = |workspace| templates.keys_by::<OfWorkspace>(workspace);
            workspaces.iter().flat_map(keys).collect::<Vec<_>>()
        })
        .get()
}

/// A change of a shared volume adds the Instances of the Templates that mount it.
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

/// A change of a `DataVolume` adds the Instance of the virtual machine that has the same name.
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

/// The store of a kind of objects that Instances own, indexed by their controller.
pub fn children<T: Kind>(
    store: Declaration<'_, '_, T>,
    instances: &Arc<Store<InstanceKind>>,
) -> Arc<Store<T>> {
    let store = enqueue_instances(store.index::<ByController>(), instances);
    enqueue_blocked(store, instances).get()
}

/// An object that goes, or gets another controller, adds all other Instances whose objects may have its name, which begins
/// with the canonical name of the Instance: one of them may have had a name conflict. Its controller had none, and learns
/// of what others do to the object anyway.
fn enqueue_blocked<'s, 'f, T: Kind>(
    store: Declaration<'s, 'f, T>,
    instances: &Arc<Store<InstanceKind>>,
) -> Declaration<'s, 'f, T> {
    let instances = Arc::clone(instances);
    store.on_change(move |change, queue| {
        let Some(old) = &change.old else { return };
        if change.new.as_ref().is_some_and(|new| new.controller_uid() == old.controller_uid()) {
            return;
        }
        let name = old.name();
        let ends = name.match_indices('-').map(|(end, _)| end).chain([name.len()]);
        for canonical in ends.filter_map(|end| name.get(..end)) {
            for instance in instances.by::<ByCanonicalName>(&ObjectKey::new(old.namespace(), canonical)) {
                if Some(instance.uid()) != old.controller_uid() {
                    queue.add(ObjectKey::of(&*instance), Priority::Change);
                }
            }
        }
    })
}

/// A change adds the Instance that the object belongs to, by its labels or by its owner references, before or
/// now.
pub fn enqueue_instances<'s, 'f, T: Kind>(
    store: Declaration<'s, 'f, T>,
    instances: &Arc<Store<InstanceKind>>,
) -> Declaration<'s, 'f, T> {
    let instances = Arc::clone(instances);
    store.on_foreign_change(move |change, queue| {
        let mut keys = BTreeSet::new();
        for object in change.old.iter().chain(&change.new) {
            let owners = object.metadata.owner_references.iter();
            let owner = owners.filter(|owner| owner.kind == InstanceKind::KIND);
            keys.extend(owner.map(|owner| ObjectKey::new(object.namespace(), &owner.name)));
            keys.extend(instance_of(&**object));
        }
        for key in keys {
            if instances.get(&key.namespace, &key.name).is_some() {
                queue.add(key, Priority::Change);
            }
        }
    })
}
