//! The addresses of Instances inside the cluster, from the Services that the daemon has created. The status of an
//! Instance has the same address, but users may patch the status, so no decision depends on it.
//!
//! A Service counts only if the Instance that controls it exists in the Service's namespace. Users may create Services
//! with any labels and owners in their sandbox namespaces.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::api::instance::InstanceKind;
use crate::api::{Kind, Object, labels};
use crate::capture::ConnectionCounter;
use crate::controllers::setup::Setup;
use crate::kinds::{Service, ServiceKind};
use crate::runtime::ObjectKey;
use crate::runtime::store::{ByController, Change, Store, index};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

index! {
    /// Services by their address.
    struct ByAddress of ServiceKind by IpAddr;
    |service| address(service).into_iter().collect()
}

/// The address of a Service; `None` for a headless Service, and while the API server has assigned no address.
fn address(service: &Service) -> Option<IpAddr> {
    service.spec.cluster_ip.as_deref()?.parse().ok()
}

/// The Instance that controls a Service, if it exists.
fn instance_of(service: &Service, instances: &Store<InstanceKind>) -> Option<ObjectKey> {
    let owner = service.metadata.controller().filter(|owner| owner.kind == InstanceKind::KIND)?;
    let instance = instances.get(service.namespace(), &owner.name)?;
    (*instance.uid() == *owner.uid).then(|| ObjectKey::of(&*instance))
}

/// The addresses of all Instances. Clones share them.
#[derive(Clone)]
pub struct InstanceAddresses {
    services: Arc<Store<ServiceKind>>,
    instances: Arc<Store<InstanceKind>>,
}

impl InstanceAddresses {
    /// Declares the stores and exports the series of `counter` in `/metrics`. The series of an Instance at `port`
    /// begins at 0 when the Instance gets an address, so that Prometheus sees the first connection. It ends some time
    /// after the address is lost.
    pub fn counted(
        setup: &mut Setup<'_>,
        set: &mut StoreSet<'_>,
        counter: &Arc<ConnectionCounter>,
        port: u16,
    ) -> Self {
        let [shown, known] = [Arc::clone(counter), Arc::clone(counter)];
        setup.expositions.push(Box::new(move |text| shown.render(text)));
        let instances = set.store::<InstanceKind>(&Selection::ALL).get();
        let this = Self::declare(set, &instances);
        this.follow(move |address, is_there| {
            let destination = SocketAddr::new(address, port);
            if is_there { known.expose(destination) } else { known.withdraw(destination) }
        });
        this
    }

    /// Declares the store of the Services of these Instances.
    pub fn declare(set: &mut StoreSet<'_>, instances: &Arc<Store<InstanceKind>>) -> Self {
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let services = set.store(&ours).index::<ByAddress>().index::<ByController>().get();
        Self { services, instances: Arc::clone(instances) }
    }

    /// Calls `changed` with each address that an Instance loses (`false`) or gets (`true`). The cause may be a change
    /// of the Service or of the Instance.
    fn follow(&self, changed: impl Fn(IpAddr, bool) + Send + Sync + 'static) {
        let changed = Arc::new(changed);
        let (notify, instances) = (Arc::clone(&changed), Arc::clone(&self.instances));
        self.services.subscribe(move |change: &Change<ServiceKind>| {
            let [old, new] = [&change.old, &change.new].map(|side| side.as_deref().and_then(address));
            let of_instance = |new: &Service| instance_of(new, &instances).is_some();
            if let Some(lost) = old.filter(|_| old != new) {
                notify(lost, false);
            }
            if let Some(got) = new.filter(|_| change.new.as_deref().is_some_and(of_instance)) {
                notify(got, true);
            }
        });
        let this = self.clone();
        self.instances.subscribe(move |change: &Change<InstanceKind>| {
            if change.object_if(Object::uid).is_none() {
                return;
            }
            for (instance, is_there) in [(&change.old, false), (&change.new, true)] {
                let addresses = instance.iter().flat_map(|of| this.addresses_of(of.namespace(), of.uid()));
                addresses.for_each(|(_, address)| changed(address, is_there));
            }
        });
    }

    /// The addresses of these Services, before any Instance is known.
    #[cfg(test)]
    pub fn of(services: Arc<Store<ServiceKind>>) -> Self {
        let mut factory = crate::runtime::store::StoreFactory::default();
        let instances = StoreSet::new("test", &mut factory).store(&Selection::ALL).get();
        Self { services, instances }
    }

    /// Returns the Instance at an address, if any. It is called for each connection, so it does not allocate.
    pub fn instance_at(&self, address: IpAddr) -> Option<ObjectKey> {
        self.services.find_by::<ByAddress, _>(&address, |service| instance_of(service, &self.instances))
    }

    /// The addresses of the Instance with this uid and the names of their Services: `<name>` in the layout with one
    /// environment, `<name>-<environment>` in the layout with several. Only Services in the namespace of the Instance
    /// count.
    pub fn addresses_of(&self, namespace: &str, uid: &str) -> Vec<(String, IpAddr)> {
        let services = self.services_of(namespace, uid).into_iter();
        services.filter_map(|(name, address)| Some((name, address?))).collect()
    }

