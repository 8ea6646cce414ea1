//! The allocator of addresses, ports and protocols: a pure state machine.
//!
//! It reads the claims of the Services from the store ([`Allocator::observe`]), and keeps its own allocations until the
//! store shows them ([`Allocator::allocate`]), so a plan is never based on a state older than the last allocation. The
//! address and ports in the status of an Instance are reserved for it ([`Allocator::remember`]), so that a Service that
//! was deleted or damaged is restored with the same address and ports. Two Services may still claim the same port, if
//! the Go operator created them in a race, or if a write of a dead process arrived late. In that case, the older
//! Service keeps the port, and the younger one must move ([`Allocator::must_move`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use crate::config::pool::Pool;
use crate::runtime::ObjectKey;

/// The protocol of a port. The same port number may be used once for each protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A port of an address.
pub type Port = (Transport, u16);

/// A request for a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// This port.
    Specified(Port),
    /// Any port of the automatic range; preferably the given one, which the Service has now. A former range may have
    /// contained it.
    Automatic(Transport, Option<u16>),
}

/// The address and ports that a Service has or was allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The address.
    pub address: IpAddr,
    /// The ports, in the order of the requests.
    pub ports: Vec<Port>,
    /// The basis of the claim.
    pub basis: Basis,
}

/// The basis of a claim. If two claims conflict, the smaller basis wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// A Service in the store. An older Service is smaller.
    Service {
        /// The creation time of the Service in seconds since the epoch.
        created: i64,
        /// Its uid, which breaks ties between Services created in the same second.
        uid: String,
    },
    /// An allocation that is not in the store yet.
    Allocation,
    /// The status of the Instance with this name.
    Status(String),
}

impl Claim {
    /// Whether it has the same address and ports, in any order.
    fn is_same(&self, other: &Self) -> bool {
        let ports = |claim: &Self| claim.ports.iter().copied().collect::<BTreeSet<Port>>();
        self.address == other.address && ports(self) == ports(other)
    }
}

/// The Services that claim a port, in order of precedence.
type Holders = BTreeSet<(Basis, ObjectKey)>;

/// Whether another Service than `key` has a port. Among claims that are based only on a status, the first one wins.
/// Otherwise, two contradictory statuses would block a port for everyone.
fn is_taken(holders: &Holders, key: &ObjectKey) -> bool {
    let is_status = |(basis, _): &&(Basis, ObjectKey)| matches!(basis, Basis::Status(_));
    holders.iter().filter(|holder| !is_status(holder)).any(|(_, holder)| holder != key)
        || holders.iter().find(is_status).is_some_and(|(_, holder)| holder != key)
}

/// An allocation that is not in the store yet.
#[derive(Debug, Clone)]
struct Pending {
    /// The Instance that it was made for.
    instance: ObjectKey,
    claim: Claim,
    /// Whether it was written without a response, so that the write may still take effect.
    is_unanswered: bool,
}

impl Pending {
    /// Whether it belongs to the same Instance and has the same address and ports.
    fn is_same(&self, other: &Self) -> bool {
        self.instance == other.instance && self.claim.is_same(&other.claim)
    }
}

/// The state: all claims, by Service and by address.
#[derive(Debug, Clone, Default)]
pub struct Allocator {
    /// The claims of the Services in the store.
    shown: HashMap<ObjectKey, Claim>,
    /// Allocations that are not in the store yet, by Service, in order. There can be several after writes without a
    /// response.
    pending: HashMap<ObjectKey, Vec<Pending>>,
    /// The claims from the status of Instances, by Instance, each with its Service.
    remembered: HashMap<ObjectKey, (ObjectKey, Claim)>,
    /// The Services that claim each port of each address.
    held: BTreeMap<IpAddr, BTreeMap<Port, Holders>>,
}

impl Allocator {
    /// The number of addresses in use, and the number of ports in use.
    pub fn used(&self) -> (usize, usize) {
        (self.held.len(), self.held.values().map(BTreeMap::len).sum())
    }

    /// Sets the claim of a Service in the store; `None` if the Service was deleted or claims nothing.
    pub fn observe(&mut self, key: &ObjectKey, claim: Option<Claim>) {
        if let Some(old) = self.shown.remove(key) {
            self.drop_claim(key, &old);
        }
        let Some(claim) = claim else { return };
        // The store shows an allocation, and with it the outcome of the earlier ones, unless this is the state before
        // the write.
        let pending = self.pending.get(key).map_or(&[][..], Vec::as_slice);
        if let Some(at) = pending.iter().rposition(|pending| pending.claim.is_same(&claim)) {
            self.set_pending(key, pending[at + 1..].to_vec());
        }
        self.add_claim(key, &claim);
        self.shown.insert(key.clone(), claim);
    }

