//! Parses the records: `ConfigMap`s that an administrator may have damaged. Pure functions.
//!
//! A report counts only under the name that its content determines. The name of a record determines its pool,
//! regardless of the content: its addresses may be in use on links, so they always count. Entries that cannot be parsed
//! are skipped, and restored from other sources.

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

/// The maximum number of addresses in one pool. A `ConfigMap` has at most 1 MiB.
pub const LIMIT: usize = 2_000;
/// The maximum number of bytes in the record of a pool; see [`LIMIT`].
pub const LIMIT_BYTES: usize = 900_000;

/// Allocations by the uid of their pod.
pub type Entries = BTreeMap<String, Vec<Allocation>>;

/// The content of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A pool.
    Pool(Arc<PoolRecord>),
    /// The report of a node.
    Report(Arc<NodeReport>),
}

impl Record {
    /// The pool, if it is one.
    pub fn pool(&self) -> Option<&PoolRecord> {
        if let Self::Pool(pool) = self { Some(pool) } else { None }
    }

    /// The report, if it is one.
    pub fn report(&self) -> Option<&NodeReport> {
        if let Self::Report(report) = self { Some(report) } else { None }
    }

    /// The ranges and bridges of its links. The links of a report count too, because the record of their pool may be
    /// lost.
    pub fn in_use(&self) -> BTreeSet<InUse> {
        match self {
            Self::Pool(pool) => {
                let (namespace, range) = (&pool.namespace, pool.range);
                let of =
                    |bridge: &String| InUse { namespace: namespace.clone(), range, bridge: bridge.clone() };
                pool.allocations().map(|(_, allocation)| of(&allocation.bridge)).collect()
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

/// A recorded pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRecord {
    /// The namespace of its `PodConfig`s.
    pub namespace: String,
    /// Its range.
    pub range: Range,
    /// Its bridges.
    pub bridges: Vec<String>,
    /// Its allocations. All are in the range, and no address occurs twice.
    pub entries: Entries,
    /// Whether a part of it could not be parsed and may be lost.
    pub is_damaged: bool,
}

/// The report of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// The node.
    pub node: Node,
    /// The state of its allocations, by the uid of their pod.
    pub links: BTreeMap<String, Vec<Link>>,
}

/// Parses a record. Returns `None` if the name does not match the content.
pub fn read(record: &NetworkRecord) -> Option<Record> {
    if let Some(pool) = read_pool(record) {
        return Some(Record::Pool(Arc::new(pool)));
    }
    let report = read_report(record).filter(|_| record.label(RECORD) == Some(REPORT))?;
    Some(Record::Report(Arc::new(report)))
}

/// Parses a pool. Returns `None` if the record does not have the name of a pool.
pub fn read_pool(record: &NetworkRecord) -> Option<PoolRecord> {
    let (namespace, range) = pool_of(record.name())?;
    let (entries, is_whole) = entries(record, &range);
    let pool = record.spec.get(POOL_KEY).and_then(|text| serde_json::from_str(text).ok());
    let pool = pool.filter(|pool: &Pool| pool.namespace == namespace && pool.range == range.to_string());
    let is_damaged = !is_whole || pool.as_ref().is_none_or(|pool| pool.gateway != range.gateway());
    let bridges = pool.map(|pool| pool.bridges).unwrap_or_default();
    Some(PoolRecord { namespace: namespace.to_owned(), range, bridges, entries, is_damaged })
}

/// The namespace and the range of the pool whose record has this name. A dash in the name may stand for several
/// characters. The correct reading is the one that produces the same name.
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

/// The allocations of a pool, and whether all of them could be parsed.
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

/// Parses a report. Returns `None` if the record does not have the name for its node. Invalid links are skipped.
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

/// Whether such a link is possible. Texts of a report can become part of a record's name or a request's path.
fn is_sound(link: &Link) -> bool {
    check_dns_label(&link.namespace).is_ok() && is_link_name(&link.attachment)
}

/// The address and prefix length of a link that exists.
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

    /// Whether it has no allocation and is not requested by a `PodConfig`.
    pub fn is_unused(&self) -> bool {
        self.entries.is_empty() && self.bridges.is_empty()
    }

    /// The data of its record.
    pub fn data(&self) -> BTreeMap<String, String> {
        let (namespace, bridges) = (self.namespace.clone(), self.bridges.clone());
        let (range, gateway) = (self.range.to_string(), self.range.gateway());
        let pool = Pool { namespace, range, gateway, bridges };
        let lists = self.entries.iter().map(|(uid, list)| (uid.clone(), text(list)));
        lists.chain([(POOL_KEY.to_owned(), text(&pool))]).collect()
    }
}

/// Serialises a value of a record to JSON. This cannot fail.
pub fn text<T: serde::Serialize>(value: &T) -> String {
    // Serialisation fails only for maps with non-string keys and for fallible serialisers. Types of records have
    // neither.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
