//! An object as a store keeps it: as a struct, or as JSON text where that needs much less memory and is
//! rarely read.

use std::sync::Arc;

use crate::api::{Kind, Object};

/// An object as a store keeps it.
pub enum StoredObject<T: Kind> {
    /// As a struct.
    Whole(Arc<Object<T>>),
    /// As JSON text, which needs a fraction of the memory of nested maps.
    Text(Box<str>),
}

impl<T: Kind> StoredObject<T> {
    /// Keeps an object. One that could not be read completely is kept as a struct, because its text would
    /// not contain the reason.
    pub fn new(object: &Arc<Object<T>>) -> Self {
        let text = (T::ENCODED && object.malformed.is_none()).then(|| serde_json::to_string(&**object));
        match text {
            Some(Ok(text)) => Self::Text(text.into_boxed_str()),
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
