//! The watches that say that something has changed. Of the objects, only the metadata is asked for.

use std::sync::Arc;

use super::hub::{Hub, Topic};
use crate::api::{GROUP, Kind};
use crate::kinds::{Unread, kind};
use crate::runtime::ObjectKey;
use crate::runtime::store::{Change, Store};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

kind!(/// That an Instance has changed.
    InstanceSignal, SignalledInstance, GROUP, "v1alpha2", "Instance", "instances", namespaced: true,
    Unread, Unread, each_version: true);
kind!(/// That a Template has changed.
    TemplateSignal, SignalledTemplate, GROUP, "v1alpha2", "Template", "templates", namespaced: true,
    Unread, Unread, each_version: true);
kind!(/// That a Tenant has changed.
    TenantSignal, SignalledTenant, GROUP, "v1alpha2", "Tenant", "tenants", namespaced: false,
    Unread, Unread, each_version: true);
kind!(/// That a Workspace has changed.
    WorkspaceSignal, SignalledWorkspace, GROUP, "v1alpha1", "Workspace", "workspaces", namespaced: false,
    Unread, Unread, each_version: true);

/// Declares the watches: what they show rings at the open pages.
pub fn declare(set: &mut StoreSet<'_>, hub: &Arc<Hub>) {
    signal::<InstanceSignal>(set, hub, |hub, key| {
        hub.changed(Topic::Instances(key.namespace.to_string()));
        hub.changed(Topic::Instance(key));
    });
    signal::<TemplateSignal>(set, hub, |hub, key| hub.changed(Topic::Templates(key.namespace.to_string())));
    signal::<TenantSignal>(set, hub, |hub, key| hub.changed(Topic::Tenant(key.name.to_string())));
    signal::<WorkspaceSignal>(set, hub, |hub, _| hub.changed(Topic::Workspaces));
}

fn signal<T: Kind>(set: &mut StoreSet<'_>, hub: &Arc<Hub>, tell: fn(&Hub, ObjectKey)) {
    let hub = Arc::clone(hub);
    let told = move |change: &Change<T>, _: &_| {
        if let Some(object) = change.object() {
            tell(&hub, ObjectKey::of(&**object));
        }
    };
    let _: Arc<Store<T>> = set.store(&Selection::ALL).on_change(told).get();
}
