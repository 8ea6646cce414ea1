//! Which pod has which address: the next state of a pool. A pure state machine without memory: what was allocated is in
//! the record, and everything else is given.
//!
//! An address is allocated to an attachment of a pod, and stays until its link is gone. It never changes while it is
//! wanted. The lowest free address is taken; one that a report shows on a live link is never free.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::ranges::Range;
use super::records::{Entries, LIMIT, LIMIT_BYTES, text};
use crate::controllers::pod_network::Allocation;

/// The uid of a pod, and the name of an attachment.
pub type Slot = (String, String);

/// An attachment that a pod is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRequest {
    /// The uid of the pod.
    pub uid: String,
    /// What is recorded for it, but for the address, which has no meaning.
    pub allocation: Allocation,
    /// Whether it may get an address now; if not, it only keeps the one that it has.
    pub may_begin: bool,
    /// The address that the status of the `PodConfig` says it has had, for records that were lost.
    pub remembered: Option<IpAddr>,
}

/// A live link in a report, whose address is in the range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveLink {
    /// The uid of its pod.
    pub uid: String,
    /// What was allocated, as far as the link shows it.
    pub allocation: Allocation,
    /// Whether its prefix is that of the range. If not, it is of another pool, and only its address counts.
    pub is_own: bool,
}

/// What the next state of a pool depends on.
pub struct Input<'a> {
    /// The range.
    pub range: Range,
    /// What is recorded.
    pub entries: &'a Entries,
    /// What pods are to have from this pool, in the order in which they get addresses.
    pub wanted: &'a [AddressRequest],
    /// The live links in the range, according to the reports of nodes that are not lost.
    pub live: &'a [LiveLink],
    /// What has an allocation in another pool, or is still reported as released: it gets no address before that is gone.
    pub busy: &'a BTreeSet<Slot>,
    /// Whether an allocation stays as it is, because what its `PodConfig` asks for cannot be read.
    pub is_frozen: &'a dyn Fn(&Allocation) -> bool,
    /// Whether the link of an allocation that is not wanted is gone: its node says so, or is lost.
    pub is_gone: &'a dyn Fn(&str, &Allocation) -> bool,
}

/// Why a wanted attachment has no address yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Without {
    /// A former link of it is still being removed.
    Leaving,
    /// No address of the range is free.
    Exhausted,
    /// The record has no room for one more.
    Full,
}

/// The next state of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Next {
    /// What is to be recorded.
    pub entries: Entries,
    /// The places in `wanted` of what has no address, and why.
    pub without: Vec<(usize, Without)>,
}

impl AddressRequest {
    /// Whether an allocation for this pod is for this.
    fn is_for(&self, allocation: &Allocation) -> bool {
        !allocation.release
            && allocation.attachment == self.allocation.attachment
            && allocation.pod_config_uid == self.allocation.pod_config_uid
    }

    fn allocation(&self, address: IpAddr) -> Allocation {
        Allocation { address, ..self.allocation.clone() }
    }

    /// What it is for.
    pub fn slot(&self) -> Slot {
        (self.uid.clone(), self.allocation.attachment.clone())
    }
}

/// A pool while its next state is made.
struct Draft {
    entries: Entries,
    taken: BTreeSet<IpAddr>,
    count: usize,
    bytes: usize,
}

impl Draft {
    /// Adds an allocation; `false` if there is no room for it.
    fn add(&mut self, uid: &str, allocation: Allocation) -> bool {
        let bytes = size(uid, &allocation);
        if self.count >= LIMIT || self.bytes + bytes > LIMIT_BYTES {
            return false;
        }
        self.keep(uid, allocation, bytes);
        true
    }

    /// Adds one that is recorded already.
    fn keep(&mut self, uid: &str, allocation: Allocation, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
        self.taken.insert(allocation.address);
        self.entries.entry(uid.to_owned()).or_default().push(allocation);
    }

