//! The classes as the users have last read them, so that a live update reads only the changes. A class belongs to a user
//! with a token: after a logout, and with the next token, it is listed again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hashlink::LruCache;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::objects::{Found, Machine, Member, Person};
use crate::api::Template;
use crate::api::text::Text;
use crate::controllers::dashboard::course::Course;
use crate::runtime::ObjectKey;

/// The maximum size of all classes together, in bytes. Above it, the class that was shown longest ago is forgotten.
pub const MOST_BYTES: usize = 16 << 20;
/// The maximum number of classes.
const MOST_CLASSES: usize = 1_000;
/// About the size of a Template in memory, and of the course with the user's Tenant, in bytes.
const OF_OBJECT: usize = 4 << 10;
/// A class that was listed earlier is listed again: the rights of its reader may have changed.
const MOST_AGE: Duration = Duration::from_mins(5);

/// A page of a class.
pub struct Seen {
    /// When it was read.
    pub at: Timestamp,
    /// The course.
    pub course: Course,
    /// The Templates of the course.
    pub templates: Vec<Template>,
    /// The class.
    pub class: Class,
}

/// The people and machines of a class.
#[derive(Debug, Clone)]
pub struct Class {
    /// The students by the names of their Tenants.
    pub people: BTreeMap<Text, Person>,
    /// The machines of these and other people.
    pub machines: BTreeMap<ObjectKey, Machine>,
    /// Why the machines of some namespaces are not known.
    pub unread: BTreeMap<Text, Unread>,
    /// Whether the user may list the Instances of all namespaces at once.
    pub is_wide: bool,
    /// The number of the last change before it was read, see
    /// [`Broadcast::position`](crate::controllers::dashboard::live::broadcast::Broadcast::position).
    pub position: u64,
    /// When it was listed.
    pub listed: Instant,
}

/// Why the machines of a namespace are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// They were not read yet.
    NotYet,
    /// The user may not read them.
    Forbidden,
    /// There are too many.
    TooMany,
}

impl Class {
    /// Creates an empty class that is listed now.
    pub fn new(position: u64) -> Self {
        let (people, machines, unread) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { people, machines, unread, is_wide: true, position, listed: Instant::now() }
    }

    /// Whether its changes alone may be read.
    pub fn is_recent(&self) -> bool {
        self.listed.elapsed() < MOST_AGE
    }

    /// Adds the machines that count against the course.
    pub fn add(&mut self, course: &str, found: impl IntoIterator<Item = Found>) {
        let of_course = found.into_iter().filter(|found| found.course.as_str() == course);
        self.machines.extend(of_course.map(|found| (found.key, found.machine)));
    }

    /// Adds a student, or replaces what is known about the student.
    pub fn join(&mut self, member: Member) {
        let Member { name, person, .. } = member;
        let is_known = self.people.get(&name).is_some_and(|known| known.namespace == person.namespace);
        if !is_known && !self.is_wide {
            self.unread.insert(person.namespace.clone(), Unread::NotYet);
        }
        self.people.insert(name, person);
    }

    /// Removes a Tenant that is no student of the course.
    pub fn leave(&mut self, name: &str) {
        let Some(person) = self.people.remove(name) else { return };
        if !self.is_wide {
            self.unread.remove(&person.namespace);
            self.machines.retain(|key, _| key.namespace != person.namespace);
        }
    }

    /// Whether the machines of a namespace are known, so that a changed one has to be read.
    pub fn reads(&self, namespace: &str) -> bool {
        let is_of_student = || self.people.values().any(|person| person.namespace.as_str() == namespace);
        self.is_wide || !self.unread.contains_key(namespace) && is_of_student()
    }

    /// Whether the machines of a namespace were not read yet.
    pub fn is_missing(&self, namespace: &str) -> bool {
        self.unread.get(namespace) == Some(&Unread::NotYet)
    }

