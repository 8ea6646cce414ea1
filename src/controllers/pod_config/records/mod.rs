//! The records as they are read: `ConfigMap`s that an administrator may have damaged. Pure functions.
//!
//! A report counts only under the name that its own content gives it. A pool is the one that its name says, whatever its
//! content says: its addresses may be on links, so they count all the same. What cannot be read is left out, and made again
//! from what else is known.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::claims::InUse;
use super::ranges::Range;
use crate::api::names::check_dns_label;
use crate::controllers::pod_network::{
    Allocation, Link, LinkState, NODE_KEY, Node, POOL_KEY, Pool, RECORD, REPORT, is_link_name, pool_name,
    report_name,
};
use crate::kinds::NetworkRecord;

/// The most addresses in one pool, and the most bytes in its record: a `ConfigMap` has at most 1 MiB.
pub const LIMIT: usize = 2_000;
/// See [`LIMIT`].
pub const LIMIT_BYTES: usize = 900_000;

/// Allocations by the uid of their pod.
pub type Entries = BTreeMap<String, Vec<Allocation>>;

/// What a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A pool.
    Pool(PoolRecord),
    /// The report of a node.
    Report(Arc<NodeReport>),
}

impl Record {
    /// The pool that it is.
    pub fn pool(&self) -> Option<&PoolRecord> {
        if let Self::Pool(pool) = self { Some(pool) } else { None }
    }

    /// The report that it is.
    pub fn report(&self) -> Option<&NodeReport> {
        if let Self::Report(report) = self { Some(report) } else { None }
    }

    /// The ranges and bridges of which it has links. Those of a report count too: the record of their pool may be lost.
    pub fn in_use(&self) -> BTreeSet<InUse> {
        match self {
            Self::Pool(pool) => {
                let of = |allocation: &Allocation| InUse {
                    namespace: pool.namespace.clone(),
                    range: pool.range,
                    bridge: allocation.bridge.clone(),
                };
                pool.allocations().map(|(_, allocation)| of(allocation)).collect()
            }
            Self::Report(report) => {
                let live = report.links.values().flatten().filter(|link| address(link).is_some());
                let of = |link: &Link| {
                    let range = Range::parse(&link.address).ok()?;
                    Some(InUse { namespace: link.namespace.clone(), range, bridge: link.bridge.clone() })
                };
                live.filter_map(of).collect()
            }
        }
    }
}

/// A pool as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRecord {
    /// The namespace of its `PodConfig`s.
    pub namespace: String,
    /// Its range.
    pub range: Range,
    /// Its bridges.
    pub bridges: Vec<String>,
    /// Its allocations: in the range, and of each address one.
    pub entries: Entries,
    /// Whether a part of it could not be read, and may be lost.
    pub is_damaged: bool,
}

/// What a node reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// The node.
    pub node: Node,
    /// What it has made of its allocations, by the uid of their pod.
    pub links: BTreeMap<String, Vec<Link>>,
}

/// What a record says; `None` if it is not what its name says.
pub fn read(record: &NetworkRecord) -> Option<Record> {
    if let Some(pool) = read_pool(record) {
        return Some(Record::Pool(pool));
    }
    let report = read_report(record).filter(|_| record.label(RECORD) == Some(REPORT))?;
    Some(Record::Report(Arc::new(report)))
}

/// A pool, if the record has the name of one.
pub fn read_pool(record: &NetworkRecord) -> Option<PoolRecord> {
    let (namespace, range) = pool_of(record.name())?;
    let (entries, is_whole) = entries(record, &range);
    let pool = record.spec.get(POOL_KEY).and_then(|text| serde_json::from_str(text).ok());
    let pool = pool.filter(|pool: &Pool| pool.namespace == namespace && pool.range == range.to_string());
    let is_damaged = !is_whole || pool.as_ref().is_none_or(|pool| pool.gateway != range.gateway());
    let bridges = pool.map(|pool| pool.bridges).unwrap_or_default();
    Some(PoolRecord { namespace: namespace.to_owned(), range, bridges, entries, is_damaged })
}