    /// Sets the address and ports that the status of an Instance contains for its Service `key`; `None` if it contains
    /// nothing, or if the Instance no longer requests ports. Returns whether a former claim was dropped or changed.
    pub fn remember(
        &mut self,
        instance: &ObjectKey,
        key: &ObjectKey,
        said: Option<(IpAddr, Vec<Port>)>,
    ) -> bool {
        let basis = Basis::Status(instance.name.to_string());
        let claim = said.map(|(address, ports)| Claim { address, ports, basis });
        let before = self.remembered.remove(instance);
        let is_same = before.as_ref().map(|(_, claim)| claim) == claim.as_ref();
        if let Some((key, claim)) = &before {
            self.drop_claim(key, claim);
        }
        if let Some(claim) = claim {
            self.add_claim(key, &claim);
            self.remembered.insert(instance.clone(), (key.clone(), claim));
        }
        before.is_some() && !is_same
    }

    /// Drops the last allocation for an Instance, because its write was rejected. Earlier allocations that were written
    /// without a response stay, and so do allocations for another Instance with the same Service name.
    pub fn refuse(&mut self, key: &ObjectKey, instance: &ObjectKey) {
        let mut pending = self.pending.get(key).cloned().unwrap_or_default();
        pending.retain(|pending| pending.instance != *instance || pending.is_unanswered);
        self.set_pending(key, pending);
    }

    /// Keeps the last allocation for an Instance. Its write got no response and may still take effect.
    pub fn await_outcome(&mut self, key: &ObjectKey, instance: &ObjectKey) {
        let mut pending = self.pending.get(key).cloned().unwrap_or_default();
        let of_instance = pending.iter_mut().filter(|pending| pending.instance == *instance);
        of_instance.for_each(|pending| pending.is_unanswered = true);
        if let Some(last) = pending.pop() {
            // Once written, it replaces an equal allocation that was written before.
            pending.retain(|before| !last.is_unanswered || !before.is_same(&last));
            pending.push(last);
        }
        self.set_pending(key, pending);
    }

    /// Drops all allocations for an Instance. The store must be as recent as the writes.
    pub fn settle(&mut self, key: &ObjectKey, instance: &ObjectKey) {
        let mut pending = self.pending.get(key).cloned().unwrap_or_default();
        pending.retain(|pending| pending.instance != *instance);
        self.set_pending(key, pending);
    }

    fn set_pending(&mut self, key: &ObjectKey, pending: Vec<Pending>) {
        for before in self.pending.remove(key).unwrap_or_default() {
            self.drop_claim(key, &before.claim);
        }
        // Two of them may have a port in common.
        for now in &pending {
            self.add_claim(key, &now.claim);
        }
        if !pending.is_empty() {
            self.pending.insert(key.clone(), pending);
        }
    }

    /// Whether there is an allocation for an Instance that the store does not show, because it was not written yet or
    /// got no response.
    pub fn is_unanswered(&self, key: &ObjectKey, instance: &ObjectKey) -> bool {
        self.pending.get(key).into_iter().flatten().any(|pending| pending.instance == *instance)
    }

    /// The claim of a Service: its last allocation, or else its claim in the store.
    pub fn claim(&self, key: &ObjectKey) -> Option<&Claim> {
        let last = self.pending.get(key).and_then(|pending| pending.last());
        last.map(|pending| &pending.claim).or_else(|| self.shown.get(key))
    }

    /// Whether an older Service claims a port that this one claims. A Service that is being deleted counts too, because
    /// a load balancer may still use it.
    pub fn must_move(&self, key: &ObjectKey) -> bool {
        self.holders(key).filter_map(BTreeSet::first).any(|(_, oldest)| oldest != key)
    }

    /// The other Services that claim a port that this one claims. They are reconciled when its claim is added or
    /// removed.
    pub fn rivals(&self, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let holders = self.holders(key).flatten().map(|(_, holder)| holder);
        holders.filter(|holder| *holder != key).cloned().collect()
    }

    /// The Services that claim each of the ports that this one claims.
    fn holders(&self, key: &ObjectKey) -> impl Iterator<Item = &Holders> {
        let claim = self.claim(key);
        let held = claim.and_then(|claim| self.held.get(&claim.address));
        let ports = claim.into_iter().flat_map(|claim| &claim.ports);
        ports.filter_map(move |port| held?.get(port))
    }

    /// Allocates an address and ports for all requests of the Service `key` of an Instance, and keeps the allocation until
    /// the store shows it. The ports are in the order of the requests. `None` if no address of the pool has enough free
    /// ports.
    ///
    /// The first candidate is the current address of the Service or the address in the status of the Instance, or else
    /// the current address outside of the pool. Addresses in use follow, then unused ones, each group in numeric order.
    /// Specified ports are allocated before automatic ones. An automatic port keeps its number if that is free, even
    /// outside of the range. Otherwise it gets the lowest free number of the range.
    pub fn allocate(
        &mut self,
        key: &ObjectKey,
        instance: &ObjectKey,
        requests: &[Request],
        pool: &Pool,
        automatic: &RangeInclusive<u16>,
    ) -> Option<Claim> {
        let current = self.current(key, instance, pool);
        let (address, ports) = self.candidates(current, pool).find_map(|address| {
            let keep = Some(address) == current;
            let ports: Option<Vec<Port>> =
                self.fit(key, requests, address, keep, automatic).into_iter().collect();
            Some((address, ports?))
        })?;
        Some(self.keep(key, instance, address, ports))
    }