    /// Like `addresses_of`, but includes Services without an address.
    pub fn services_of(&self, namespace: &str, uid: &str) -> Vec<(String, Option<IpAddr>)> {
        let services = self.services.by::<ByController>(uid);
        let ours = services.iter().filter(|service| service.namespace() == namespace);
        let mut services: Vec<_> =
            ours.map(|service| (service.name().to_owned(), address(service))).collect();
        services.sort();
        services
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::instance::Instance;
    use crate::runtime::store::StoreFactory;

    /// The stores, and the calls of `follow`.
    struct World {
        addresses: InstanceAddresses,
        told: Arc<Mutex<Vec<(String, bool)>>>,
        version: u64,
    }

    impl World {
        fn new() -> Self {
            let mut factory = StoreFactory::default();
            let mut set = StoreSet::new("test", &mut factory);
            let instances = set.store::<InstanceKind>(&Selection::ALL).get();
            let addresses = InstanceAddresses::declare(&mut set, &instances);
            let told = Arc::<Mutex<Vec<_>>>::default();
            let tell = Arc::clone(&told);
            addresses.follow(move |address, is_there| {
                tell.lock().expect("no panic").push((address.to_string(), is_there));
            });
            Self { addresses, told, version: 0 }
        }

        fn metadata(&mut self, namespace: &str, name: &str, uid: &str) -> Value {
            self.version += 1;
            let version = self.version.to_string();
            json!({"namespace": namespace, "name": name, "uid": uid, "resourceVersion": version})
        }

        fn instance(&mut self, namespace: &str, name: &str, uid: &str) -> Instance {
            let metadata = self.metadata(namespace, name, uid);
            serde_json::from_value(json!({"metadata": metadata})).expect("an Instance")
        }

        fn service(&mut self, namespace: &str, name: &str, address: &str, owner: [&str; 2]) -> Service {
            let mut metadata = self.metadata(namespace, name, &format!("of-{namespace}-{name}"));
            metadata["labels"] = json!({(labels::MANAGED_BY): labels::MANAGED_BY_INSTANCE});
            metadata["ownerReferences"] = json!([{"apiVersion": "crownlabs.polito.it/v1alpha2",
                "kind": "Instance", "name": owner[0], "uid": owner[1], "controller": true}]);
            serde_json::from_value(json!({"metadata": metadata, "spec": {"clusterIP": address}}))
                .expect("a Service")
        }

        fn told(&self) -> Vec<(String, bool)> {
            std::mem::take(&mut *self.told.lock().expect("no panic"))
        }

        fn at(&self, address: &str) -> Option<String> {
            let found = self.addresses.instance_at(address.parse().expect("an address"));
            found.map(|instance| instance.to_string())
        }
    }

    fn told(address: &str, is_there: bool) -> (String, bool) {
        (address.to_owned(), is_there)
    }

    #[test]
    fn a_service_counts_while_its_instance_exists() {
        let mut world = World::new();
        let service = world.service("tenant-ada", "lab", "10.0.0.1", ["lab", "i"]);
        world.addresses.services.apply_event(service);
        assert_eq!((world.told(), world.at("10.0.0.1")), (vec![], None), "its Instance is not known yet");
        let instance = world.instance("tenant-ada", "lab", "i");
        world.addresses.instances.apply_event(instance);
        assert_eq!(world.told(), [told("10.0.0.1", true)]);
        assert_eq!(world.at("10.0.0.1").as_deref(), Some("tenant-ada/lab"));
        let moved = world.service("tenant-ada", "lab", "10.0.0.2", ["lab", "i"]);
        world.addresses.services.apply_event(moved);
        assert_eq!(world.told(), [told("10.0.0.1", false), told("10.0.0.2", true)]);
        // The Service belongs to an earlier Instance with the same name.
        let other = world.instance("tenant-ada", "lab", "j");
        world.addresses.instances.delete_event(&other);
        let other = world.instance("tenant-ada", "lab", "j");
        world.addresses.instances.apply_event(other);
        assert_eq!((world.told(), world.at("10.0.0.2")), (vec![told("10.0.0.2", false)], None));
    }

    #[test]
    fn services_created_by_users_belong_to_no_instance() {
        let mut world = World::new();
        let instance = world.instance("tenant-ada", "lab", "i");
        world.addresses.instances.apply_event(instance);
        for (namespace, owner) in [
            // An Instance in another namespace, a missing Instance, and a different Instance with the same name.
            ("sandbox-eve", ["lab", "i"]),
            ("tenant-ada", ["none", "i"]),
            ("tenant-ada", ["lab", "forged"]),
        ] {
            let service = world.service(namespace, "forged", "10.0.0.9", owner);
            world.addresses.services.apply_event(service);
            assert_eq!((world.told(), world.at("10.0.0.9")), (vec![], None), "{namespace} {owner:?}");
            let service = world.service(namespace, "forged", "10.0.0.9", owner);
            world.addresses.services.delete_event(&service);
            world.told();
        }
    }
}
