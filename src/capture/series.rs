//! The series of a counter. All known series are kept; of the others, those increased last.

use std::collections::BTreeMap;
use std::hash::{Hash, RandomState};
use std::ops::RangeBounds;

use hashlink::LinkedHashSet;
use jiff::{SignedDuration, Timestamp};

/// The maximum number of unknown series.
pub const UNKNOWN_LIMIT: usize = 4096;
/// The maximum number of known series.
pub const KNOWN_LIMIT: usize = 16_384;
/// An unknown series is removed this long after its last increase.
const RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// Counts by key. Operations take at most logarithmic time unless they say otherwise.
pub struct Series<K> {
    all: BTreeMap<K, Entry>,
    /// The keys of the unknown series, in the order of their last increase. Their hash has a random key, because
    /// senders of packets choose the destinations.
    unknown: LinkedHashSet<K, RandomState>,
    /// The number of unknown series that were evicted.
    pub evicted: u64,
}

#[derive(Default)]
struct Entry {
    count: u64,
    /// The time of the last increase; meaningless while `count` is 0.
    last: Timestamp,
    /// Whether the series has been rendered.
    is_shown: bool,
}

impl<K: Ord + Hash + Clone> Series<K> {
    /// Creates an empty set of series.
    pub fn new() -> Self {
        Self { all: BTreeMap::new(), unknown: LinkedHashSet::with_hasher(RandomState::new()), evicted: 0 }
    }

    /// Adds one to a series. Allocates nothing if the series exists.
    pub fn count(&mut self, key: &K, now: Timestamp) {
        if !self.all.contains_key(key) {
            self.insert_unknown(key);
        }
        self.unknown.to_back(key);
        if let Some(entry) = self.all.get_mut(key) {
            entry.count += 1;
            entry.last = now;
        }
    }

    /// Makes a series known: it exists from now on, until it is withdrawn. Does nothing if the limit of known series is
    /// reached.
    pub fn expose(&mut self, key: &K) {
        if self.all.len() - self.unknown.len() < KNOWN_LIMIT {
            self.all.entry(key.clone()).or_default();
            self.unknown.remove(key);
        }
    }

    /// Makes a series unknown. A series without counts is removed.
    pub fn withdraw(&mut self, key: &K) {
        let Some(entry) = self.all.get(key).filter(|_| !self.unknown.contains(key)) else { return };
        if entry.count == 0 {
            self.all.remove(key);
        } else {
            self.insert_unknown(key);
        }
    }

    /// Removes the unknown series that were not increased for a day. Takes linear time.
    pub fn expire(&mut self, now: Timestamp) {
        let is_old = |entry: &Entry| now.duration_since(entry.last) > RETENTION;
        self.all.retain(|key, entry| !is_old(entry) || !self.unknown.remove(key));
    }

    /// Calls `show` with each series and its value, in the order of the keys. The first time a series is shown, its
    /// value is 0, so that Prometheus sees the increase. Takes linear time.
    pub fn render(&mut self, mut show: impl FnMut(&K, u64)) {
        for (key, entry) in &mut self.all {
            show(key, if entry.is_shown { entry.count } else { 0 });
            entry.is_shown = true;
        }
    }

    /// Returns the time of the last increase of any series in a range.
    pub fn last(&self, range: impl RangeBounds<K>) -> Option<Timestamp> {
        let counted = self.all.range(range).filter(|(_, entry)| entry.count > 0);
        counted.map(|(_, entry)| entry.last).max()
    }

    /// Whether a series is known.
    pub fn is_known(&self, key: &K) -> bool {
        self.all.contains_key(key) && !self.unknown.contains(key)
    }

    /// The keys of the known series. Takes linear time.
    pub fn known(&self) -> impl Iterator<Item = &K> {
        self.all.keys().filter(|key| !self.unknown.contains(*key))
    }

    /// Adds a series to the unknown ones. Evicts the one with the oldest increase if the limit is reached.
    fn insert_unknown(&mut self, key: &K) {
        if self.unknown.len() == UNKNOWN_LIMIT
            && let Some(oldest) = self.unknown.pop_front()
        {
            self.all.remove(&oldest);
            self.evicted += 1;
        }
        self.all.entry(key.clone()).or_default();
        self.unknown.insert(key.clone());
    }
}
