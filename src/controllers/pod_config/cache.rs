//! The memory of the loop besides the stores, all of which follows from them: the records, read once for each
//! change, and what is decided about ranges and bridges.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::claims::InUse;
use super::records::{NodeReport, PoolRecord, Record};
use super::telemetry::ADDRESSES;
use super::validate::Verdicts;
use crate::runtime::ObjectKey;
use crate::runtime::metric::Metric;

/// The records by their names, and the decisions.
#[derive(Default)]
pub struct Cache {
    records: Mutex<BTreeMap<String, Arc<Record>>>,
    decisions: Mutex<Arc<HashMap<ObjectKey, Verdicts>>>,
    /// Whether something has changed since that decisions depend on.
    is_stale: AtomicBool,
}

/// Which `PodConfig`s a change of a record concerns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Concerns {
    /// All of these namespaces.
    pub namespaces: BTreeSet<String>,
    /// All.
    pub all: bool,
    /// Whether something is gone that a pod may wait for: an allocation, or an entry of a report.
    pub is_loss: bool,
}

impl Cache {
    /// Takes a record, which `shown` reads from the store while no other change is taken, so that of two concurrent changes
    /// the later one counts.
    pub fn take(&self, name: &str, shown: impl FnOnce() -> Option<Record>) -> Concerns {
        let mut records = self.records.lock();
        let new = shown();
        let old = match &new {
            Some(record) => records.insert(name.to_owned(), Arc::new(record.clone())),
            None => records.remove(name),
        };
        let in_use = |record: Option<&Record>| record.map(Record::in_use).unwrap_or_default();
        if in_use(old.as_deref()) != in_use(new.as_ref()) {
            self.expire();
        }
        concerns(old.as_deref(), new.as_ref())
    }

    /// Notes that decisions may change.
    pub fn expire(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// The decisions, and the `PodConfig`s about which they have changed: `decide` makes them anew if they may have.
    pub fn decisions(
        &self,
        decide: impl FnOnce(&[InUse]) -> HashMap<ObjectKey, Verdicts>,
    ) -> (Arc<HashMap<ObjectKey, Verdicts>>, Vec<ObjectKey>) {
        let mut decisions = self.decisions.lock();
        // Cleared before anything is read: what changes meanwhile is read the next time.
        if !self.is_stale.swap(false, Ordering::SeqCst) {
            return (Arc::clone(&decisions), Vec::new());
        }
        let in_use: BTreeSet<InUse> =
            self.records.lock().values().flat_map(|record| record.in_use()).collect();
        let new = Arc::new(decide(&in_use.into_iter().collect::<Vec<_>>()));
        let changed = new.iter().filter(|(key, verdicts)| decisions.get(*key) != Some(*verdicts));
        let changed = changed.map(|(key, _)| key.clone()).collect();
        *decisions = Arc::clone(&new);
        (new, changed)
    }

    /// All records: pools, and reports by node.
    pub fn all(&self) -> (Vec<Arc<Record>>, BTreeMap<String, Arc<NodeReport>>) {
        let (mut pools, mut reports) = (Vec::new(), BTreeMap::new());
        for record in self.records.lock().values() {
            match &**record {
                Record::Pool(_) => pools.push(Arc::clone(record)),
                Record::Report(report) => {
                    reports.insert(report.node.node.clone(), Arc::clone(report));
                }
            }
        }
        (pools, reports)
    }

    /// The namespaces that have something on a node, by their pools or its report.
    pub fn namespaces_on(&self, node: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for record in self.records.lock().values() {
            match &**record {
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
        for record in records.values() {
            let Record::Pool(pool) = &**record else { continue };
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

/// Which `PodConfig`s it concerns that a record has become another one.
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
