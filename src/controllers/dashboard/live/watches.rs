//! The watches whose changes are broadcast. They request only the metadata of the objects, except for the announcements
//! for everyone.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::broadcast::{Broadcast, Topic};
use crate::api::announcement::AnnouncementKind;
use crate::api::meta::TextMap;
use crate::api::{GROUP, Kind, LAB_GROUP, Object, labels};
use crate::kinds::{Unread, kind};
use crate::runtime::ObjectKey;
use crate::runtime::store::{ByNamespace, Change, Store};
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

kind!(/// A signal that a shared volume has changed.
    VolumeSignal, SignalledVolume, GROUP, "v1alpha2", "SharedVolume", "sharedvolumes", namespaced: true,
    Unread, Unread, each_version: true);

kind!(/// A signal that an Announcement has changed.
    AnnouncementSignal, SignalledAnnouncement, LAB_GROUP, "v1alpha1", "Announcement", "announcements",
    namespaced: true, Unread, Unread, each_version: true);

/// The Announcements.
#[derive(Clone)]
pub struct Announced {
    /// All of them, without their content: where there are any.
    pub signals: Arc<Store<AnnouncementSignal>>,
    /// Those for everyone, which are in the namespace of the installation. Every user may read them.
    pub for_everyone: Arc<Store<AnnouncementKind>>,
}

impl Default for Announced {
    fn default() -> Self {
        let signals = Store::<AnnouncementSignal>::new(true);
        let for_everyone = Store::new(false);
        signals.index::<ByNamespace>();
        Self { signals: Arc::new(signals), for_everyone: Arc::new(for_everyone) }
    }
}

impl Announced {
    /// Whether a namespace has an Announcement.
    pub fn is_in(&self, namespace: &str) -> bool {
        !self.signals.keys_by::<ByNamespace>(namespace).is_empty()
    }
}

/// Declares the watches of Announcements. The pages work without their CRD and without the right to
/// watch them.
pub fn announced(set: &mut StoreSet<'_>, broadcast: &Arc<Broadcast>, namespace: &str) -> Announced {
    let signals = Arc::clone(broadcast);
    let told = move |change: &Change<AnnouncementSignal>, _: &_| {
        if let Some(object) = change.object() {
            signals.changed(Topic::Announcements(object.namespace().to_owned()));
        }
    };
    let everyone = Arc::clone(broadcast);
    // Their content arrives by another watch, so this signal may come before or after the other one.
    let also_told = move |_: &Change<AnnouncementKind>, _: &_| everyone.changed(Topic::ForEveryone);
    Announced {
        signals: set.store(&Selection::ALL).not_awaited().index::<ByNamespace>().on_change(told).get(),
        for_everyone: set.store(&Selection::ALL.within(namespace)).not_awaited().on_change(also_told).get(),
    }
}

/// Declares the watches. Returns the Tenants, whose annotations name ended sessions.
pub fn declare(set: &mut StoreSet<'_>, broadcast: &Arc<Broadcast>) -> Arc<Store<TenantSignal>> {
    signal::<InstanceSignal>(set, broadcast, |broadcast, change, key| {
        broadcast.changed(Topic::Instances(key.namespace.to_string()));
        broadcast.changed(Topic::Instance(key.clone()));
        for class in classes(change, |instance| instance.label(labels::WORKSPACE).into_iter().collect()) {
            broadcast.class_changed(class, key.clone());
        }
    });
    signal::<TemplateSignal>(set, broadcast, |broadcast, _, key| {
        broadcast.changed(Topic::Templates(key.namespace.to_string()));
    });
    signal::<VolumeSignal>(set, broadcast, |broadcast, _, key| {
        broadcast.changed(Topic::Volumes(key.namespace.to_string()));
    });
    signal::<WorkspaceSignal>(set, broadcast, |broadcast, _, _| broadcast.changed(Topic::Workspaces));
    signal::<TenantSignal>(set, broadcast, |broadcast, change, key| {
        broadcast.changed(Topic::Tenant(key.name.to_string()));
        for class in classes(change, |tenant| courses(&tenant.metadata.labels)) {
            broadcast.class_changed(class, key.clone());
        }
    })
}

fn signal<T: Kind>(
    set: &mut StoreSet<'_>,
    broadcast: &Arc<Broadcast>,
    tell: fn(&Broadcast, &Change<T>, ObjectKey),
) -> Arc<Store<T>> {
    let broadcast = Arc::clone(broadcast);
    let told = move |change: &Change<T>, _: &_| {
        if let Some(object) = change.object() {
            tell(&broadcast, change, ObjectKey::of(&**object));
        }
    };
    set.store(&Selection::ALL).on_change(told).get()
}

/// Returns the classes of an object before and after a change.
fn classes<'c, T: Kind>(
    change: &'c Change<T>,
    of: impl Fn(&'c Object<T>) -> Vec<&'c str>,
) -> BTreeSet<&'c str> {
    [&change.old, &change.new].into_iter().flatten().flat_map(|object| of(object)).collect()
}

/// Returns the courses in which a Tenant with these labels has a role.
fn courses(of_tenant: &TextMap) -> Vec<&str> {
    of_tenant.iter().filter_map(|(key, _)| key.strip_prefix(labels::WORKSPACE_PREFIX)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn change<T: Kind>(old: Option<Value>, new: Option<Value>) -> Change<T> {
        let read = |labels: Option<Value>| {
            let object = json!({"metadata": {"name": "x", "labels": labels?}});
            Some(Arc::new(serde_json::from_value::<Object<T>>(object).expect("an object")))
        };
        Change { old: read(old), new: read(new), origin: None }
    }

    #[test]
    fn a_change_is_told_to_the_classes_before_and_after_it() {
        let tea = || Some(json!({"crownlabs.polito.it/workspace": "tea"}));
        let net = || Some(json!({"crownlabs.polito.it/workspace": "net"}));
        for (old, new, expected) in [
            (None, tea(), vec!["tea"]),
            (tea(), tea(), vec!["tea"]),
            (tea(), net(), vec!["net", "tea"]),
            (tea(), Some(json!({})), vec!["tea"]),
            (tea(), None, vec!["tea"]),
            (None, Some(json!({"crownlabs.polito.it/workspace-tea": "user"})), vec![]),
        ] {
            let change = change::<InstanceSignal>(old, new);
            let found = classes(&change, |one| one.label(labels::WORKSPACE).into_iter().collect());
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
        }
        let roles = json!({"crownlabs.polito.it/workspace-tea": "user", "crownlabs.polito.it/workspace-net": "manager",
            "crownlabs.polito.it/workspace": "other"});
        let change = change::<TenantSignal>(None, Some(roles));
        let found = classes(&change, |tenant| courses(&tenant.metadata.labels));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["net", "tea"]);
    }
}
