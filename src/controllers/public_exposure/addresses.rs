//! What the loop keeps in memory besides the stores: the allocator, and the Instances that wait for a free
//! port.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Settings;
use super::allocator::{Allocator, Claim, Request};
use super::observe::{Allocation, address};
use super::validate::{WantedPort, held};
use crate::kinds::LoadBalancerService;
use crate::runtime::ObjectKey;

/// The allocator, and the Instances that wait for a free port.
#[derive(Default)]
pub struct Addresses {
    allocator: Mutex<Allocator>,
    waiting: Mutex<BTreeSet<ObjectKey>>,
}

impl Addresses {
    /// Updates the allocator with the claim of a Service in the store, which `shown` reads. Returns the
    /// Services that have to be reconciled: those that claim the same ports, before or now, and this one if
    /// it has to move.
    pub fn observe(&self, service: &ObjectKey, shown: impl FnOnce() -> Option<Claim>) -> BTreeSet<ObjectKey> {
        let mut allocator = self.allocator();
        let mut rivals = allocator.rivals(service);
        allocator.observe(service, shown());
        rivals.extend(allocator.rivals(service));
        if allocator.must_move(service) {
            rivals.insert(service.clone());
        }
        rivals
    }

    /// The address and ports of an Instance: those that its Service has, or newly allocated ones. `None`
    /// when no address has enough free ports; the Instance is then added to the queue when ports are freed.
    pub fn allocate(
        &self,
        instance: &ObjectKey,
        service: &ObjectKey,
        existing: Option<&LoadBalancerService>,
        wanted: &[WantedPort],
        settings: &Settings,
    ) -> Option<Allocation> {
        // The lock is held from the check to the allocation, so no two Instances get the same port.
        let mut allocator = self.allocator();
        self.waiting().remove(instance);
        let held = held(existing, wanted, settings).filter(|_| !allocator.must_move(service));
        let held = held.zip(existing.and_then(|existing| address(existing, settings)));
        let found = held.or_else(|| {
            let before = existing.map_or(&[][..], |service| &service.spec.ports);
            let requests: Vec<Request> = wanted.iter().map(|port| port.request(before)).collect();
            let claim = allocator.allocate(service, &requests, &settings.pool, &settings.automatic)?;
            Some((claim.ports.iter().map(|(_, port)| *port).collect(), claim.address))
        });
        if found.is_none() {
            self.waiting().insert(instance.clone());
        }
        let (ports, address) = found?;
        Some(Allocation { address, ports: wanted.iter().cloned().zip(ports).collect() })
    }

    /// Drops the allocation of a Service that the store does not show: its write was refused, or is not
    /// wanted any more.
    pub fn settle(&self, service: &ObjectKey) {
        self.allocator().settle(service);
    }

    /// Removes an Instance from those that wait for a free port.
    pub fn forget_waiting(&self, instance: &ObjectKey) {
        self.waiting().remove(instance);
    }

    /// Returns the Instances that wait for a free port, and removes them.
    pub fn take_waiting(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut *self.waiting())
    }

    fn allocator(&self) -> MutexGuard<'_, Allocator> {
        // No code that can panic runs between two changes of the state.
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
