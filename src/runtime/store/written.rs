//! The stores of the kinds that a loop writes. The apply engine compares desired objects with them and gives
//! them the responses of the API server, without knowing the types of the kinds.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Store;
use crate::api::meta::Metadata;
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::plan::{KindInfo, to_value};

/// An object of any kind.
pub trait AnyObject: Send + Sync {
    /// Its metadata.
    fn metadata(&self) -> &Metadata;
    /// The fields of it that we read, as JSON.
    fn json(&self) -> Value;
}

impl<T: Kind> AnyObject for Object<T> {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn json(&self) -> Value {
        to_value(self)
    }
}

/// A store of any kind.
pub trait AnyStore: Send + Sync {
    /// The object of that name.
    fn seen(&self, key: &ObjectKey) -> Option<Arc<dyn AnyObject>>;
    /// See [`Store::is_whole`].
    fn is_whole(&self) -> bool;
    /// See [`Store::record`]; `body` is the response of the API server.
    fn record(&self, body: &[u8], origin: &'static str) -> Result<(), ApiError>;
    /// See [`Store::record_deletion`].
    fn record_deletion(&self, key: &ObjectKey, uid: &str, origin: &'static str);
    /// Adds an object as if the watch had shown it.
    fn offer(&self, document: &Value) -> Result<(), serde_json::Error>;
    /// See [`Store::end_list`].
    fn end_list(&self);
}

impl<T: Kind> AnyStore for Store<T> {
    fn seen(&self, key: &ObjectKey) -> Option<Arc<dyn AnyObject>> {
        self.get(&key.namespace, &key.name).map(|object| object as Arc<dyn AnyObject>)
    }

    fn is_whole(&self) -> bool {
        Self::is_whole(self)
    }

    fn record(&self, body: &[u8], origin: &'static str) -> Result<(), ApiError> {
        Self::record(self, decoded::<Object<T>>(body)?, origin);
        Ok(())
    }

    fn record_deletion(&self, key: &ObjectKey, uid: &str, origin: &'static str) {
        Self::record_deletion(self, key, uid, origin);
    }

    fn offer(&self, document: &Value) -> Result<(), serde_json::Error> {
        self.apply_event(serde_json::from_value(document.clone())?);
        Ok(())
    }

    fn end_list(&self) {
        Self::end_list(self);
    }
}

/// The store of each kind that a loop writes.
#[derive(Default, Clone)]
pub struct WrittenStores {
    stores: HashMap<KindInfo, Arc<dyn AnyStore>>,
}

impl WrittenStores {
    /// Adds the store that receives the answers to writes of its kind.
    pub fn add<T: Kind>(&mut self, store: &Arc<Store<T>>) {
        let store: Arc<dyn AnyStore> = Arc::<Store<T>>::clone(store);
        self.stores.insert(KindInfo::of::<T>(), store);
    }

    /// The store of a kind.
    ///
    /// # Errors
    /// [`ApiError::Transient`] when the loop has not declared a store of that kind as written, which is a
    /// programming error.
    pub fn get(&self, kind: KindInfo) -> Result<&Arc<dyn AnyStore>, ApiError> {
        self.stores
            .get(&kind)
            .ok_or_else(|| ApiError::transient(format!("{} is written but not watched", kind.kind)))
    }
}