    /// Returns the namespaces whose machines were not read yet.
    pub fn missing(&self) -> impl Iterator<Item = &Text> {
        self.unread.iter().filter(|(_, why)| **why == Unread::NotYet).map(|(namespace, _)| namespace)
    }
}

impl Seen {
    /// Returns about the number of bytes in memory.
    fn bytes(&self) -> usize {
        let Class { people, machines, unread, .. } = &self.class;
        // A map has about a third more room than entries.
        let entry = size_of::<ObjectKey>() * 4 / 3;
        people.values().map(|person| person.bytes() + entry).sum::<usize>()
            + machines.values().map(|machine| machine.bytes() + entry).sum::<usize>()
            + unread.len() * entry
            + (self.templates.len() + 2) * OF_OBJECT
    }
}

/// A class with the size that it was stored with.
type Stored = (Arc<Seen>, usize);

/// The last classes of all users.
pub struct Memory {
    stored: Mutex<All>,
    limit: usize,
}

struct All {
    by_reader: LruCache<(u64, String), Stored>,
    bytes: usize,
}

impl Memory {
    /// Creates an empty memory with a maximum number of bytes.
    pub fn new(limit: usize) -> Self {
        Self { stored: Mutex::new(All { by_reader: LruCache::new(MOST_CLASSES), bytes: 0 }), limit }
    }

    /// Replaces the class of a course, as the user with this number has read it.
    pub fn keep(&self, user: u64, seen: &Arc<Seen>) {
        let key = (user, seen.course.name().to_owned());
        let bytes = seen.bytes();
        let mut all = self.stored.lock();
        let before = all.by_reader.remove(&key);
        all.forget(before);
        if bytes > self.limit {
            return;
        }
        while all.bytes + bytes > self.limit || all.by_reader.len() == MOST_CLASSES {
            let oldest = all.by_reader.remove_lru().map(|(_, stored)| stored);
            all.forget(oldest);
        }
        all.bytes += bytes;
        all.by_reader.insert(key, (Arc::clone(seen), bytes));
    }

    /// Returns the class of a course, as the user with this number has last read it.
    pub fn get(&self, user: u64, course: &str) -> Option<Arc<Seen>> {
        self.stored.lock().by_reader.get(&(user, course.to_owned())).map(|(seen, _)| Arc::clone(seen))
    }
}

impl All {
    fn forget(&mut self, stored: Option<Stored>) {
        self.bytes -= stored.map_or(0, |(_, bytes)| bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::dashboard::class::tests::fixtures::{machine, seen};

    #[test]
    fn the_class_that_was_shown_longest_ago_is_forgotten_first() {
        let class = Arc::new(seen(&[machine("ada", "vm", "Ready")]));
        let bytes = class.bytes();
        let memory = Memory::new(bytes * 2);
        for user in [1, 2, 1, 3] {
            memory.keep(user, &class);
        }
        assert_eq!([1, 2, 3].map(|user| memory.get(user, "tea").is_some()), [true, false, true]);
        assert!(memory.get(1, "net").is_none());
        assert_eq!(memory.stored.lock().bytes, bytes * 2);
        // A class above the limit is not kept, and replaces the former one of its reader only.
        let machines: Vec<_> =
            (0..1_000).map(|number| machine("ada", &format!("vm-{number}"), "Ready")).collect();
        memory.keep(1, &Arc::new(seen(&machines)));
        assert_eq!([1, 3].map(|user| memory.get(user, "tea").is_some()), [false, true]);
        assert_eq!(memory.stored.lock().bytes, bytes);
    }

    #[test]
    fn a_class_of_a_thousand_is_small() {
        let machines: Vec<_> =
            (0..1_000).map(|number| machine("ada", &format!("vm-{number}"), "Failed")).collect();
        assert!(seen(&machines).bytes() < 1 << 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_class_is_listed_again_after_five_minutes() {
        let class = Class::new(0);
        tokio::time::advance(MOST_AGE.saturating_sub(Duration::from_millis(1))).await;
        assert!(class.is_recent());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!class.is_recent());
    }
}
