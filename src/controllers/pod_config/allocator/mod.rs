//! Computes which pod has which address: the next state of a pool. It is a pure state machine without memory. Past
//! allocations come from the record, and everything else is passed in.
//!
//! An address is allocated to an attachment of a pod, and stays allocated until its link is gone. It never changes
//! while the attachment needs it. New allocations take the lowest free address. An address that a report shows on a
//! live link is never free.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::ranges::Range;
use super::records::{Entries, LIMIT, LIMIT_BYTES, text};
use crate::controllers::pod_network::Allocation;

/// The uid of a pod, and the name of an attachment.
pub type Slot = (String, String);

/// A request for the address of an attachment of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRequest {
    /// The uid of the pod.
    pub uid: String,
    /// The allocation to record. Its address is a placeholder.
    pub allocation: Allocation,
    /// Whether it may get a new address now. If not, it only keeps an existing address.
    pub may_begin: bool,
    /// The last address according to the status of the `PodConfig`, for the case that the record was lost.
    pub remembered: Option<IpAddr>,
}

/// A live link in a report, with an address in the range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveLink {
    /// The uid of its pod.
    pub uid: String,
    /// The allocation, as far as the link shows it.
    pub allocation: Allocation,
    /// Whether its prefix is the prefix of the range. If not, the link belongs to another pool, and only its address
    /// counts.
    pub is_own: bool,
}

/// The input for the next state of a pool.
pub struct Input<'a> {
    /// The range.
    pub range: Range,
    /// The recorded allocations.
    pub entries: &'a Entries,
    /// The addresses that pods need from this pool, in the order of allocation.
    pub wanted: &'a [AddressRequest],
    /// The live links in the range, as reported by nodes that are not lost.
    pub live: &'a [LiveLink],
    /// Attachments that have an allocation in another pool or are still reported as released. They get no address until
    /// that allocation or report is gone.
    pub busy: &'a BTreeSet<Slot>,
    /// Whether an allocation must not change because the spec of its `PodConfig` cannot be parsed.
    pub is_frozen: &'a dyn Fn(&Allocation) -> bool,
    /// Whether the link of an unwanted allocation is gone, because its node reports that or is lost.
    pub is_gone: &'a dyn Fn(&str, &Allocation) -> bool,
}

/// The reason why a wanted attachment has no address yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Without {
    /// A former link of the attachment is still being removed.
    Leaving,
    /// No address of the range is free.
    Exhausted,
    /// The record has no room for another allocation.
    Full,
}

/// The next state of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Next {
    /// The allocations to record.
    pub entries: Entries,
    /// The indices in `wanted` of the attachments without an address, with the reasons.
    pub without: Vec<(usize, Without)>,
}

impl AddressRequest {
    /// Whether an allocation of this pod belongs to this request.
    fn is_for(&self, allocation: &Allocation) -> bool {
        !allocation.release
            && allocation.attachment == self.allocation.attachment
            && allocation.pod_config_uid == self.allocation.pod_config_uid
    }

    fn allocation(&self, address: IpAddr) -> Allocation {
        Allocation { address, ..self.allocation.clone() }
    }

    /// The pod and the attachment.
    pub fn slot(&self) -> Slot {
        (self.uid.clone(), self.allocation.attachment.clone())
    }
}

/// A pool whose next state is being computed.
struct Draft {
    entries: Entries,
    taken: BTreeSet<IpAddr>,
    count: usize,
    bytes: usize,
}

impl Draft {
    /// Adds an allocation. Returns `false` if there is no room for it.
    fn add(&mut self, uid: &str, allocation: Allocation) -> bool {
        let bytes = size(uid, &allocation);
        if self.count >= LIMIT || self.bytes + bytes > LIMIT_BYTES {
            return false;
        }
        self.keep(uid, allocation, bytes);
        true
    }

    /// Adds an allocation that is already recorded.
    fn keep(&mut self, uid: &str, allocation: Allocation, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
        self.taken.insert(allocation.address);
        self.entries.entry(uid.to_owned()).or_default().push(allocation);
    }

    fn has(&self, uid: &str, attachment: &str) -> bool {
        self.entries.get(uid).into_iter().flatten().any(|allocation| allocation.attachment == attachment)
    }
}

/// The maximum number of bytes of an allocation in a record.
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

/// Records live links that a lost record no longer contains. They keep their address, for the pod if it needs one, or
/// to be released. If a link cannot be recorded, its address still counts as taken.
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
            let restored = find(uid, allocation).map(|wanted| wanted.allocation(address));
            let released = || Allocation { release: true, ..allocation.clone() };
            draft.add(uid, restored.unwrap_or_else(released));
        }
        draft.taken.insert(address);
    }
}

/// Allocates addresses to requests that have none: first the remembered addresses, then the lowest free ones.
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
