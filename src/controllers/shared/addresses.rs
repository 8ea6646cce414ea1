//! The addresses of Instances inside the cluster: those of the Services that the daemon has made for them. The address
//! in the status of an Instance is the same, but users may patch a status, so nothing is decided by that.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::api::instance::InstanceKind;
use crate::api::reference::InstanceRef;
use crate::api::{Kind, Object, labels};
use crate::capture::ConnectionCounter;
use crate::controllers::Setup;
use crate::kinds::{Service, ServiceKind};
use crate::runtime::store::{ByController, Change, Index, Store};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// Services by their address.
struct ByAddress;

impl Index<ServiceKind> for ByAddress {
    type Key = IpAddr;

    fn keys(service: &Service) -> Vec<IpAddr> {
        address(service).into_iter().collect()
    }
}

/// The address of a Service; `None` for a headless one, and while the API server has assigned none.
fn address(service: &Service) -> Option<IpAddr> {
    service.spec.cluster_ip.as_deref()?.parse().ok()
}

/// The Instance that controls an object.
fn instance_of<T: Kind>(object: &Object<T>) -> Option<InstanceRef> {
    let owner = object.metadata.controller().filter(|owner| owner.kind == InstanceKind::KIND)?;
    Some(InstanceRef {
        namespace: object.metadata.namespace.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
    })
}

/// The addresses of all Instances. Clones share them.
#[derive(Clone)]
pub struct InstanceAddresses {
    services: Arc<Store<ServiceKind>>,
}

impl InstanceAddresses {
    /// Declares the store; `/metrics` shows the series of `counter`. The series of an Instance at `port` begins at 0
    /// when it gets an address, so that Prometheus sees the first connection, and ends some time after it has lost it.
    pub fn counted(
        setup: &mut Setup<'_>,
        set: &mut StoreSet<'_>,
        counter: &Arc<ConnectionCounter>,
        port: u16,
    ) -> Self {
        let [shown, known] = [Arc::clone(counter), Arc::clone(counter)];
        setup.expositions.push(Box::new(move |text| shown.render(text)));
        Self::declare(set, move |address, is_there| {
            let destination = SocketAddr::new(address, port);
            if is_there { known.expose(destination) } else { known.withdraw(destination) }
        })
    }

    /// Declares the store; calls `changed` with each address that an Instance loses (`false`) or gets (`true`).
    fn declare(set: &mut StoreSet<'_>, changed: impl Fn(IpAddr, bool) + Send + Sync + 'static) -> Self {
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let services = set.store(&ours).index::<ByAddress>().index::<ByController>();
        let services = services.on_change(move |change: &Change<ServiceKind>, _| {
            let [old, new] = [&change.old, &change.new].map(|side| side.as_deref().and_then(address));
            let (lost, got) = (old.filter(|_| old != new), new.filter(|_| old != new));
            for (address, is_new) in
                lost.map(|old| (old, false)).into_iter().chain(got.map(|new| (new, true)))
            {
                changed(address, is_new);
            }
        });
        Self { services: services.get() }
    }

    /// The Instance at an address; `None` where there is none. Allocates nothing: it is asked for each connection.
    pub fn instance_at(&self, address: IpAddr) -> Option<InstanceRef> {
        self.services.find_by::<ByAddress, _>(&address, instance_of)
    }

    /// The addresses of the Instance with this uid, by the name of the Service: `<name>` in the layout with one
    /// environment, `<name>-<environment>` in the one with several. Only Services in the namespace of the Instance
    /// count: users may create Services in their sandbox namespaces, with any owner that they like.
    pub fn addresses_of(&self, namespace: &str, uid: &str) -> Vec<(String, IpAddr)> {
        let services = self.services.by::<ByController>(uid);
        let mut addresses: Vec<(String, IpAddr)> = services
            .iter()
            .filter(|service| service.namespace() == namespace)
            .filter_map(|service| Some((service.name().to_owned(), address(service)?)))
            .collect();
        addresses.sort();
        addresses
    }
}
