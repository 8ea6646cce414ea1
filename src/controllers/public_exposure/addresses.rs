//! What the loop keeps in memory beside the stores: who has which address and ports, and who waits for some.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Settings;
use super::allocator::{Allocator, Claim, Request};
use super::observe::{Allocation, address};
use super::validate::{WantedPort, held};
use crate::kinds::LoadBalancerService;
use crate::runtime::ObjectKey;

/// The allocator and those who wait for room.
#[derive(Default)]
pub struct Addresses {
    allocator: Mutex<Allocator>,
    waiting: Mutex<BTreeSet<ObjectKey>>,
}

impl Addresses {
    /// Takes note of what the store shows of a Service, as `shown` reads it. Returns the Services that have to
    /// look again: those that claim the same, before or now, and this one when it has to move.
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

    /// The address and ports of an Instance: those that its Service has, or new ones, which are nobody else's
    /// from then on. `None` when no address has room; then what is freed from here on asks for the Instance.
    pub fn allocate(
        &self,
        instance: &ObjectKey,
        service: &ObjectKey,
        existing: Option<&LoadBalancerService>,
        wanted: &[WantedPort],
        settings: &Settings,
    ) -> Option<Allocation> {
        // In one step: nobody else is given anything meanwhile.
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

    /// Forgets what a Service was given and the store does not show: it was refused, or is not wanted any more.
    pub fn settle(&self, service: &ObjectKey) {
        self.allocator().settle(service);
    }

    /// Forgets that an Instance waits for room.
    pub fn forget_waiting(&self, instance: &ObjectKey) {
        self.waiting().remove(instance);
    }

    /// The Instances that wait for room; none waits from then on.
    pub fn take_waiting(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut *self.waiting())
    }

    fn allocator(&self) -> MutexGuard<'_, Allocator> {
        // No code that can panic runs between two changes of it.
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