/// The namespace and the range of the pool whose record has this name. In a name, a dash may stand for several characters:
/// the right reading is the one that leads to the same name.
fn pool_of(name: &str) -> Option<(&str, Range)> {
    let (both, _) = name.strip_prefix("podnet-")?.rsplit_once('-')?;
    both.match_indices('-').find_map(|(place, _)| {
        let (namespace, address) = both.split_at_checked(place)?;
        let (address, prefix) = address.strip_prefix('-')?.rsplit_once('-')?;
        let texts = [".", ":"].map(|separator| format!("{}/{prefix}", address.replace('-', separator)));
        let range = texts.iter().find_map(|text| Range::parse(text).ok())?;
        let is_this = check_dns_label(namespace).is_ok() && pool_name(namespace, &range.to_string()) == name;
        is_this.then_some((namespace, range))
    })
}

/// The allocations of a pool, and whether all could be read.
fn entries(record: &NetworkRecord, range: &Range) -> (Entries, bool) {
    let (mut found, mut taken, mut is_whole) = (Entries::new(), BTreeSet::new(), true);
    for (uid, text) in record.spec.iter().filter(|(key, _)| *key != POOL_KEY) {
        let Ok(mut list) = serde_json::from_str::<Vec<Allocation>>(text) else {
            is_whole = false;
            continue;
        };
        let before = list.len();
        list.retain(|allocation| range.is_for_pods(allocation.address) && taken.insert(allocation.address));
        is_whole &= list.len() == before && before > 0;
        if !list.is_empty() {
            found.insert(uid.clone(), list);
        }
    }
    (found, is_whole)
}

/// A report, if it has the name of its node. Links that cannot be read are left out.
fn read_report(record: &NetworkRecord) -> Option<NodeReport> {
    let node: Node = serde_json::from_str(record.spec.get(NODE_KEY)?).ok()?;
    if record.name() != report_name(&node.node) {
        return None;
    }
    let links = record.spec.iter().filter(|(key, _)| *key != NODE_KEY);
    let links = links.filter_map(|(uid, text)| {
        let mut list: Vec<Link> = serde_json::from_str(text).ok()?;
        list.retain(is_sound);
        Some((uid.clone(), list))
    });
    Some(NodeReport { links: links.collect(), node })
}

/// Whether there can be such a link. What a report says may become the name of a record, and the path of a request.
fn is_sound(link: &Link) -> bool {
    check_dns_label(&link.namespace).is_ok() && is_link_name(&link.attachment)
}

/// The address of a link that is there, and its prefix length.
pub fn address(link: &Link) -> Option<(IpAddr, u8)> {
    if link.state == LinkState::Released {
        return None;
    }
    let (address, prefix) = link.address.split_once('/')?;
    Some((address.parse().ok()?, prefix.parse().ok()?))
}

impl PoolRecord {
    /// A pool without allocations.
    pub fn empty(namespace: &str, range: Range) -> Self {
        let (namespace, bridges, entries) = (namespace.to_owned(), Vec::new(), Entries::new());
        Self { namespace, range, bridges, entries, is_damaged: false }
    }

    /// The name of its record.
    pub fn name(&self) -> String {
        pool_name(&self.namespace, &self.range.to_string())
    }

    /// Its allocations, each with the uid of its pod.
    pub fn allocations(&self) -> impl Iterator<Item = (&str, &Allocation)> {
        self.entries
            .iter()
            .flat_map(|(uid, list)| list.iter().map(move |allocation| (uid.as_str(), allocation)))
    }

    /// Whether it has no allocation, and no `PodConfig` names it.
    pub fn is_unused(&self) -> bool {
        self.entries.is_empty() && self.bridges.is_empty()
    }

    /// The data of its record.
    pub fn data(&self) -> BTreeMap<String, String> {
        let pool = Pool {
            namespace: self.namespace.clone(),
            range: self.range.to_string(),
            gateway: self.range.gateway(),
            bridges: self.bridges.clone(),
        };
        let lists = self.entries.iter().map(|(uid, list)| (uid.clone(), text(list)));
        lists.chain([(POOL_KEY.to_owned(), text(&pool))]).collect()
    }
}

/// A value that serialises without failure, as JSON text.
pub fn text<T: serde::Serialize>(value: &T) -> String {
    // The types of records have text keys and no fallible serialisers: the only two causes of an error.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
