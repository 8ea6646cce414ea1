//! The series of a counter: those that are known are kept, of all others those that were increased last.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use jiff::{SignedDuration, Timestamp};

/// The most series that are not known.
pub const UNKNOWN_LIMIT: usize = 4096;
/// The most series that are known.
pub const KNOWN_LIMIT: usize = 16_384;
/// A series that is not known is removed this long after it was increased last.
const RETENTION: SignedDuration = SignedDuration::from_hours(24);
/// The place of a series among the entries.
type Place = u32;
/// No place.
const NONE: Place = Place::MAX;

/// Counts by key. All operations take logarithmic time at most, but for those that say otherwise.
pub struct Series<K> {
    /// Where the series of each key is.
    places: BTreeMap<K, Place>,
    entries: Vec<Entry<K>>,
    /// Places of `entries` that are not in use.
    free: Vec<Place>,
    unknown: Order,
    /// How many series are known.
    known: usize,
    evicted: u64,
}

struct Entry<K> {
    key: K,
    count: u64,
    /// When it was increased last; has no meaning while `count` is 0.
    last: Timestamp,
    is_known: bool,
    /// Whether the series has been rendered.
    is_shown: bool,
    /// The unknown series that were increased next after and before this one.
    newer: Place,
    older: Place,
}

/// The unknown series in the order in which they were increased last, as a list through `entries`.
struct Order {
    newest: Place,
    oldest: Place,
    length: usize,
}

impl<K: Ord + Clone> Series<K> {
    /// No series.
    pub const fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            unknown: Order { newest: NONE, oldest: NONE, length: 0 },
            known: 0,
            evicted: 0,
        }
    }

    /// Adds one to a series. Allocates nothing where it exists.
    pub fn count(&mut self, key: &K, now: Timestamp) {
        let place = match self.places.get(key) {
            Some(&place) => place,
            None => self.insert(key.clone(), false),
        };
        let Some(entry) = self.at(place) else { return };
        entry.count += 1;
        entry.last = now;
        if !entry.is_known {
            self.unlink(place);
            self.link(place);
        }
    }

    /// Makes a series known: it is there from now on, and stays until it is withdrawn. Does nothing where as many are
    /// known as may be.
    pub fn expose(&mut self, key: &K) {
        if self.known == KNOWN_LIMIT {
            return;
        }
        let Some(&place) = self.places.get(key) else {
            self.insert(key.clone(), true);
            self.known += 1;
            return;
        };
        let Some(entry) = self.at(place) else { return };
        if !entry.is_known {
            entry.is_known = true;
            self.known += 1;
            self.unlink(place);
        }
    }

    /// Makes a series unknown. One that has counted nothing is removed.
    pub fn withdraw(&mut self, key: &K) {
        let Some(&place) = self.places.get(key) else { return };
        let Some(entry) = self.at(place).filter(|entry| entry.is_known) else { return };
        entry.is_known = false;
        let is_empty = entry.count == 0;
        self.known -= 1;
        if is_empty {
            self.places.remove(key);
            self.free.push(place);
            return;
        }
        if self.unknown.length == UNKNOWN_LIMIT {
            self.evict();
        }
        self.link(place);
    }

    /// Removes the unknown series that were not increased for a day. Takes linear time.
    pub fn expire(&mut self, now: Timestamp) {
        let mut place = self.unknown.oldest;
        while let Some(entry) = self.entries.get(place as usize) {
            let newer = entry.newer;
            // A series that was known until lately may stand behind one that was increased after it.
            if now.duration_since(entry.last) > RETENTION {
                self.remove(place);
            }
            place = newer;
        }
    }

    /// Calls `show` with each series and its value, in the order of the keys. A series that is shown for the first time
    /// has the value 0, from which its reader sees it rise. Takes linear time.
    pub fn render(&mut self, mut show: impl FnMut(&K, u64)) {
        for &place in self.places.values() {
            if let Some(entry) = self.entries.get_mut(place as usize) {
                show(&entry.key, if entry.is_shown { entry.count } else { 0 });
                entry.is_shown = true;
            }
        }
    }

    /// When one of the series in a range was increased last.
    pub fn last(&self, range: impl RangeBounds<K>) -> Option<Timestamp> {
        let entries = self.places.range(range).filter_map(|(_, &place)| self.entries.get(place as usize));
        entries.filter(|entry| entry.count > 0).map(|entry| entry.last).max()
    }

    /// The keys of the series that are known. Takes linear time.
    pub fn known(&self) -> impl Iterator<Item = &K> {
        self.places
            .values()
            .filter_map(|&place| self.entries.get(place as usize))
            .filter(|entry| entry.is_known)
            .map(|entry| &entry.key)
    }

    /// How many unknown series had to give way to others.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    fn insert(&mut self, key: K, is_known: bool) -> Place {
        if !is_known && self.unknown.length == UNKNOWN_LIMIT {
            self.evict();
        }
        let entry = Entry {
            key: key.clone(),
            count: 0,
            last: Timestamp::MIN,
            is_known,
            is_shown: false,
            newer: NONE,
            older: NONE,
        };
        let free = self.free.pop();
        let place = if let Some((place, unused)) = free.and_then(|place| Some((place, self.at(place)?))) {
            *unused = entry;
            place
        } else {
            self.entries.push(entry);
            // There are far fewer series than places.
            Place::try_from(self.entries.len() - 1).unwrap_or(NONE)
        };
        self.places.insert(key, place);
        if !is_known {
            self.link(place);
        }
        place
    }

    fn at(&mut self, place: Place) -> Option<&mut Entry<K>> {
        self.entries.get_mut(place as usize)
    }

    fn evict(&mut self) {
        self.remove(self.unknown.oldest);
        self.evicted += 1;
    }

    /// Removes an unknown series.
    fn remove(&mut self, place: Place) {
        self.unlink(place);
        if let Some(entry) = self.entries.get(place as usize) {
            self.places.remove(&entry.key);
            self.free.push(place);
        }
    }

    /// Puts an unknown series that is not in the order to the newest end of it.
    fn link(&mut self, place: Place) {
        let before = std::mem::replace(&mut self.unknown.newest, place);
        if let Some(entry) = self.at(place) {
            (entry.newer, entry.older) = (NONE, before);
        }
        match self.at(before) {
            Some(entry) => entry.newer = place,
            None => self.unknown.oldest = place,
        }
        self.unknown.length += 1;
    }

    /// Takes a series out of the order.
    fn unlink(&mut self, place: Place) {
        let Some(&Entry { newer, older, .. }) = self.entries.get(place as usize) else { return };
        match self.at(newer) {
            Some(entry) => entry.older = older,
            None => self.unknown.newest = older,
        }
        match self.at(older) {
            Some(entry) => entry.newer = newer,
            None => self.unknown.oldest = newer,
        }
        self.unknown.length -= 1;
    }
}
