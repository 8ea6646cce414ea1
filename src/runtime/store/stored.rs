//! An object in a store: a struct, or JSON text if that needs much less memory and is rarely read.

use std::sync::Arc;

use crate::api::object::is_longer;
use crate::api::{Kind, Object};

/// Objects with longer text are kept as text, for any kind: as a struct, a list of a thousand empty entries takes a
/// hundred times the memory of its text.
const LARGE: usize = 8 << 10;

/// An object in a store.
pub enum StoredObject<T: Kind> {
    /// A struct.
    Whole(Arc<Object<T>>),
    /// JSON text, which needs a fraction of the memory of nested maps.
    Text(Box<str>),
}

impl<T: Kind> StoredObject<T> {
    /// Stores an object that arrived as `length` bytes of text. An object that could not be decoded completely is kept
    /// as a struct, because its text would not contain the reason.
    pub fn new(object: &Arc<Object<T>>, length: usize) -> Self {
        let is_large = || !T::ENCODED && length > LARGE && is_longer(&**object, LARGE);
        let is_text = object.malformed.is_none() && (T::ENCODED || is_large());
        match is_text.then(|| serde_json::to_string(&**object)) {
            // A copy, as the end of a shortened text would be a hole in the heap.
            Some(Ok(text)) if T::ENCODED || is_same(&text, object) => Self::Text(Box::from(text.as_str())),
            _ => Self::Whole(Arc::clone(object)),
        }
    }

    /// Returns the object.
    ///
    /// # Panics
    /// Never: the text was written from an object of the same type.
    #[expect(clippy::expect_used, reason = "the text was serialised from the same type")]
    pub fn open(&self) -> Arc<Object<T>> {
        match self {
            Self::Whole(object) => Arc::clone(object),
            Self::Text(text) => Arc::new(serde_json::from_str(text).expect("the text of an object")),
        }
    }
}

/// Whether the text decodes to the same object. For the kinds that are always kept as text this is known.
fn is_same<T: Kind>(text: &str, object: &Object<T>) -> bool {
    serde_json::from_str::<Object<T>>(text).is_ok_and(|read| read == *object)
}
