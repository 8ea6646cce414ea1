//! What the loop keeps in memory besides the stores: the allocator, the Instances that wait for a free port,
//! and since when a load balancer has assigned other addresses than the requested ones.

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
    /// The requested addresses of Instances whose Services have another one, and since when they have it.
    others: Mutex<HashMap<ObjectKey, (IpAddr, Timestamp)>>,
}

impl Addresses {
    /// Updates the allocator with the claim of a Service in the store, which `shown` reads. Returns the
    /// Services that have to be reconciled: those that claim the same ports, before or now, and this one if
    /// it has to move.
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

    /// Sets the gauges of how much is in use.
    pub fn measure(&self) {
        let (addresses, ports) = self.allocator.lock().used();
        gauge!("public_exposure_used_addresses").set(precise(addresses));
        gauge!("public_exposure_used_ports").set(precise(ports));
    }

    /// Updates the allocator with what the status of an Instance says, which `said` reads. Returns whether
    /// ports may have become free.
    pub fn remember(&self, instance: &ObjectKey, said: impl FnOnce() -> Option<(IpAddr, Vec<Port>)>) -> bool {
        let mut allocator = self.allocator.lock();
        allocator.remember(instance, &service_key(instance), said())
    }

    /// The address and ports of an Instance: those that its Service has, else those in its status, else
    /// newly allocated ones. `None` when no address has enough free ports; the Instance is then added to the
    /// queue when ports are freed.
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
        let held = held(existing, wanted, settings).filter(|_| !allocator.must_move(&service));
        let held = held.zip(existing.and_then(|existing| address(existing, settings)));
        let found = held.or_else(|| {
            let before = before(instance, existing, settings);
            let requests: Vec<Request> = wanted.iter().map(|port| port.request(&before)).collect();
            let claim = allocator.allocate(&service, &key, &requests, &settings.pool, &settings.automatic)?;
            Some((claim.ports.iter().map(|(_, port)| *port).collect(), claim.address))
        });
        if found.is_none() {
            self.waiting.lock().insert(key);
        }
        let (ports, address) = found?;
        Some(Allocation { address, ports: wanted.iter().cloned().zip(ports).collect() })
    }

    /// Since when the load balancer has assigned another address than the requested one (`wanted`) to the
    /// Service of an Instance, as far as this process has seen it; `None` if it has not (`is_other`).
    pub fn other_since(
        &self,
        instance: &ObjectKey,
        wanted: IpAddr,
        is_other: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let mut others = self.others.lock();
        if !is_other {
            others.remove(instance);
            return None;
        }
        let since = others.get(instance).filter(|(address, _)| *address == wanted).map(|(_, since)| *since);
        let since = since.unwrap_or(now);
        others.insert(instance.clone(), (wanted, since));
        Some(since)
    }

    /// Drops the last allocation for an Instance, whose write was refused.
    pub fn refuse(&self, instance: &ObjectKey) {
        self.allocator.lock().refuse(&service_key(instance), instance);
    }

    /// Keeps the last allocation for an Instance, to whose write there was no response.
    pub fn await_outcome(&self, instance: &ObjectKey) {
        self.allocator.lock().await_outcome(&service_key(instance), instance);
    }

    /// Drops the allocations for an Instance that the store does not show: it is as recent as the writes.
    pub fn settle(&self, instance: &ObjectKey) {
        self.allocator.lock().settle(&service_key(instance), instance);
    }

    /// Whether an allocation for an Instance may have been written without a response.
    pub fn is_unanswered(&self, instance: &ObjectKey) -> bool {
        self.allocator.lock().is_unanswered(&service_key(instance), instance)
    }

    /// Removes an Instance from those that wait for a free port or another address.
    pub fn forget_waiting(&self, instance: &ObjectKey) {
        self.waiting.lock().remove(instance);
        self.others.lock().remove(instance);
    }

    /// Returns the Instances that wait for a free port, and removes them.
    pub fn take_waiting(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut *self.waiting.lock())
    }
}

/// The ports that an Instance had before: those of its Service, and those in its status. A Service without an
/// address, or of another type, was changed by somebody: then the status comes first.
fn before(
    instance: &Instance,
    existing: Option<&LoadBalancerService>,
    settings: &Settings,
) -> Vec<WantedPort> {
    let of_service = existing.map_or(&[][..], |service| &service.spec.ports);
    let mut of_service: Vec<WantedPort> =
        of_service.iter().filter_map(|port| WantedPort::try_from(port).ok()).collect();
    let of_status = instance.status.public_exposure.as_ref().map_or(&[][..], |exposure| &exposure.ports);
    let of_status = of_status.iter().filter_map(|port| WantedPort::try_from(port).ok());
    let is_intact = existing.is_some_and(|service| super::observe::claim(service, settings).is_some());
    if is_intact || remembered(instance, settings).is_none() {
        of_service.extend(of_status);
        of_service
    } else {
        of_status.chain(of_service.clone()).collect()
    }
}
