//! Indexes of a store: additional keys for finding its objects. Each index is a type.

use std::any::Any;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::{Equivalent, HashMap};
use smallvec::SmallVec;

use crate::api::text::Text;
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;

/// An index of objects of kind `T`, for example of Instances by their Template. [`super::Store::by`] selects the index
/// by the type that implements this trait.
pub trait Index<T: Kind>: Send + Sync + 'static {
    /// The type of its keys.
    type Key: Eq + Hash + Send + Sync + 'static;

    /// Returns the keys of an object. An object without keys is not in the index.
    fn keys(object: &Object<T>) -> Vec<Self::Key>;
}

/// Declares an index: its type, the kind of the objects, the type of the keys, and the keys of an object.
macro_rules! index {
    ($(#[$meta:meta])* $vis:vis struct $name:ident of $kind:ident by $key:ty; |$object:ident| $keys:expr) => {
        $(#[$meta])*
        $vis struct $name;

        impl $crate::runtime::store::Index<$kind> for $name {
            type Key = $key;

            fn keys($object: &$crate::api::Object<$kind>) -> Vec<$key> {
                $keys
            }
        }
    };
}
pub(crate) use index;

/// The argument of an index look-up: the key type itself, or a type that is equivalent to it.
pub trait Query<K>: Equivalent<K> + Hash {}

impl<K, Q: Equivalent<K> + Hash + ?Sized> Query<K> for Q {}

/// Objects by the uid of the owner that controls them.
pub struct ByController;

impl<T: Kind> Index<T> for ByController {
    type Key = Text;

    fn keys(object: &Object<T>) -> Vec<Text> {
        object.metadata.controller().map(|owner| owner.uid.clone()).into_iter().collect()
    }
}

/// Objects by their namespace.
pub struct ByNamespace;

impl<T: Kind> Index<T> for ByNamespace {
    type Key = Text;

    fn keys(object: &Object<T>) -> Vec<Text> {
        vec![object.metadata.namespace.clone()]
    }
}

/// The content of an index, independent of its type.
trait AnyIndex<T: Kind>: Any + Send + Sync {
    /// Updates the entries of one object; `None` if the object is not in the store, before or now.
    fn update(&mut self, name: &ObjectKey, old: Option<&Object<T>>, new: Option<&Object<T>>);
}

/// The content of an index: sorted names by key. Most keys have one name, which is stored inline.
struct Content<T: Kind, I: Index<T>>(HashMap<I::Key, SmallVec<[ObjectKey; 1]>>);

impl<T: Kind, I: Index<T>> AnyIndex<T> for Content<T, I> {
    fn update(&mut self, name: &ObjectKey, old: Option<&Object<T>>, new: Option<&Object<T>>) {
        let before = old.map(I::keys).unwrap_or_default();
        let now = new.map(I::keys).unwrap_or_default();
        if before == now {
            return;
        }
        for key in before {
            let Some(names) = self.0.get_mut(&key) else { continue };
            if let Ok(place) = names.binary_search(name) {
                names.remove(place);
            }
            if names.is_empty() {
                self.0.remove(&key);
            }
        }
        for key in now {
            let names = self.0.entry(key).or_default();
            if let Err(place) = names.binary_search(name) {
                names.insert(place, name.clone());
            }
        }
    }
}

/// All indexes of a store. There are few, so a linear search is fast enough.
pub(super) struct Indexes<T: Kind>(Vec<Box<dyn AnyIndex<T>>>);

impl<T: Kind> Default for Indexes<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Kind> Indexes<T> {
    /// Registers an index with these objects of the store; does nothing if it is already registered.
    pub fn register<'a, I: Index<T>>(
        &mut self,
        objects: impl Iterator<Item = (&'a ObjectKey, Arc<Object<T>>)>,
    ) {
        if self.content::<I>().is_none() {
            let mut content = Content::<T, I>(HashMap::new());
            objects.for_each(|(name, object)| content.update(name, None, Some(&object)));
            self.0.push(Box::new(content));
        }
    }

    /// Updates the entries of one object in all indexes.
    pub fn update(&mut self, name: &ObjectKey, old: Option<&Object<T>>, new: Option<&Object<T>>) {
        for index in &mut self.0 {
            index.update(name, old, new);
        }
    }

    /// Returns the names that an index has for a key; none if the index is not registered.
    pub fn get<I: Index<T>>(&self, key: &(impl Query<I::Key> + ?Sized)) -> &[ObjectKey] {
        let names = self.content::<I>().and_then(|content| content.0.get(key));
        names.map_or(&[], SmallVec::as_slice)
    }

    fn content<I: Index<T>>(&self) -> Option<&Content<T, I>> {
        self.0.iter().find_map(|index| {
            let index: &dyn Any = &**index;
            index.downcast_ref()
        })
    }
}
