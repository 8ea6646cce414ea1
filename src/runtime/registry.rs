//! All stores by kind, for the apply engine, which knows no kind by type.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::error::ApiError;
use super::key::ObjectKey;
use super::plan::{KindInfo, to_value};
use super::store::Store;
use crate::api::{Kind, Object};

/// An object without its type.
pub trait AnyObject: Send + Sync {
    /// Its metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The members of it that are known, as JSON.
    fn json(&self) -> Value;
}

impl<T: Kind> AnyObject for Object<T> {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn json(&self) -> Value {
        to_value(self)
    }
}

/// A store without its type.
pub trait AnyStore: Send + Sync {
    /// The object of that name.
    fn seen(&self, key: &ObjectKey) -> Option<Arc<dyn AnyObject>>;
    /// See [`Store::is_whole`].
    fn is_whole(&self) -> bool;
    /// See [`Store::record`]; the body is the API server's answer.
    fn record(&self, body: &[u8], origin: &'static str) -> Result<(), ApiError>;
    /// See [`Store::record_deletion`].
    fn record_deletion(&self, key: &ObjectKey, uid: &str, origin: &'static str);
}

impl<T: Kind> AnyStore for Store<T> {
    fn seen(&self, key: &ObjectKey) -> Option<Arc<dyn AnyObject>> {
        self.get(&key.namespace, &key.name).map(|object| object as Arc<dyn AnyObject>)
    }

    fn is_whole(&self) -> bool {
        Self::is_whole(self)
    }

    fn record(&self, body: &[u8], origin: &'static str) -> Result<(), ApiError> {
        let object: Object<T> = serde_json::from_slice(body)
            .map_err(|error| ApiError::transient(format!("the answer cannot be read: {error}")))?;
        Self::record(self, object, origin);
        Ok(())
    }

    fn record_deletion(&self, key: &ObjectKey, uid: &str, origin: &'static str) {
        Self::record_deletion(self, key, uid, origin);
    }
}

/// The stores of all kinds that are written.
#[derive(Default, Clone)]
pub struct Registry {
    stores: HashMap<KindInfo, Arc<dyn AnyStore>>,
}

impl Registry {
    /// Adds the store that receives the answers to writes of its kind.
    pub fn add<T: Kind>(&mut self, store: &Arc<Store<T>>) {
        let store: Arc<dyn AnyStore> = Arc::<Store<T>>::clone(store);
        self.stores.insert(KindInfo::of::<T>(), store);
    }

    /// The store of a kind. A kind that is written has one: a loop adds it when it is set up.
    pub fn get(&self, kind: KindInfo) -> Result<&Arc<dyn AnyStore>, ApiError> {
        self.stores
            .get(&kind)
            .ok_or_else(|| ApiError::transient(format!("{} is written but not watched", kind.kind)))
    }
}
