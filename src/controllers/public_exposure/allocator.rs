//! The allocator of addresses, ports and protocols: a pure state machine.
//!
//! It learns the claims of the Services from the store ([`Allocator::observe`]), and keeps its own
//! allocations until the store shows them ([`Allocator::allocate`]): a plan is never made from a state older
//! than the last allocation. Two Services may still claim the same port (if the Go operator made them in a
//! race, or a write of a process that died arrived late). Then the older one keeps it, and the younger one
//! has to move ([`Allocator::must_move`]).

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
    /// Any port of the range for automatic ones; preferably the given one, which the Service has now.
    Automatic(Transport, Option<u16>),
}

/// The address and ports that a Service has, or that are allocated for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The address.
    pub address: IpAddr,
    /// The ports, in the order of the requests.
    pub ports: Vec<Port>,
    /// The creation time of the Service in seconds since the epoch, and its uid; the smaller pair is the
    /// older Service. A Service that has not been written yet is younger than all others.
    pub age: (i64, String),
}

impl Claim {
    /// Whether it has the same address and ports, in any order.
    fn is_same(&self, other: &Self) -> bool {
        let ports = |claim: &Self| claim.ports.iter().copied().collect::<BTreeSet<Port>>();
        self.address == other.address && ports(self) == ports(other)
    }
}

/// The Services that claim a port, the oldest first.
type Holders = BTreeSet<((i64, String), ObjectKey)>;

/// The state: all claims, by Service and by address.
#[derive(Debug, Clone, Default)]
pub struct Allocator {
    /// The claims of the Services in the store.
    shown: HashMap<ObjectKey, Claim>,
    /// Allocations that the store does not show yet.
    pending: HashMap<ObjectKey, Claim>,
    /// The Services that claim each port of each address.
    held: BTreeMap<IpAddr, BTreeMap<Port, Holders>>,
}

/// The age of a Service that has not been written yet.
fn age_of_unwritten() -> (i64, String) {
    (i64::MAX, String::new())
}

impl Allocator {
    /// Sets the claim of a Service in the store; `None` when it does not exist any more or claims nothing.
    pub fn observe(&mut self, key: &ObjectKey, claim: Option<Claim>) {
        if let Some(old) = self.shown.remove(key) {
            self.drop_claim(key, &old);
        }
        let Some(claim) = claim else { return };
        // The store shows the allocation, unless this is the state before the write.
        if self.pending.get(key).is_some_and(|pending| pending.is_same(&claim)) {
            self.settle(key);
        }
        self.add_claim(key, &claim);
        self.shown.insert(key.clone(), claim);
    }

    /// Drops the allocation of a Service: the store shows it, or the write was refused, or it is not wanted
    /// any more. Must not be called after a write without a response, which may have succeeded.
    pub fn settle(&mut self, key: &ObjectKey) {
        if let Some(pending) = self.pending.remove(key) {
            self.drop_claim(key, &pending);
        }
    }

    /// The claim of a Service: its allocation, or what the store shows.
    pub fn claim(&self, key: &ObjectKey) -> Option<&Claim> {
        self.pending.get(key).or_else(|| self.shown.get(key))
    }

    /// Whether an older Service claims a port that this one claims.
    pub fn must_move(&self, key: &ObjectKey) -> bool {
        let Some(claim) = self.claim(key) else { return false };
        let Some(ports) = self.held.get(&claim.address) else { return false };
        claim.ports.iter().any(|port| {
            let mut holders = ports.get(port).into_iter().flatten();
            holders.next().is_some_and(|(_, oldest)| oldest != key)
        })
    }

    /// The other Services that claim a port that this one claims. They are reconciled when its claim is
    /// added or removed.
    pub fn rivals(&self, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let Some(claim) = self.claim(key) else { return BTreeSet::new() };
        let Some(ports) = self.held.get(&claim.address) else { return BTreeSet::new() };
        let holders = claim.ports.iter().filter_map(|port| ports.get(port)).flatten();
        holders.map(|(_, holder)| holder).filter(|holder| *holder != key).cloned().collect()
    }

    /// Allocates an address and ports for a Service, and keeps the allocation until the store shows it. The
    /// ports are in the order of the requests. `None` when no address of the pool has enough free ports.
    ///
    /// The current address of the Service is tried first, then those in use, then the others, each in
    /// numeric order. Specified ports are allocated before automatic ones. An automatic port stays the same
    /// if that is free, otherwise it is the lowest free one of the range.
    pub fn allocate(
        &mut self,
        key: &ObjectKey,
        requests: &[Request],
        pool: &Pool,
        automatic: &RangeInclusive<u16>,
    ) -> Option<Claim> {
        let current = self.claim(key).map(|claim| claim.address).filter(|address| pool.contains(*address));
        let used = self.held.keys().copied().filter(|address| pool.contains(*address));
        let unused = pool.addresses().filter(|address| !self.held.contains_key(address));
        let mut candidates =
            current.into_iter().chain(used.filter(|address| Some(*address) != current)).chain(unused);
        let (address, ports) = candidates.find_map(|address| {
            let keep = Some(address) == current;
            Some((address, self.fit(key, requests, address, keep, automatic)?))
        })?;
        let claim = Claim { address, ports, age: age_of_unwritten() };
        self.settle(key);
        self.add_claim(key, &claim);
        self.pending.insert(key.clone(), claim.clone());
        Some(claim)
    }

    /// The ports for all requests on an address; `None` if it has not enough free ones.
    fn fit(
        &self,
        key: &ObjectKey,
        requests: &[Request],
        address: IpAddr,
        keep: bool,
        automatic: &RangeInclusive<u16>,
    ) -> Option<Vec<Port>> {
        let held = self.held.get(&address);
        let mut mine: BTreeSet<Port> = BTreeSet::new();
        let by_others = |port: &Port| {
            held.and_then(|held| held.get(port))
                .is_some_and(|holders| holders.iter().any(|(_, holder)| holder != key))
        };
        for request in requests {
            if let Request::Specified(port) = request
                && (by_others(port) || !mine.insert(*port))
            {
                return None;
            }
        }
        // Then automatic ports that stay the same, before a new request can get them.
        let mut kept: HashMap<usize, Port> = HashMap::new();
        for (place, request) in requests.iter().enumerate() {
            if let Request::Automatic(transport, Some(before)) = *request
                && keep
                && automatic.contains(&before)
                && !by_others(&(transport, before))
                && mine.insert((transport, before))
            {
                kept.insert(place, (transport, before));
            }
        }
        requests
            .iter()
            .enumerate()
            .map(|(place, request)| match *request {
                Request::Specified(port) => Some(port),
                Request::Automatic(transport, _) => kept.get(&place).copied().or_else(|| {
                    let free = automatic.clone().find(|number| {
                        let port = (transport, *number);
                        !mine.contains(&port) && !by_others(&port)
                    })?;
                    mine.insert((transport, free));
                    Some((transport, free))
                }),
            })
            .collect()
    }

    fn add_claim(&mut self, key: &ObjectKey, claim: &Claim) {
        let ports = self.held.entry(claim.address).or_default();
        for port in &claim.ports {
            ports.entry(*port).or_default().insert((claim.age.clone(), key.clone()));
        }
    }

    fn drop_claim(&mut self, key: &ObjectKey, claim: &Claim) {
        let Some(ports) = self.held.get_mut(&claim.address) else { return };
        for port in &claim.ports {
            if let Some(holders) = ports.get_mut(port) {
                holders.remove(&(claim.age.clone(), key.clone()));
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
