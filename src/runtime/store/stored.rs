//! An object as a store keeps it: as a struct, or as JSON text where that needs much less memory and is
//! rarely read.

use std::sync::Arc;

use crate::api::object::is_longer;
use crate::api::{Kind, Object};

/// Objects whose text is longer are kept as text, of whatever kind: a list of a thousand empty entries takes a hundred times
/// its text.
const LARGE: usize = 8 << 10;

/// An object as a store keeps it.
pub enum StoredObject<T: Kind> {
    /// As a struct.
    Whole(Arc<Object<T>>),
    /// As JSON text, which needs a fraction of the memory of nested maps.
    Text(Box<str>),
}

impl<T: Kind> StoredObject<T> {
    /// Keeps an object that came as so many bytes. One that could not be read completely is kept as a struct, because its
    /// text would not contain the reason.
    pub fn new(object: &Arc<Object<T>>, length: usize) -> Self {
        let is_large = || !T::ENCODED && length > LARGE && is_longer(&**object, LARGE);
        let is_text = object.malformed.is_none() && (T::ENCODED || is_large());
        match is_text.then(|| serde_json::to_string(&**object)) {
            Some(Ok(text)) if T::ENCODED || is_same(&text, object) => Self::Text(text.into_boxed_str()),
            _ => Self::Whole(Arc::clone(object)),
        }
    }

    /// The object.
    ///
    /// # Panics
    /// Never: the text was written from an object of the same type.
    #[expect(clippy::expect_used, reason = "what was serialised is read back by the same type")]
    pub fn open(&self) -> Arc<Object<T>> {
        match self {
            Self::Whole(object) => Arc::clone(object),
            Self::Text(text) => Arc::new(serde_json::from_str(text).expect("the text of an object")),
        }
    }
}

/// Whether the text is that of the object. The kinds that are always kept as text are known to be.
fn is_same<T: Kind>(text: &str, object: &Object<T>) -> bool {
    serde_json::from_str::<Object<T>>(text).is_ok_and(|read| read == *object)
}