    /// Allocates ports for some of the requests, as [`Allocator::allocate`] does for all of them: on the current address of
    /// the Service, or else on the address with the most of them. Returns the address, and the port of each request;
    /// `None` if no request can be fulfilled.
    pub fn allocate_part(
        &mut self,
        key: &ObjectKey,
        instance: &ObjectKey,
        requests: &[Request],
        pool: &Pool,
        automatic: &RangeInclusive<u16>,
    ) -> Option<(IpAddr, Vec<Option<Port>>)> {
        let current = self.current(key, instance, pool);
        let candidates: Vec<IpAddr> = match current {
            Some(current) => vec![current],
            None => self.candidates(None, pool).collect(),
        };
        let mut best: Option<(IpAddr, Vec<Option<Port>>)> = None;
        let count = |ports: &[Option<Port>]| ports.iter().flatten().count();
        for address in candidates {
            let ports = self.fit(key, requests, address, Some(address) == current, automatic);
            if count(&ports) > best.as_ref().map_or(0, |(_, best)| count(best)) {
                best = Some((address, ports));
            }
        }
        let (address, ports) = best?;
        self.keep(key, instance, address, ports.iter().flatten().copied().collect());
        Some((address, ports))
    }

    /// The current address of a Service: in the pool, or else in the store.
    fn current(&self, key: &ObjectKey, instance: &ObjectKey, pool: &Pool) -> Option<IpAddr> {
        let remembered = self.remembered.get(instance).map(|(_, claim)| claim);
        let mut known = self.claim(key).into_iter().chain(remembered).map(|claim| claim.address);
        // A Service keeps an address that was removed from the pool: a change of the configuration moves no Instance.
        // If the status names another address of the pool, the Service was modified.
        let shown = self.shown.get(key).map(|claim| claim.address);
        known.find(|address| pool.contains(*address)).or(shown)
    }

    /// The addresses for a Service, the preferred ones first.
    fn candidates(&self, current: Option<IpAddr>, pool: &Pool) -> impl Iterator<Item = IpAddr> {
        let used = self.held.keys().copied().filter(|address| pool.contains(*address));
        let unused = pool.addresses().filter(|address| !self.held.contains_key(address));
        current.into_iter().chain(used.filter(move |address| Some(*address) != current)).chain(unused)
    }

    /// Keeps an allocation until the store shows it, and returns it.
    fn keep(&mut self, key: &ObjectKey, instance: &ObjectKey, address: IpAddr, ports: Vec<Port>) -> Claim {
        let claim = Claim { address, ports, basis: Basis::Allocation };
        let mut pending = self.pending.get(key).cloned().unwrap_or_default();
        let now = Pending { instance: instance.clone(), claim: claim.clone(), is_unanswered: false };
        // An earlier written allocation keeps its position: this write may be rejected while the earlier one takes
        // effect.
        pending.retain(|before| before.is_unanswered || !before.is_same(&now));
        pending.push(now);
        self.set_pending(key, pending);
        claim
    }

    /// The port for each request on an address; `None` for a request that cannot be fulfilled there.
    fn fit(
        &self,
        key: &ObjectKey,
        requests: &[Request],
        address: IpAddr,
        keep: bool,
        automatic: &RangeInclusive<u16>,
    ) -> Vec<Option<Port>> {
        let held = self.held.get(&address);
        let mut mine: BTreeSet<Port> = BTreeSet::new();
        let by_others =
            |port: &Port| held.and_then(|held| held.get(port)).is_some_and(|holders| is_taken(holders, key));
        let mut free = |port: Port| (!by_others(&port) && mine.insert(port)).then_some(port);
        let specified = requests.iter().map(|request| match *request {
            Request::Specified(port) => free(port),
            Request::Automatic(..) => None,
        });
        let mut ports: Vec<Option<Port>> = specified.collect();
        // Unchanged automatic ports come next, before a new request can take them.
        for (request, found) in requests.iter().zip(&mut ports) {
            if let Request::Automatic(transport, Some(before)) = *request
                && keep
            {
                *found = free((transport, before));
            }
        }
        for (request, found) in requests.iter().zip(&mut ports) {
            if let Request::Automatic(transport, _) = *request
                && found.is_none()
            {
                *found = automatic.clone().find_map(|number| free((transport, number)));
            }
        }
        ports
    }

    fn add_claim(&mut self, key: &ObjectKey, claim: &Claim) {
        let ports = self.held.entry(claim.address).or_default();
        for port in &claim.ports {
            ports.entry(*port).or_default().insert((claim.basis.clone(), key.clone()));
        }
    }

    fn drop_claim(&mut self, key: &ObjectKey, claim: &Claim) {
        let Some(ports) = self.held.get_mut(&claim.address) else { return };
        for port in &claim.ports {
            if let Some(holders) = ports.get_mut(port) {
                holders.remove(&(claim.basis.clone(), key.clone()));
                if holders.is_empty() {
                    ports.remove(port);
                }
            }
        }
        if ports.is_empty() {
            self.held.remove(&claim.address);
        }
    }
}

#[cfg(test)]
mod tests;
