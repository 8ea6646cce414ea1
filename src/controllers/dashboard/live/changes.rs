//! The changed objects of each class, so that its pages read only these again.

use hashlink::{LinkedHashMap, LruCache};

use crate::runtime::ObjectKey;

/// The maximum number of changed objects of a class. Above it, the oldest change is dropped, and a page that has not
/// read it lists the class again.
const MOST_KEYS: usize = 4_096;
/// The maximum number of classes. Above it, the class that was read longest ago is dropped.
const MOST_CLASSES: usize = 128;

/// The changed objects of the classes that pages have read.
pub struct Changes {
    by_class: LruCache<String, Class>,
    /// The number of the last change.
    last: u64,
}

struct Class {
    /// All changes after this number are known.
    from: u64,
    /// The changed objects, each with the number of its last change, in the order of the numbers.
    changed: LinkedHashMap<ObjectKey, u64>,
}

impl Changes {
    /// Creates them without any class.
    pub fn new() -> Self {
        Self { by_class: LruCache::new(MOST_CLASSES), last: 0 }
    }

    /// Records that an object of a class has changed. Returns whether a page has read the class.
    pub fn add(&mut self, class: &str, key: ObjectKey) -> bool {
        self.last += 1;
        let Some(Class { from, changed }) = self.by_class.peek_mut(class) else { return false };
        changed.insert(key, self.last);
        if changed.len() > MOST_KEYS
            && let Some((_, dropped)) = changed.pop_front()
        {
            *from = dropped;
        }
        true
    }

    /// Returns the number of the last change. Later changes of this class are recorded.
    pub fn position(&mut self, class: &str) -> u64 {
        if self.by_class.get(class).is_none() {
            let new = Class { from: self.last, changed: LinkedHashMap::new() };
            self.by_class.insert(class.to_owned(), new);
        }
        self.last
    }

    /// Returns the objects of a class that have changed after a position; `None` if not all changes are known.
    pub fn after(&mut self, class: &str, position: u64) -> Option<Vec<ObjectKey>> {
        let Class { from, changed } = self.by_class.get(class)?;
        let later = changed.iter().rev().take_while(|(_, number)| **number > position);
        (*from <= position).then(|| later.map(|(key, _)| key.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("tenant-ada", name)
    }

    #[test]
    fn a_page_gets_each_object_of_its_class_that_changed_after_it_was_read_once() {
        let mut changes = Changes::new();
        assert!(!changes.add("tea", key("early")), "no page has read the class");
        let first = changes.position("tea");
        assert_eq!(changes.after("tea", first), Some(vec![]));
        for name in ["a", "b", "a"] {
            assert!(changes.add("tea", key(name)));
        }
        changes.add("net", key("other"));
        assert_eq!(changes.after("tea", first), Some(vec![key("a"), key("b")]));
        let second = changes.position("tea");
        assert_eq!(changes.after("tea", second), Some(vec![]));
        changes.add("tea", key("b"));
        assert_eq!(changes.after("tea", second), Some(vec![key("b")]));
        assert_eq!(changes.after("tea", first), Some(vec![key("b"), key("a")]));
    }

    #[test]
    fn a_page_that_is_behind_too_many_changes_lists_again() {
        let mut changes = Changes::new();
        let first = changes.position("tea");
        for number in 0..MOST_KEYS {
            changes.add("tea", key(&number.to_string()));
        }
        assert_eq!(changes.after("tea", first).map(|keys| keys.len()), Some(MOST_KEYS));
        changes.add("tea", key("more"));
        assert_eq!(changes.after("tea", first), None);
        assert_eq!(changes.after("tea", first + 1).map(|keys| keys.len()), Some(MOST_KEYS));
    }

    #[test]
    fn a_class_that_was_dropped_is_listed_again() {
        let mut changes = Changes::new();
        let first = changes.position("tea");
        for number in 0..=MOST_CLASSES {
            changes.position(&format!("c{number}"));
        }
        assert_eq!(changes.after("tea", first), None);
        changes.add("tea", key("missed"));
        let again = changes.position("tea");
        assert_eq!([changes.after("tea", first), changes.after("tea", again)], [None, Some(vec![])]);
    }
}
