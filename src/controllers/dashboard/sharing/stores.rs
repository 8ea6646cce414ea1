//! What the dashboard knows about shared machines: from its watches of metadata, which it has for the live pages anyway,
//! and from the record of connections. A peer may not read the Instance, so the token of the peer is not enough.

use std::sync::Arc;

use jiff::Timestamp;

use super::with_me::{SharedMachine, shown};
use crate::api::Tenant;
use crate::api::connection::{Connection, MOST};
use crate::api::names::CanonicalName;
use crate::controllers::dashboard::live::watches::{
    ByPeer, ConnectionsKind, InstanceSignal, SignalledInstance, TenantSignal,
};
use crate::runtime::ObjectKey;
use crate::runtime::store::Store;

/// The stores that tell which machines are shared, and who is connected.
#[derive(Clone)]
pub struct Shared {
    /// All Instances, without their content, by [`ByPeer`].
    pub instances: Arc<Store<InstanceSignal>>,
    /// All Tenants, without their content.
    pub tenants: Arc<Store<TenantSignal>>,
    /// The record of connections.
    pub connections: Arc<Store<ConnectionsKind>>,
}

impl Default for Shared {
    fn default() -> Self {
        let instances = Store::<InstanceSignal>::new(true);
        instances.index::<ByPeer>();
        let (tenants, connections) = (Store::new(true), Store::new(false));
        Self {
            instances: Arc::new(instances),
            tenants: Arc::new(tenants),
            connections: Arc::new(connections),
        }
    }
}

impl Shared {
    /// Returns the machines that the first page of a Tenant shows.
    pub fn with(&self, tenant: &Tenant, now: Timestamp) -> Vec<SharedMachine> {
        let user = tenant.name();
        let instances = self.instances.by::<ByPeer>(user);
        shown(instances.iter().filter_map(|instance| self.of(instance, user, now)), tenant)
    }

    /// Returns a machine, if it is shared with a user.
    pub fn machine(&self, user: &str, key: &ObjectKey, now: Timestamp) -> Option<SharedMachine> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        self.of(&instance, user, now)
    }

    fn of(&self, instance: &SignalledInstance, user: &str, now: Timestamp) -> Option<SharedMachine> {
        SharedMachine::of(instance, user, now).map(|machine| {
            let owner = self.owner(instance.namespace());
            SharedMachine { owner, ..machine }
        })
    }

    /// Returns the name of the Tenant with a personal namespace; the namespace itself if there is none. The names of
    /// Tenants and of their namespaces differ in dots.
    fn owner(&self, namespace: &str) -> String {
        let canonical = namespace.strip_prefix("tenant-").unwrap_or(namespace);
        let is_it = |name: &str| CanonicalName::of(name).tenant_namespace() == namespace;
        let same = self.tenants.get("", canonical).filter(|tenant| is_it(tenant.name()));
        let found = same.or_else(|| self.tenants.objects().find(|tenant| is_it(tenant.name())));
        found.map_or_else(|| namespace.to_owned(), |tenant| tenant.name().to_owned())
    }

    /// Returns the open connections of others to a machine, in the order of their beginning.
    pub fn connections(&self, machine: &ObjectKey, now: Timestamp) -> Vec<Connection> {
        let records = self.connections.objects().flat_map(|record| {
            let entries = record.spec.values().take(MOST).filter_map(|entry| Connection::read(entry));
            entries.collect::<Vec<_>>()
        });
        let is_of = |one: &Connection| {
            one.namespace == *machine.namespace && one.name == *machine.name && one.is_open(now)
        };
        let mut open: Vec<Connection> = records.filter(is_of).collect();
        open.sort_by_cached_key(|one| (one.since.0, one.user.clone()));
        open
    }
}

