//! The memory of the loop besides the stores: the allocator, the Instances that wait for a free port, and the times
//! since which load balancers have assigned other addresses than the requested ones.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use jiff::Timestamp;
use metrics::gauge;
use parking_lot::Mutex;

use super::Settings;
use super::allocator::{Allocator, Claim, Port, Request};
use super::observe::{Allocation, address, remembered, service_key};
use super::validate::{WantedPort, held};
use crate::api::instance::Instance;
use crate::kinds::LoadBalancerService;
use crate::runtime::ObjectKey;
use crate::runtime::metrics::precise;

/// The allocator, and the Instances that wait for a free port.
#[derive(Default)]
pub struct Addresses {
    allocator: Mutex<Allocator>,
    waiting: Mutex<BTreeSet<ObjectKey>>,
    /// The Instances whose Services have another address than the requested one: the requested address, and the start
    /// of the mismatch.
    others: Mutex<HashMap<ObjectKey, (IpAddr, Timestamp)>>,
}

impl Addresses {
    /// Updates the allocator with the claim of a Service in the store, which `shown` reads. Returns the Services that
    /// must be reconciled: Services that claim the same ports, before or after the change, and this one if it must
    /// move.
    pub fn observe(&self, service: &ObjectKey, shown: impl FnOnce() -> Option<Claim>) -> BTreeSet<ObjectKey> {
        let mut allocator = self.allocator.lock();
        let mut rivals = allocator.rivals(service);
        allocator.observe(service, shown());
        rivals.extend(allocator.rivals(service));
        if allocator.must_move(service) {
            rivals.insert(service.clone());
        }
        rivals
    }

    /// Sets the gauges about addresses and ports in use.
    pub fn measure(&self) {
        let (addresses, ports) = self.allocator.lock().used();
        gauge!("public_exposure_used_addresses").set(precise(addresses));
        gauge!("public_exposure_used_ports").set(precise(ports));
    }

    /// Updates the allocator with the address and ports in the status of an Instance, which `said` reads. Returns
    /// whether ports may have become free.
    pub fn remember(&self, instance: &ObjectKey, said: impl FnOnce() -> Option<(IpAddr, Vec<Port>)>) -> bool {
        let mut allocator = self.allocator.lock();
        allocator.remember(instance, &service_key(instance), said())
    }

    /// The address and ports of an Instance: from its Service, or else from its status, or else newly allocated. If no
    /// address has enough free ports, only some of the ports are allocated, or none (`None`), and the Instance is queued
    /// when ports are freed.
    pub fn allocate(
        &self,
        instance: &Instance,
        existing: Option<&LoadBalancerService>,
        wanted: &[WantedPort],
        settings: &Settings,
    ) -> Option<Allocation> {
        let key = ObjectKey::of(instance);
        let service = service_key(&key);
        // The lock is held from the check to the allocation, so no two Instances get the same port.
        let mut allocator = self.allocator.lock();
        self.waiting.lock().remove(&key);
        let held = existing.and_then(|existing| held(existing, wanted, settings));
        let held = held.filter(|_| !allocator.must_move(&service));
        let held = held.zip(existing.and_then(|existing| address(existing, settings)));
        // An address outside of the pool is kept, unless the status names an address of the pool: in that case, the
        // Service was modified.
        let is_kept = |address| settings.pool.contains(address) || remembered(instance, settings).is_none();
        let held = held.filter(|(_, address)| is_kept(*address));
        if let Some((ports, address)) = held {
            return Some(Allocation { address, ports: wanted.iter().cloned().zip(ports).collect() });
        }
        let before = prior(instance, existing, settings);
        let requests: Vec<Request> = wanted.iter().map(|port| port.request(&before)).collect();
        let automatic = settings.config.automatic_port_range.ports();
        if let Some(claim) = allocator.allocate(&service, &key, &requests, &settings.pool, &automatic) {
            let ports = claim.ports.iter().map(|(_, port)| *port);
            return Some(Allocation {
                address: claim.address,
                ports: wanted.iter().cloned().zip(ports).collect(),
            });
        }
        self.waiting.lock().insert(key.clone());
        let (address, ports) =
            allocator.allocate_part(&service, &key, &requests, &settings.pool, &automatic)?;
        let with_port = |(port, found): (&WantedPort, Option<Port>)| Some((port.clone(), found?.1));
        Some(Allocation { address, ports: wanted.iter().zip(ports).filter_map(with_port).collect() })
    }

    /// The time since which the load balancer has assigned another address than the requested one (`wanted`) to the
    /// Service of an Instance, as far as this process has observed it. Without `wanted`, it has not.
    pub fn other_since(
        &self,
        instance: &ObjectKey,
        wanted: Option<IpAddr>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let mut others = self.others.lock();
        let Some(wanted) = wanted else {
            others.remove(instance);
            return None;
        };
        let since = others.get(instance).filter(|(address, _)| *address == wanted).map_or(now, |it| it.1);
        others.insert(instance.clone(), (wanted, since));
        Some(since)
    }

    /// Drops the last allocation for an Instance, because its write was rejected.
    pub fn refuse(&self, instance: &ObjectKey) {
        self.allocator.lock().refuse(&service_key(instance), instance);
    }

    /// Keeps the last allocation for an Instance, because its write got no response.
    pub fn await_outcome(&self, instance: &ObjectKey) {
        self.allocator.lock().await_outcome(&service_key(instance), instance);
    }

    /// Drops the allocations for an Instance that are missing in the store. The store must be as recent as the writes.
    pub fn settle(&self, instance: &ObjectKey) {
        self.allocator.lock().settle(&service_key(instance), instance);
    }

    /// Whether an allocation for an Instance may have been written without a response.
    pub fn is_unanswered(&self, instance: &ObjectKey) -> bool {
        self.allocator.lock().is_unanswered(&service_key(instance), instance)
    }

    /// Removes an Instance from the Instances that wait for a free port or another address.
    pub fn forget_waiting(&self, instance: &ObjectKey) {
        self.waiting.lock().remove(instance);
        self.others.lock().remove(instance);
    }

    /// Returns the Instances that wait for a free port, and removes them.
    pub fn take_waiting(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut *self.waiting.lock())
    }
}

/// The former ports of an Instance, from its Service and its status. If the Service has no address or another type, it
/// was modified, and the status takes precedence.
fn prior(instance: &Instance, service: Option<&LoadBalancerService>, settings: &Settings) -> Vec<WantedPort> {
    let of_service = service.into_iter().flat_map(|service| &service.spec.ports);
    let of_service = of_service.filter_map(WantedPort::of_service);
    let of_status = instance.status.public_exposure.iter().flat_map(|exposure| &exposure.ports);
    let of_status = of_status.filter_map(WantedPort::of_status);
    let is_intact = service.is_some_and(|service| super::observe::claim(service, settings).is_some());
    if is_intact || remembered(instance, settings).is_none() {
        of_service.chain(of_status).collect()
    } else {
        of_status.chain(of_service).collect()
    }
}
