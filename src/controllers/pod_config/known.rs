//! What the loop keeps in memory besides the stores, all of which follows from them: the records, read once for each
//! change, and what is decided about ranges and bridges.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::claims::{InUse, Verdicts};
use super::records::{PoolRecord, Record, Report};
use crate::controllers::pod_network::Link;
use crate::runtime::ObjectKey;

/// The records by their names, and the decisions.
#[derive(Default)]
pub struct Known {
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
    /// Whether something is gone that somebody may wait for: an allocation, or an entry of a report.
    pub is_loss: bool,
}

impl Known {
    /// Takes a record, which `shown` reads from the store while no other change is taken, so that of two concurrent changes
    /// the later one counts.
    pub fn take(&self, name: &str, shown: impl FnOnce() -> Option<Record>) -> Concerns {
        let mut records = locked(&self.records);
        let new = shown();
        let old = match &new {
            Some(record) => records.insert(name.to_owned(), Arc::new(record.clone())),
            None => records.remove(name),
        };
        let concerns = concerns(old.as_deref(), new.as_ref());
        if in_use(old.as_deref()) != in_use(new.as_ref()) {
            self.is_stale.store(true, Ordering::SeqCst);
        }
        concerns
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
        let mut decisions = locked(&self.decisions);
        // Cleared before anything is read: what changes meanwhile is read the next time.
        if !self.is_stale.swap(false, Ordering::SeqCst) {
            return (Arc::clone(&decisions), Vec::new());
        }
        let in_use: BTreeSet<InUse> =
            locked(&self.records).values().flat_map(|record| in_use(Some(record))).collect();
        let new = Arc::new(decide(&in_use.into_iter().collect::<Vec<_>>()));
        let changed = new.iter().filter(|(key, verdicts)| decisions.get(*key) != Some(*verdicts));
        let changed = changed.map(|(key, _)| key.clone()).collect();
        *decisions = Arc::clone(&new);
        (new, changed)
    }

    /// All records: pools, and reports by node.
    pub fn all(&self) -> (Vec<PoolRecord>, BTreeMap<String, Arc<Report>>) {
        let (mut pools, mut reports) = (Vec::new(), BTreeMap::new());
        for record in locked(&self.records).values() {
            match &**record {
                Record::Pool(pool) => pools.push(pool.clone()),
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
        for record in locked(&self.records).values() {
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
        let records = locked(&self.records);
        let name = ADDRESSES.0;
        let _ = write!(text, "# HELP {name} {}\n# TYPE {name} gauge\n", ADDRESSES.1);
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

/// The metric of the addresses of each pool, and its help text.
pub const ADDRESSES: (&str, &str) = (
    "crownlabs_pod_network_addresses",
    "Addresses for pods in the range of a namespace that are used, and that are free",
);

/// The ranges and bridges of which a record has links. Those of a report count too: the record of their pool may be lost.
fn in_use(record: Option<&Record>) -> BTreeSet<InUse> {
    match record {
        Some(Record::Pool(pool)) => pool.in_use(),
        Some(Record::Report(report)) => report.in_use(),
        None => BTreeSet::new(),
    }
}

fn concerns(old: Option<&Record>, new: Option<&Record>) -> Concerns {
    let mut concerns = Concerns::default();
    if old == new {
        return concerns;
    }
    let pool = |record: Option<&Record>| match record {
        Some(Record::Pool(pool)) => Some(pool.clone()),
        _ => None,
    };
    let (before, now) = (pool(old), pool(new));
    concerns.namespaces.extend([&before, &now].into_iter().flatten().map(|pool| pool.namespace.clone()));
    concerns.is_loss = before.is_some_and(|before| {
        let is_kept =
            |uid: &str| now.as_ref().is_some_and(|now| now.entries.get(uid) == before.entries.get(uid));
        before.entries.keys().any(|uid| !is_kept(uid))
    });
    let report = |record: Option<&Record>| match record {
        Some(Record::Report(report)) => Some(Arc::clone(report)),
        _ => None,
    };
    let (old, new) = (report(old), report(new));
    let problem =
        |report: &Option<Arc<Report>>| report.as_ref().and_then(|report| report.node.problem.clone());
    concerns.all = old.is_some() != new.is_some() || problem(&old) != problem(&new);
    let none = BTreeMap::new();
    let [old, new] = [&old, &new].map(|report| report.as_ref().map_or(&none, |report| &report.links));
    let uids: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for uid in uids {
        let (before, now) = (old.get(uid), new.get(uid));
        let all: Vec<&Link> = [before, now].into_iter().flatten().flatten().collect();
        if before != now {
            concerns.is_loss = true;
            concerns.namespaces.extend(all.into_iter().map(|link| link.namespace.clone()));
        }
    }
    concerns
}

/// The content of a mutex. No code that can panic runs between two changes of it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
