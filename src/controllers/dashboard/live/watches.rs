//! The watches whose changes are broadcast. They request only the metadata of the objects, except for the announcements
//! for everyone, and for the record of connections.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::broadcast::{Broadcast, Topic};
use crate::api::announcement::AnnouncementKind;
use crate::api::connection::{self, Connection};
use crate::api::meta::TextMap;
use crate::api::sharing::peers;
use crate::api::text::Text;
use crate::api::{GROUP, Kind, LAB_GROUP, Object, labels};
use crate::kinds::{Unread, kind};
use crate::runtime::ObjectKey;
use crate::runtime::store::{ByNamespace, Change, Store, index};
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

kind!(/// The record of the connections to machines of others. Its `spec` is the field `data`.
    ConnectionsKind, Connections, "", "v1", "ConfigMap", "configmaps", namespaced: true,
    BTreeMap<String, String>, Unread, body: "data", largest: 1 << 20);

index! {
    /// Instances by the people with whom they are shared.
    pub struct ByPeer of InstanceSignal by Text;
    |instance| peers(instance).iter().map(|peer| Text::interned(&peer.user)).collect()
}

/// The stores that are also read, and not only watched.
pub struct Signals {
    /// The Instances, by [`ByPeer`].
    pub instances: Arc<Store<InstanceSignal>>,
    /// The Tenants, whose annotations name ended sessions.
    pub tenants: Arc<Store<TenantSignal>>,
}

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

/// Declares the watch of the record of connections. The pages work without it.
pub fn connections(
    set: &mut StoreSet<'_>,
    broadcast: &Arc<Broadcast>,
    namespace: &str,
) -> Arc<Store<ConnectionsKind>> {
    let broadcast = Arc::clone(broadcast);
    let told = move |change: &Change<ConnectionsKind>, _: &_| {
        for machine in begun_or_ended(change) {
            broadcast.changed(Topic::Instances(machine.namespace.to_string()));
            broadcast.changed(Topic::Instance(machine));
        }
    };
    let selection = Selection::named(connection::NAME).within(namespace);
    set.store(&selection).not_awaited().on_change(told).get()
}

/// Returns the machines whose connections have begun or ended. An entry that is only renewed does not count.
fn begun_or_ended(change: &Change<ConnectionsKind>) -> BTreeSet<ObjectKey> {
    let entries = |of: Option<&Arc<Connections>>| of.map(|of| of.spec.clone()).unwrap_or_default();
    let (old, new) = (entries(change.old.as_ref()), entries(change.new.as_ref()));
    let added = new.iter().filter(|(key, _)| !old.contains_key(*key));
    let removed = old.iter().filter(|(key, _)| !new.contains_key(*key));
    let read = added.chain(removed).filter_map(|(_, entry)| Connection::read(entry));
    read.map(|one| ObjectKey::new(one.namespace, one.name)).collect()
}

/// Returns the people for whom a change shares an Instance, or ends that.
fn told_peers(change: &Change<InstanceSignal>) -> BTreeSet<String> {
    if change.object_if(|instance| instance.annotation(labels::SHARED_WITH)).is_none() {
        return BTreeSet::new();
    }
    let both = [&change.old, &change.new].into_iter().flatten();
    both.flat_map(|instance| peers(instance)).map(|peer| peer.user).collect()
}

/// Declares the watches.
pub fn declare(set: &mut StoreSet<'_>, broadcast: &Arc<Broadcast>) -> Signals {
    let instances = signal::<InstanceSignal>(set, broadcast, |broadcast, change, key| {
        for peer in told_peers(change) {
            broadcast.changed(Topic::Tenant(peer));
        }
        broadcast.changed(Topic::Instances(key.namespace.to_string()));
        broadcast.changed(Topic::Instance(key.clone()));
        for class in classes(change, |instance| instance.label(labels::WORKSPACE).into_iter().collect()) {
            broadcast.class_changed(class, key.clone());
        }
    });
    instances.index::<ByPeer>();
    signal::<TemplateSignal>(set, broadcast, |broadcast, _, key| {
        broadcast.changed(Topic::Templates(key.namespace.to_string()));
    });
    signal::<VolumeSignal>(set, broadcast, |broadcast, _, key| {
        broadcast.changed(Topic::Volumes(key.namespace.to_string()));
    });
    signal::<WorkspaceSignal>(set, broadcast, |broadcast, _, _| broadcast.changed(Topic::Workspaces));
    let tenants = signal::<TenantSignal>(set, broadcast, |broadcast, change, key| {
        broadcast.changed(Topic::Tenant(key.name.to_string()));
        for class in classes(change, |tenant| courses(&tenant.metadata.labels)) {
            broadcast.class_changed(class, key.clone());
        }
    });
    Signals { instances, tenants }
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
    fn the_people_before_and_after_a_change_of_the_sharing_are_told() {
        let shared = |users: &[&str], version: &str| {
            let peer = |user: &&str| json!({"user": user, "access": "view", "until": "2026-03-04T22:59:59Z"});
            let peers = Value::Array(users.iter().map(peer).collect()).to_string();
            let metadata =
                json!({"name": "x", "resourceVersion": version, "annotations": {labels::SHARED_WITH: peers}});
            let object: Object<InstanceSignal> =
                serde_json::from_value(json!({"metadata": metadata})).expect("an object");
            Some(Arc::new(object))
        };
        for (old, new, expected) in [
            (None, shared(&["kim"], "1"), vec!["kim"]),
            (shared(&["kim"], "1"), shared(&["kim"], "2"), vec![]),
            (shared(&["kim"], "1"), shared(&["lee", "kim"], "2"), vec!["kim", "lee"]),
            (shared(&["kim"], "1"), shared(&[], "2"), vec!["kim"]),
            (shared(&["kim"], "1"), None, vec!["kim"]),
        ] {
            let told = told_peers(&Change { old, new, origin: None });
            assert_eq!(told.into_iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_renewed_connection_changes_no_page_and_a_new_one_does() {
        let entry = |name: &str, seen: &str| {
            let entry = json!({"namespace": "tenant-ada", "name": name, "environment": "main", "user": "kim", "as": "peer",
                "way": "terminal", "since": "2026-03-04T04:00:00Z", "seen": seen});
            entry.to_string()
        };
        let record = |entries: Value| {
            let object = json!({"metadata": {"name": connection::NAME}, "data": entries});
            Some(Arc::new(serde_json::from_value::<Connections>(object).expect("an object")))
        };
        let first = || record(json!({"a": entry("vm", "2026-03-04T05:00:00Z")}));
        let renewed = record(json!({"a": entry("vm", "2026-03-04T05:01:00Z")}));
        let second = record(
            json!({"a": entry("vm", "2026-03-04T05:00:00Z"), "b": entry("db", "2026-03-04T05:00:00Z")}),
        );
        for (old, new, expected) in [
            (None, first(), vec!["vm"]),
            (first(), renewed, vec![]),
            (first(), second, vec!["db"]),
            (first(), record(json!({"b": "nonsense"})), vec!["vm"]),
        ] {
            let machines = begun_or_ended(&Change { old, new, origin: None });
            assert_eq!(machines.iter().map(|key| &*key.name).collect::<Vec<_>>(), expected);
        }
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