    fn has(&self, uid: &str, attachment: &str) -> bool {
        let list = self.entries.get(uid).into_iter().flatten();
        list.into_iter().any(|allocation| allocation.attachment == attachment)
    }
}

/// The bytes of an allocation in a record, at most.
fn size(uid: &str, allocation: &Allocation) -> usize {
    text(allocation).len() + uid.len() + 16
}

/// The next state of a pool.
pub fn next(input: &Input<'_>) -> Next {
    let mut wanted: BTreeMap<&str, Vec<&AddressRequest>> = BTreeMap::new();
    for one in input.wanted {
        wanted.entry(&one.uid).or_default().push(one);
    }
    let find = |uid: &str, allocation: &Allocation| {
        wanted.get(uid).and_then(|list| list.iter().find(|wanted| wanted.is_for(allocation)).copied())
    };
    let mut draft = Draft { entries: Entries::new(), taken: BTreeSet::new(), count: 0, bytes: 0 };
    for (uid, list) in input.entries {
        for allocation in list {
            let kept = match find(uid, allocation) {
                Some(wanted) => wanted.allocation(allocation.address),
                None if (input.is_frozen)(allocation) => allocation.clone(),
                None if (input.is_gone)(uid, allocation) => continue,
                None => Allocation { release: true, ..allocation.clone() },
            };
            let bytes = size(uid, &kept);
            draft.keep(uid, kept, bytes);
        }
    }
    restore(input, &find, &mut draft);
    let without = serve(input, &mut draft);
    Next { entries: draft.entries, without }
}

/// Records live links that the record does not have, because it was lost: with the address that they have, for the pod if
/// it is to have one, else to be released. What cannot be recorded keeps its address from others all the same.
fn restore<'w>(
    input: &Input<'_>,
    find: &dyn Fn(&str, &Allocation) -> Option<&'w AddressRequest>,
    draft: &mut Draft,
) {
    for LiveLink { uid, allocation, is_own } in input.live {
        let address = allocation.address;
        let slot = (uid.clone(), allocation.attachment.clone());
        let is_known =
            draft.taken.contains(&address) || draft.has(uid, &slot.1) || input.busy.contains(&slot);
        if *is_own && !is_known && input.range.is_for_pods(address) {
            let restored = match find(uid, allocation) {
                Some(wanted) => wanted.allocation(address),
                None => Allocation { release: true, ..allocation.clone() },
            };
            draft.add(uid, restored);
        }
        draft.taken.insert(address);
    }
}

/// Gives addresses to what has none: the remembered ones first, then the lowest free ones.
fn serve(input: &Input<'_>, draft: &mut Draft) -> Vec<(usize, Without)> {
    let mut without = Vec::new();
    let mut open: Vec<(usize, &AddressRequest)> = Vec::new();
    for (place, wanted) in input.wanted.iter().enumerate() {
        let list = draft.entries.get(&wanted.uid);
        let has_own = list.is_some_and(|list| list.iter().any(|allocation| wanted.is_for(allocation)));
        if has_own {
            continue;
        }
        if input.busy.contains(&wanted.slot()) || draft.has(&wanted.uid, &wanted.allocation.attachment) {
            without.push((place, Without::Leaving));
            continue;
        }
        if !wanted.may_begin {
            continue;
        }
        match wanted.remembered.filter(|address| input.range.is_for_pods(*address)) {
            Some(address) if !draft.taken.contains(&address) => {
                if !draft.add(&wanted.uid, wanted.allocation(address)) {
                    without.push((place, Without::Full));
                }
            }
            _ => open.push((place, wanted)),
        }
    }
    let taken = draft.taken.clone();
    let mut free = input.range.free(&taken);
    for (place, wanted) in open {
        // An address that is not recorded stays free.
        let Some(address) = free.next() else {
            without.push((place, Without::Exhausted));
            continue;
        };
        if !draft.add(&wanted.uid, wanted.allocation(address)) {
            without.push((place, Without::Full));
        }
    }
    without.sort_unstable();
    without
}

#[cfg(test)]
mod tests;
