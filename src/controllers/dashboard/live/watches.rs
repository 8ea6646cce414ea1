//! The watches whose changes are broadcast. They request only the metadata of the objects.

use std::sync::Arc;

use super::broadcast::{Broadcast, Topic};
use crate::api::{GROUP, Kind};
use crate::kinds::{Unread, kind};
use crate::runtime::ObjectKey;
use crate::runtime::store::{Change, Store};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

kind!(/// A signal that an Instance has changed.
    InstanceSignal, SignalledInstance, GROUP, "v1alpha2", "Instance", "instances", namespaced: true,
    Unread, Unread, each_version: true);
kind!(/// A signal that a Template has changed.
    TemplateSignal, SignalledTemplate, GROUP, "v1alpha2", "Template", "templates", namespaced: true,
    Unread, Unread, each_version: true);
kind!(/// A signal that a Tenant has changed.
    TenantSignal, SignalledTenant, GROUP, "v1alpha2", "Tenant", "tenants", namespaced: false,
    Unread, Unread, each_version: true);
kind!(/// A signal that a Workspace has changed.
    WorkspaceSignal, SignalledWorkspace, GROUP, "v1alpha1", "Workspace", "workspaces", namespaced: false,
    Unread, Unread, each_version: true);

/// Declares the watches. Returns the Tenants, whose annotations name ended sessions.
pub fn declare(set: &mut StoreSet<'_>, broadcast: &Arc<Broadcast>) -> Arc<Store<TenantSignal>> {
    signal::<InstanceSignal>(set, broadcast, |broadcast, key| {
        broadcast.changed(Topic::Instances(key.namespace.to_string()));
        broadcast.changed(Topic::Instance(key));
    });
    signal::<TemplateSignal>(set, broadcast, |broadcast, key| {
        broadcast.changed(Topic::Templates(key.namespace.to_string()));
    });
    signal::<WorkspaceSignal>(set, broadcast, |broadcast, _| broadcast.changed(Topic::Workspaces));
    signal::<TenantSignal>(set, broadcast, |broadcast, key| {
        broadcast.changed(Topic::Tenant(key.name.to_string()));
    })
}

fn signal<T: Kind>(
    set: &mut StoreSet<'_>,
    broadcast: &Arc<Broadcast>,
    tell: fn(&Broadcast, ObjectKey),
) -> Arc<Store<T>> {
    let broadcast = Arc::clone(broadcast);
    let told = move |change: &Change<T>, _: &_| {
        if let Some(object) = change.object() {
            tell(&broadcast, ObjectKey::of(&**object));
        }
    };
    set.store(&Selection::ALL).on_change(told).get()
}