#[cfg(test)]
mod unit_tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::Kind;
    use crate::api::sharing::Access;
    use crate::fixtures::{now, object};

    fn add<T: Kind>(store: &Store<T>, value: &Value) {
        let object: Arc<crate::api::Object<T>> = object(value);
        store.apply_event(Arc::unwrap_or_clone(object));
    }

    fn instance(namespace: &str, number: u8, peers: &Value) -> Value {
        json!({"metadata": {
            "name": "vm", "namespace": namespace, "uid": format!("u{number}"), "resourceVersion": number.to_string(),
            "labels": {"crownlabs.polito.it/workspace": "tea", "crownlabs.polito.it/template": "lab"},
            "annotations": {"crownlabs.polito.it/shared-with": peers.to_string()},
        }})
    }

    fn peer(user: &str, access: &str, until: &str) -> Value {
        json!({"user": user, "access": access, "until": until})
    }

    const TODAY: &str = "2026-03-04T22:59:59Z";

    /// Ada shares a machine with kim and lee, bob.rossi with kim, and max with kim until an hour ago.
    fn stores() -> Shared {
        let shared = Shared::default();
        for (number, name) in [(1, "ada"), (2, "bob.rossi"), (3, "max")] {
            add(
                &shared.tenants,
                &json!({"metadata": {"name": name, "resourceVersion": format!("{number}")}}),
            );
        }
        let both = json!([peer("kim", "control", TODAY), peer("lee", "view", TODAY)]);
        add(&shared.instances, &instance("tenant-ada", 4, &both));
        let longer = json!([peer("kim", "view", "2026-03-05T22:59:59Z")]);
        add(&shared.instances, &instance("tenant-bob-rossi", 5, &longer));
        let over = json!([peer("kim", "view", "2026-03-04T04:00:00Z")]);
        add(&shared.instances, &instance("tenant-max", 6, &over));
        shared
    }

    fn tenant(name: &str, workspace: &str) -> Arc<Tenant> {
        let spec = json!({"workspaces": [{"name": workspace, "role": "user"}]});
        object(json!({"metadata": {"name": name}, "spec": spec}))
    }

    #[test]
    fn a_peer_sees_the_machines_that_are_shared_now() {
        let shared = stores();
        let owners = |name: &str, workspace: &str| {
            let machines = shared.with(&tenant(name, workspace), now());
            machines.into_iter().map(|machine| (machine.owner, machine.access)).collect::<Vec<_>>()
        };
        let [ada, bob] = ["ada", "bob.rossi"].map(str::to_owned);
        assert_eq!(owners("kim", "tea"), [(bob, Access::View), (ada.clone(), Access::Control)]);
        assert_eq!(owners("lee", "tea"), [(ada, Access::View)]);
        assert!(owners("kim", "net").is_empty(), "a person who left the course");
        assert!(owners("eve", "tea").is_empty());
        let found = |user: &str, namespace: &str| {
            shared.machine(user, &ObjectKey::new(namespace, "vm"), now()).map(|machine| machine.uid)
        };
        assert_eq!(found("kim", "tenant-ada").as_deref(), Some("u4"));
        assert_eq!([found("eve", "tenant-ada"), found("kim", "tenant-max")], [None, None]);
    }

    #[test]
    fn the_open_connections_of_a_machine_are_found() {
        let shared = Shared::default();
        let entry = |name: &str, user: &str, seen: &str| {
            let entry = json!({"namespace": "tenant-ada", "name": name, "environment": "main", "user": user, "as": "peer",
                "way": "terminal", "since": "2026-03-04T04:00:00Z", "seen": seen});
            entry.to_string()
        };
        let fresh = "2026-03-04T05:05:30Z";
        let data = json!({
            "a": entry("vm", "lee", fresh), "b": entry("vm", "kim", fresh), "c": entry("other", "kim", fresh),
            "d": entry("vm", "max", "2026-03-04T05:00:00Z"), "e": "nonsense",
        });
        let record = json!({"metadata": {"name": "crownlabs-peers", "namespace": "n", "resourceVersion": "1"}, "data": data});
        add(&shared.connections, &record);
        let open = shared.connections(&ObjectKey::new("tenant-ada", "vm"), now());
        assert_eq!(open.iter().map(|one| one.user.as_str()).collect::<Vec<_>>(), ["kim", "lee"]);
    }
}
