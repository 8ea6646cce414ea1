//! The stores of the kinds that a loop writes. The apply engine compares desired objects with them and updates them
//! with the responses of the API server, without knowing the types of the kinds.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{ByController, Change, List, Source, Store, StoreState, take};
use crate::api::meta::{Metadata, ResourceVersion};
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::error::{ApiError, decoded, unreadable};
use crate::runtime::plan::{KindInfo, to_value};
use crate::runtime::watch::Selection;

/// An object of any kind.
pub trait AnyObject: Any + Send + Sync {
    /// Returns its metadata.
    fn metadata(&self) -> &Metadata;
    /// Returns the fields that we read, as JSON.
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

/// The kind of the object in a response.
#[derive(Deserialize)]
struct TypeName {
    #[serde(default)]
    kind: String,
}

fn read<T: Kind>(body: &[u8]) -> Result<Object<T>, ApiError> {
    Object::from_json(body).map_err(|error| unreadable(&error))
}

/// A store of any kind.
pub trait AnyStore: Any + Send + Sync {
    /// Returns the object with this key.
    fn seen(&self, key: &ObjectKey) -> Option<Arc<dyn AnyObject>>;
    /// Returns the objects that the owner with this uid controls; none if the store does not have the index
    /// [`ByController`].
    fn controlled(&self, uid: &str) -> Vec<Arc<dyn AnyObject>>;
    /// Whether the store holds all objects of the kind, rather than the objects of a selector.
    fn is_whole(&self) -> bool;
    /// See [`Store::record`]; `body` is the response of the API server to a request about the object `key`. A response
    /// about any other object is an error and changes nothing.
    fn record(&self, key: &ObjectKey, body: &[u8], origin: &'static str) -> Result<(), ApiError>;
    /// Removes an object that the API server has deleted at our request, so it no longer exists.
    fn record_deletion(&self, key: &ObjectKey, uid: &str, origin: &'static str);
    /// Whether the store's copy matches an object, the `item` of an API server list. If not, the store is updated.
    fn confirm(&self, item: &[u8], likeness: Likeness, origin: &'static str) -> Result<bool, ApiError>;
    /// Records that the kind is not served.
    fn mark_missing(&self);
    /// Adds or updates an object from a list; `item` is its JSON. The list replaces objects from before it began, even
    /// newer versions: etcd may have been restored from a backup.
    fn take_listed(&self, item: &[u8]) -> Result<(), serde_json::Error>;
    /// Keeps the stored copy of an object that the list contains but that cannot be decoded.
    fn keep_listed(&self, key: &ObjectKey);
    /// See [`Store::apply_event`]. Returns the version of the object.
    fn take_changed(&self, object: &[u8]) -> Result<Option<ResourceVersion>, serde_json::Error>;
    /// See [`Store::delete_event`]. Returns the version of the object.
    fn take_deleted(&self, object: &[u8]) -> Result<Option<ResourceVersion>, serde_json::Error>;
    /// Begins a list: objects that it does not contain are removed when it ends.
    fn begin_list(&self);
    /// Ends a list: the store is synced.
    fn end_list(&self);
}

impl<T: Kind> AnyStore for Store<T> {
    fn seen(&self, key: &ObjectKey) -> Option<Arc<dyn AnyObject>> {
        self.get(&key.namespace, &key.name).map(|object| object as Arc<dyn AnyObject>)
    }

    fn controlled(&self, uid: &str) -> Vec<Arc<dyn AnyObject>> {
        self.by::<ByController>(uid).into_iter().map(|object| object as Arc<dyn AnyObject>).collect()
    }

    fn is_whole(&self) -> bool {
        self.whole
    }

    fn record(&self, key: &ObjectKey, body: &[u8], origin: &'static str) -> Result<(), ApiError> {
        let TypeName { kind } = decoded(body)?;
        let object = read::<T>(body)?;
        let answered = ObjectKey::of(&object);
        let asked = self.kind.kind;
        if kind != asked || answered != *key {
            let message =
                format!("the response is about {kind} {answered}, the request was about {asked} {key}");
            return Err(ApiError::transient(message));
        }
        self.record_text(object, body.len(), origin);
        Ok(())
    }

    fn record_deletion(&self, key: &ObjectKey, uid: &str, origin: &'static str) {
        let mut inner = self.inner.write();
        if inner.objects.get(key).is_none_or(|entry| entry.object.open().uid() != uid) {
            return;
        }
        let old = take(&mut inner, key);
        let epoch = inner.epoch;
        inner.deleted.insert(uid.into(), epoch);
        drop(inner);
        self.notify(&Change { old, new: None, origin: Some(origin) });
    }

    fn confirm(&self, item: &[u8], likeness: Likeness, origin: &'static str) -> Result<bool, ApiError> {
        let object = read::<T>(item)?;
        if object.name().is_empty() {
            return Err(ApiError::transient(format!("the response is not a list of {}", self.kind.plural)));
        }
        let seen = self.get(object.namespace(), object.name());
        let is_alike = seen.is_some_and(|seen| is_alike(&seen, &object, likeness));
        if !is_alike {
            self.record_text(object, item.len(), origin);
        }
        Ok(is_alike)
    }

    fn mark_missing(&self) {
        self.state.send_replace(StoreState::Missing);
    }

    fn take_listed(&self, item: &[u8]) -> Result<(), serde_json::Error> {
        self.upsert(Object::from_json(item)?, item.len(), Source::List);
        Ok(())
    }

    fn keep_listed(&self, key: &ObjectKey) {
        let mut inner = self.inner.write();
        let epoch = inner.epoch;
        if let Some(entry) = inner.objects.get_mut(key) {
            entry.epoch = epoch;
        }
    }

    fn take_changed(&self, object: &[u8]) -> Result<Option<ResourceVersion>, serde_json::Error> {
        let length = object.len();
        let object = Object::<T>::from_json(object)?;
        let version = object.metadata.resource_version.clone();
        self.upsert(object, length, Source::Event);
        Ok(version)
    }

    fn take_deleted(&self, object: &[u8]) -> Result<Option<ResourceVersion>, serde_json::Error> {
        let object = Object::<T>::from_json(object)?;
        self.delete_event(&object);
        Ok(object.metadata.resource_version)
    }

    fn begin_list(&self) {
        let mut inner = self.inner.write();
        inner.epoch += 1;
        inner.list = List::default();
    }

    fn end_list(&self) {
        let mut inner = self.inner.write();
        let epoch = inner.epoch;
        let gone = inner.objects.iter().filter(|(_, entry)| entry.epoch < epoch);
        let gone: Vec<ObjectKey> = gone.map(|(key, _)| key.clone()).collect();
        let gone: Vec<_> = gone.iter().filter_map(|key| take(&mut inner, key)).collect();
        // An object that was deleted during the list may be in it, but not in the next one.
        inner.deleted.retain(|_, deleted| *deleted == epoch);
        inner.deleted.extend(gone.iter().map(|object| (object.metadata.uid.clone(), epoch)));
        if inner.list.has_gone_back {
            inner.shown = inner.list.newest;
        }
        drop(inner);
        for old in gone {
            self.notify(&Change { old: Some(old), new: None, origin: None });
        }
        self.state.send_replace(StoreState::Synced);
    }
}

/// The parts of an object that must match the store's copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// Only its existence.
    Existence,
    /// Its spec, and whether it is being deleted.
    Spec,
    /// Its spec, whether it is being deleted, its labels and its annotations.
    Metadata,
}

fn is_alike<T: Kind>(seen: &Object<T>, live: &Object<T>, likeness: Likeness) -> bool {
    let (a, b) = (&seen.metadata, &live.metadata);
    let spec = || {
        seen.spec == live.spec
            && seen.malformed == live.malformed
            && seen.is_terminating() == live.is_terminating()
    };
    let metadata = || a.labels == b.labels && a.annotations == b.annotations;
    a.uid == b.uid
        && match likeness {
            Likeness::Existence => true,
            Likeness::Spec => spec(),
            Likeness::Metadata => spec() && metadata(),
        }
}

/// The store of each kind that a loop writes.
#[derive(Default, Clone)]
pub struct WrittenStores {
    stores: HashMap<KindInfo, (Arc<dyn AnyStore>, Selection)>,
}

impl WrittenStores {
    /// Adds the store that receives the responses to writes of its kind.
    pub fn add<T: Kind>(&mut self, store: &Arc<Store<T>>, selection: &Selection) {
        let (kind, store): (_, Arc<dyn AnyStore>) = (store.kind, Arc::<Store<T>>::clone(store));
        self.stores.insert(kind, (store, selection.clone()));
    }

    /// Returns the path and the query that list the content of a kind's store.
    pub fn list(&self, kind: KindInfo) -> (String, String) {
        let selection = self.stores.get(&kind).map(|(_, selection)| selection);
        let namespace = selection.map(Selection::namespace).unwrap_or_default();
        (kind.path(namespace), selection.map(Selection::query).unwrap_or_default())
    }

    /// Returns the store of a kind.
    ///
    /// # Errors
    /// [`ApiError::Transient`] if the loop has not declared a written store of this kind, which is a programming error.
    pub fn get(&self, kind: KindInfo) -> Result<&Arc<dyn AnyStore>, ApiError> {
        self.stores
            .get(&kind)
            .map(|(store, _)| store)
            .ok_or_else(|| ApiError::transient(format!("{} is written but not watched", kind.kind)))
    }
}
