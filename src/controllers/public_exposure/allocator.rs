//! Who has which address, port and protocol: the allocator, a pure state machine (03 §1.7, 00
//! decisions 11 and 25).
//!
//! It learns the claims of the Services from the store ([`Allocator::observe`]), and keeps what it has
//! given away itself until the store shows it ([`Allocator::allocate`]): a plan is never made on a
//! world older than the last allocation. Where two claims meet all the same (an operator before us had
//! a race, or the write of a predecessor that died came late), the older one stays and the younger one
//! is told to move ([`Allocator::must_move`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use crate::config::pool::Pool;
use crate::runtime::ObjectKey;

/// The protocol of a port. Port numbers of two protocols have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A port of an address.
pub type Port = (Transport, u16);

/// A port that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// That very port.
    Specified(Port),
    /// Any port of the range for automatic ones; rather the one that it has had.
    Automatic(Transport, Option<u16>),
}

/// What a Service holds, or was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The address.
    pub address: IpAddr,
    /// The ports, in the order of the requests.
    pub ports: Vec<Port>,
    /// When the Service was made, in seconds since the epoch, and its uid: the lesser one is the name_owner.
    /// What was never written is younger than everything.
    pub age: (i64, String),
}

impl Claim {
    /// Whether it is for the same address and ports, in whatever order.
    fn is_same(&self, other: &Self) -> bool {
        let ports = |claim: &Self| claim.ports.iter().copied().collect::<BTreeSet<Port>>();
        self.address == other.address && ports(self) == ports(other)
    }
}

/// The holders of a port, by age.
type Holders = BTreeSet<((i64, String), ObjectKey)>;

/// The state: all claims, by holder and by address.
#[derive(Debug, Clone, Default)]
pub struct Allocator {
    /// What the store shows.
    shown: HashMap<ObjectKey, Claim>,
    /// What was given away and is not shown yet.
    given: HashMap<ObjectKey, Claim>,
    /// Who holds what.
    held: BTreeMap<IpAddr, BTreeMap<Port, Holders>>,
}

/// The age of what the store does not show.
fn unborn() -> (i64, String) {
    (i64::MAX, String::new())
}

impl Allocator {
    /// Takes note of what the store shows of a Service; `None` when it is gone or claims nothing.
    pub fn observe(&mut self, key: &ObjectKey, claim: Option<Claim>) {
        if let Some(old) = self.shown.remove(key) {
            self.drop_claim(key, &old);
        }
        let Some(claim) = claim else { return };
        // The write that was under way has arrived, unless this is the state before it.
        if self.given.get(key).is_some_and(|given| given.is_same(&claim)) {
            self.settle(key);
        }
        self.add_claim(key, &claim);
        self.shown.insert(key.clone(), claim);
    }

    /// Forgets what was given away: the store shows it, or it was refused, or it is not wanted any more.
    /// After a write whose answer was lost it must not be called.
    pub fn settle(&mut self, key: &ObjectKey) {
        if let Some(given) = self.given.remove(key) {
            self.drop_claim(key, &given);
        }
    }

    /// What the Service holds: what it was given last, or what the store shows.
    #[must_use]
    pub fn claim(&self, key: &ObjectKey) -> Option<&Claim> {
        self.given.get(key).or_else(|| self.shown.get(key))
    }

    /// Whether an older Service holds a port that this one claims.
    #[must_use]
    pub fn must_move(&self, key: &ObjectKey) -> bool {
        let Some(claim) = self.claim(key) else { return false };
        let Some(ports) = self.held.get(&claim.address) else { return false };
        claim.ports.iter().any(|port| {
            let mut holders = ports.get(port).into_iter().flatten();
            holders.next().is_some_and(|(_, eldest)| eldest != key)
        })
    }

    /// The others that claim what this Service claims: they have to look again when it goes, or comes.
    #[must_use]
    pub fn rivals(&self, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let Some(claim) = self.claim(key) else { return BTreeSet::new() };
        let Some(ports) = self.held.get(&claim.address) else { return BTreeSet::new() };
        let holders = claim.ports.iter().filter_map(|port| ports.get(port)).flatten();
        holders.map(|(_, holder)| holder).filter(|holder| *holder != key).cloned().collect()
    }

    /// Gives an address and ports to a Service, and remembers it until the store shows it. The ports are
    /// in the order of the requests. `None` when no address of the pool has room for all of them.
    ///
    /// The address that the Service has comes first, then those that are in use, then the others, each in
    /// numeric order. Specified ports go before automatic ones; an automatic port stays what it was where
    /// that is free, else it is the lowest free one of the range.
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
        let claim = Claim { address, ports, age: unborn() };
        self.settle(key);
        self.add_claim(key, &claim);
        self.given.insert(key.clone(), claim.clone());
        Some(claim)
    }

    /// The ports for all requests on an address, if it has room for them.
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
        // Then those that stay, so that no newcomer takes what another of the list has had.
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
