//! The memory of the loop besides the stores, derived from them: the records, which are read once per change, and the
//! decisions about ranges and bridges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::claims::InUse;
use super::records::{NodeReport, PoolRecord, Record};
use super::telemetry::ADDRESSES;
use super::validate::Decisions;
use crate::runtime::ObjectKey;
use crate::runtime::metric::Metric;

/// The records by their names, and the decisions.
#[derive(Default)]
pub struct Cache {
    records: Mutex<BTreeMap<String, Record>>,
    decisions: Mutex<Arc<Decisions>>,
    /// Whether an input of the decisions has changed since.
    is_stale: AtomicBool,
}

/// All records.
#[derive(Default)]
pub struct Known {
    /// The pools.
    pub pools: Vec<Arc<PoolRecord>>,
    /// The reports by node.
    pub reports: BTreeMap<String, Arc<NodeReport>>,
}

/// The `PodConfig`s that a change of a record affects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Concerns {
    /// All `PodConfig`s in these namespaces.
    pub namespaces: BTreeSet<String>,
    /// All `PodConfig`s.
    pub all: bool,
    /// Whether an allocation or an entry of a report was removed that a pod may wait for.
    pub is_loss: bool,
}

impl Cache {
    /// Takes a record. `shown` reads it from the store while no other change is processed, so that the later of two
    /// concurrent changes wins.
    pub fn take(&self, name: &str, shown: impl FnOnce() -> Option<Record>) -> Concerns {
        let mut records = self.records.lock();
        let new = shown();
        let old = match &new {
            Some(record) => records.insert(name.to_owned(), record.clone()),
            None => records.remove(name),
        };
        let in_use = |record: Option<&Record>| record.map(Record::in_use).unwrap_or_default();
        if in_use(old.as_ref()) != in_use(new.as_ref()) {
            self.expire();
        }
        concerns(old.as_ref(), new.as_ref())
    }

    /// Marks the decisions as stale.
    pub fn expire(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// The decisions, and the `PodConfig`s whose decisions have changed. `decide` computes them again if they are
    /// stale.
    pub fn decisions(&self, decide: impl FnOnce(&[InUse]) -> Decisions) -> (Arc<Decisions>, Vec<ObjectKey>) {
        let mut decisions = self.decisions.lock();
        // Cleared before anything is read, so that concurrent changes are picked up by the next call.
        if !self.is_stale.swap(false, Ordering::SeqCst) {
            return (Arc::clone(&decisions), Vec::new());
        }
        let in_use: BTreeSet<InUse> = self.records.lock().values().flat_map(Record::in_use).collect();
        let new = Arc::new(decide(&in_use.into_iter().collect::<Vec<_>>()));
        let changed = new.iter().filter(|(key, verdicts)| decisions.get(*key) != Some(*verdicts));
        let changed = changed.map(|(key, _)| key.clone()).collect();
        *decisions = Arc::clone(&new);
        (new, changed)
    }

    /// Returns all records.
    pub fn all(&self) -> Known {
        let mut known = Known::default();
        for record in self.records.lock().values() {
            match record {
                Record::Pool(pool) => known.pools.push(Arc::clone(pool)),
                Record::Report(report) => {
                    known.reports.insert(report.node.node.clone(), Arc::clone(report));
                }
            }
        }
        known
    }

    /// The namespaces with allocations or links on a node, according to their pools or its report.
    pub fn namespaces_on(&self, node: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for record in self.records.lock().values() {
            match record {
                Record::Pool(pool) => {
                    let has = pool.allocations().any(|(_, allocation)| allocation.node == node);
                    found.extend(has.then(|| pool.namespace.clone()));
                }
                Record::Report(report) if report.node.node == node => {
                    found.extend(report.links.values().flatten().map(|link| link.namespace.clone()));
                }
                Record::Report(_) => {}
            }
        }
        found
    }

    /// Appends the metrics of the pools, in the format of Prometheus.
    pub fn render(&self, text: &mut String) {
        let records = self.records.lock();
        let Some(Metric { name, help, .. }) = ADDRESSES.first() else { return };
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for pool in records.values().filter_map(Record::pool) {
            let used = pool.allocations().count() as u128;
            let free = pool.range.capacity().min(super::records::LIMIT as u128).saturating_sub(used);
            let PoolRecord { namespace, range, .. } = pool;
            for (state, number) in [("free", free), ("used", used)] {
                let _ = writeln!(
                    text,
                    "{name}{{namespace=\"{namespace}\",range=\"{range}\",state=\"{state}\"}} {number}"
                );
            }
        }
    }
}

/// The `PodConfig`s that the change of a record affects.
fn concerns(old: Option<&Record>, new: Option<&Record>) -> Concerns {
    let mut concerns = Concerns::default();
    if old == new {
        return concerns;
    }
    let [before, now] = [old, new].map(|record| record.and_then(Record::pool));
    concerns.namespaces.extend([before, now].into_iter().flatten().map(|pool| pool.namespace.clone()));
    concerns.is_loss = before.is_some_and(|before| {
        before.entries.iter().any(|(uid, list)| now.and_then(|now| now.entries.get(uid)) != Some(list))
    });
    let [before, now] = [old, new].map(|record| record.and_then(Record::report));
    let [former, problem] = [before, now].map(|report| report.map(|report| &report.node.problem));
    concerns.all = former != problem;
    let uids: BTreeSet<&String> =
        [before, now].into_iter().flatten().flat_map(|report| report.links.keys()).collect();
    for uid in uids {
        let [before, now] = [before, now].map(|report| report.and_then(|report| report.links.get(uid)));
        if before != now {
            concerns.is_loss = true;
            let links = [before, now].into_iter().flatten().flatten();
            concerns.namespaces.extend(links.map(|link| link.namespace.clone()));
        }
    }
    concerns
}
