//! Interning of values that have many copies but few different contents in a cluster: the process keeps one copy of
//! each.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use derive_more::Deref;
use hashbrown::{Equivalent, HashSet};
use parking_lot::Mutex;
use serde::{Serialize, Serializer};

/// A value whose copies share their memory.
pub trait Interned: Clone + Eq + Hash {
    /// The number of copies.
    fn copies(&self) -> usize;
    /// About how many bytes the copies share, with the parts that the value in turn shares with other values.
    fn bytes(&self) -> usize;
}

/// All interned values of a type. Unused values are dropped when the total size has grown by half since the last
/// time.
pub struct Interner<T>(Mutex<Values<T>>);

struct Values<T> {
    known: HashSet<T>,
    bytes: usize,
    /// Unused values are searched for when the size exceeds this number of bytes.
    limit: usize,
}

impl<T: Interned> Interner<T> {
    /// The smallest limit. Below it, unused values are not searched for.
    const LEAST_LIMIT: usize = 256 << 10;

    /// Returns the shared copy of the value. `make` creates it on the first call.
    pub fn intern<Q: Hash + Equivalent<T> + ?Sized>(&self, value: &Q, make: impl FnOnce() -> T) -> T {
        let mut all = self.0.lock();
        if let Some(known) = all.known.get(value) {
            return known.clone();
        }
        if all.bytes >= all.limit {
            all.known.retain(|value| value.copies() > 1);
            all.bytes = all.known.iter().map(T::bytes).sum();
            all.limit = (all.bytes / 2 * 3).max(Self::LEAST_LIMIT);
        }
        let new = make();
        all.bytes += new.bytes();
        all.known.insert(new.clone());
        new
    }
}

impl<T: Interned> Default for Interner<T> {
    fn default() -> Self {
        Self(Mutex::new(Values { known: HashSet::new(), bytes: 0, limit: Self::LEAST_LIMIT }))
    }
}

/// The type of the elements of a [`List`].
pub trait Element: Clone + Default + Eq + Hash + 'static {
    /// All lists of such elements.
    fn lists() -> &'static Interner<List<Self>>;
    /// About the size of the texts of the element in bytes.
    fn text_bytes(&self) -> usize;
}

/// Makes a type an element of lists. The function returns the texts of an element.
macro_rules! element {
    ($element:ty, $texts:expr) => {
        impl $crate::api::interned::Element for $element {
            fn lists() -> &'static Interner<List<Self>> {
                static LISTS: std::sync::LazyLock<Interner<List<$element>>> =
                    std::sync::LazyLock::new(Interner::default);
                &LISTS
            }

            fn text_bytes(&self) -> usize {
                use $crate::api::interned::Interned;
                let texts: fn(&Self) -> [&$crate::api::text::Text; _] = $texts;
                texts(self).iter().map(|text| text.bytes()).sum()
            }
        }
    };
}
pub(super) use element;

/// An immutable list. Equal lists share their memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deref)]
#[deref(forward)]
pub struct List<T>(Arc<[T]>);

impl<T> Borrow<[T]> for List<T> {
    fn borrow(&self) -> &[T] {
        &self.0
    }
}

impl<T: Element> From<Vec<T>> for List<T> {
    fn from(elements: Vec<T>) -> Self {
        if elements.is_empty() {
            return Self::default();
        }
        T::lists().intern(elements.as_slice(), || Self(elements.as_slice().into()))
    }
}

impl<T: Element> Interned for List<T> {
    fn copies(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    fn bytes(&self) -> usize {
        let texts: usize = self.iter().map(T::text_bytes).sum();
        texts + size_of_val(&*self.0) + 32
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::text::Text;

    #[test]
    fn interned_values_are_one_and_unused_ones_are_dropped() {
        let interner = Interner::<Text>::default();
        let intern = |text: &str| interner.intern(text, || Text::from(text));
        let kept = intern("kept");
        assert!(std::ptr::eq(kept.as_str(), intern("kept").as_str()));
        let long = "x".repeat(1000);
        for number in 0..1000 {
            intern(&format!("{number} {long}"));
        }
        let all = interner.0.lock();
        assert!(all.bytes <= all.limit + 2000, "{} bytes", all.bytes);
        assert_eq!(all.bytes, all.known.iter().map(Text::bytes).sum::<usize>());
        assert!(all.known.contains("kept"));
        assert!(!all.known.contains(&*format!("0 {long}")));
    }

    #[test]
    fn equal_lists_are_one() {
        let list = |texts: &[&str]| -> List<Text> {
            texts.iter().copied().map(Text::from).collect::<Vec<_>>().into()
        };
        let [one, other] = [list(&["a", "b"]), list(&["a", "b"])];
        assert!(Arc::ptr_eq(&one.0, &other.0));
        assert_ne!(list(&["a", "b"]), list(&["b", "a"]));
        assert_eq!(list(&[]), List::default());
    }

    #[test]
    fn the_texts_of_unused_lists_are_dropped_with_them() {
        let lists = Interner::<List<Text>>::default();
        let text = Text::from(&*"x".repeat(1000));
        for number in 0..1000 {
            let elements = [Text::from(&*number.to_string()), text.clone()];
            lists.intern(&elements[..], || List(elements.to_vec().into()));
        }
        let all = lists.0.lock();
        assert!(all.known.len() < 300, "{} lists", all.known.len());
    }
}
