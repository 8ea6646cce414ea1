//! The series of a counter: those that are known are kept, of all others those that were increased last.

use std::collections::BTreeMap;
use std::hash::{Hash, RandomState};
use std::ops::RangeBounds;

use hashlink::LinkedHashSet;
use jiff::{SignedDuration, Timestamp};

/// The most series that are not known.
pub const UNKNOWN_LIMIT: usize = 4096;
/// The most series that are known.
pub const KNOWN_LIMIT: usize = 16_384;
/// A series that is not known is removed this long after it was increased last.
const RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// Counts by key. All operations take logarithmic time at most, but for those that say otherwise.
pub struct Series<K> {
    all: BTreeMap<K, Entry>,
    /// The keys of the series that are not known, in the order in which these were increased last. Their hash has a random key,
    /// because senders of packets choose the destinations.
    unknown: LinkedHashSet<K, RandomState>,
    evicted: u64,
}

#[derive(Default)]
struct Entry {
    count: u64,
    /// When it was increased last; has no meaning while `count` is 0.
    last: Timestamp,
    /// Whether the series has been rendered.
    is_shown: bool,
}

impl<K: Ord + Hash + Clone> Series<K> {
    /// No series.
    pub fn new() -> Self {
        Self { all: BTreeMap::new(), unknown: LinkedHashSet::with_hasher(RandomState::new()), evicted: 0 }
    }

    /// Adds one to a series. Allocates nothing where it exists.
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

    /// Makes a series known: it is there from now on, and stays until it is withdrawn. Does nothing where as many are
    /// known as may be.
    pub fn expose(&mut self, key: &K) {
        if self.all.len() - self.unknown.len() < KNOWN_LIMIT {
            self.all.entry(key.clone()).or_default();
            self.unknown.remove(key);
        }
    }

    /// Makes a series unknown. One that has counted nothing is removed.
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

    /// Calls `show` with each series and its value, in the order of the keys. A series that is shown for the first time
    /// has the value 0, from which its reader sees it rise. Takes linear time.
    pub fn render(&mut self, mut show: impl FnMut(&K, u64)) {
        for (key, entry) in &mut self.all {
            show(key, if entry.is_shown { entry.count } else { 0 });
            entry.is_shown = true;
        }
    }

    /// When one of the series in a range was increased last.
    pub fn last(&self, range: impl RangeBounds<K>) -> Option<Timestamp> {
        let counted = self.all.range(range).filter(|(_, entry)| entry.count > 0);
        counted.map(|(_, entry)| entry.last).max()
    }

    /// Whether a series is known.
    pub fn is_known(&self, key: &K) -> bool {
        self.all.contains_key(key) && !self.unknown.contains(key)
    }

    /// The keys of the series that are known. Takes linear time.
    pub fn known(&self) -> impl Iterator<Item = &K> {
        self.all.keys().filter(|key| !self.unknown.contains(*key))
    }

    /// How many unknown series had to give way to others.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Puts a series among the unknown ones, of which the one that was increased the longest ago gives way if there are too
    /// many.
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
