//! The shared stores. Each holds the objects of one kind, is filled by one watch, and is read by all loops.
//!
//! A store is also updated with the responses to our own writes at once ([`Store::record`]), so a loop never plans from
//! a state older than its own last write. The watch event of the same write arrives later, changes nothing, and wakes
//! no loop.

mod factory;
mod index;
mod stored;
#[cfg(test)]
mod tests;
mod versions;
mod written;

pub use self::factory::{Rights, StoreFactory};
pub(crate) use self::index::index;
pub use self::index::{ByController, ByNamespace, Index};
pub use self::written::{AnyObject, AnyStore, Likeness, WrittenStores};

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::RwLock;
use tokio::sync::watch;

use self::index::{Indexes, Query};
use self::stored::StoredObject;
use self::versions::{differs, is_newer, version};
use super::key::{KeyRef, ObjectKey};
use super::plan::KindInfo;
use crate::api::text::Text;
use crate::api::{Kind, Object};

/// A change of one object in a store.
#[derive(Debug, Clone)]
pub struct Change<T: Kind> {
    /// The object before the change; `None` when it was created.
    pub old: Option<Arc<Object<T>>>,
    /// The object after the change; `None` when it was deleted.
    pub new: Option<Arc<Object<T>>>,
    /// The name of the loop that wrote the change; `None` if it comes from the watch.
    pub origin: Option<&'static str>,
}

impl<T: Kind> Change<T> {
    /// Returns the current object, or its last state if it was deleted.
    pub fn object(&self) -> Option<&Arc<Object<T>>> {
        self.new.as_ref().or(self.old.as_ref())
    }

    /// Returns the object if the change affects `part` of it. A creation and a deletion affect every part.
    pub fn object_if<'c, P: PartialEq>(
        &'c self,
        part: impl Fn(&'c Object<T>) -> P,
    ) -> Option<&'c Arc<Object<T>>> {
        let [old, new] = [&self.old, &self.new].map(|side| side.as_deref().map(&part));
        self.object().filter(|_| old != new)
    }
}

type Handler<T> = Arc<dyn Fn(&Change<T>) + Send + Sync>;

/// Whether a store mirrors the cluster yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    /// The first list has not ended.
    Syncing,
    /// The API server does not serve the kind: its CRD is not installed.
    Missing,
    /// The store mirrors the cluster.
    Synced,
}

/// All objects of a kind that match the watch's selector.
#[derive(derive_more::Debug)]
#[debug("Store({}, {:?})", kind.kind, *state.borrow())]
pub struct Store<T: Kind> {
    /// The names of the kind: those of `T`, or those of the configuration.
    kind: KindInfo,
    inner: RwLock<Inner<T>>,
    handlers: RwLock<Arc<Vec<Handler<T>>>>,
    state: watch::Sender<StoreState>,
    /// See [`AnyStore::is_whole`].
    whole: bool,
    /// The label that all objects have, with its value if that is fixed; `None` if there is no such label.
    label: Option<(&'static str, Option<&'static str>)>,
}

struct Entry<T: Kind> {
    object: StoredObject<T>,
    /// The number of the last list that contained the object.
    epoch: u64,
}

struct Inner<T: Kind> {
    objects: HashMap<ObjectKey, Entry<T>>,
    indexes: Indexes<T>,
    /// The uids of objects that we have deleted ourselves, until the watch shows the deletion, and of objects that were
    /// missing in the last list. Each has the number of the last list that had begun at that time. Late events and
    /// responses about them are ignored.
    deleted: HashMap<Text, u64>,
    epoch: u64,
    /// The highest resource version of any object that the watch has shown.
    shown: u64,
    /// The current list.
    list: List,
}

/// The progress of the current list.
#[derive(Default)]
struct List {
    /// The highest resource version.
    newest: u64,
    /// Whether an object has an older version than the one in the store: etcd was restored from a backup.
    has_gone_back: bool,
}

/// The source of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A list.
    List,
    /// An event of the watch.
    Event,
    /// The response to a write of the loop with this name.
    Response(&'static str),
}

impl<T: Kind> Store<T> {
    /// Creates a store for all objects of the kind (`whole`), or for the objects of a selector.
    pub fn new(whole: bool) -> Self {
        Self {
            kind: KindInfo::of::<T>(),
            inner: RwLock::new(Inner {
                objects: HashMap::new(),
                indexes: Indexes::default(),
                deleted: HashMap::new(),
                epoch: 0,
                shown: 0,
                list: List::default(),
            }),
            handlers: RwLock::default(),
            state: watch::Sender::new(StoreState::Syncing),
            whole,
            label: None,
        }
    }

    /// Returns the names of the kind.
    pub fn kind(&self) -> KindInfo {
        self.kind
    }

    /// Registers the index `I`; does nothing if it is already registered.
    pub fn index<I: Index<T>>(&self) {
        let mut inner = self.inner.write();
        let Inner { objects, indexes, .. } = &mut *inner;
        indexes.register::<I>(objects.iter().map(|(key, entry)| (key, entry.object.open())));
    }

    /// Calls `handler` for every change from now on.
    pub fn subscribe(&self, handler: impl Fn(&Change<T>) + Send + Sync + 'static) {
        let mut handlers = self.handlers.write();
        Arc::make_mut(&mut handlers).push(Arc::new(handler));
    }

    /// Whether the store mirrors the cluster.
    pub fn state(&self) -> StoreState {
        *self.state.borrow()
    }

    /// Returns a receiver of [`Store::state`], for readiness.
    pub fn watch_state(&self) -> watch::Receiver<StoreState> {
        self.state.subscribe()
    }

    /// Returns the object with this name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Object<T>>> {
        self.inner.read().objects.get(&KeyRef { namespace, name }).map(|entry| entry.object.open())
    }

    /// Returns the objects that the index `I` lists under a key, in the order of their names; none if the index is not
    /// registered.
    pub fn by<I: Index<T>>(&self, key: &(impl Query<I::Key> + ?Sized)) -> Vec<Arc<Object<T>>> {
        let inner = self.inner.read();
        let keys = inner.indexes.get::<I>(key).iter();
        keys.filter_map(|key| inner.objects.get(key)).map(|entry| entry.object.open()).collect()
    }

    /// Calls `find` for the objects that the index `I` lists under a key, and returns its first result. Allocates
    /// nothing for kinds that are kept as structs.
    pub fn find_by<I: Index<T>, R>(
        &self,
        key: &(impl Query<I::Key> + ?Sized),
        find: impl Fn(&Object<T>) -> Option<R>,
    ) -> Option<R> {
        let inner = self.inner.read();
        let keys = inner.indexes.get::<I>(key).iter();
        keys.filter_map(|key| inner.objects.get(key)).find_map(|entry| find(&entry.object.open()))
    }

    /// Returns the names of the objects that the index `I` lists under a key, in order.
    pub fn keys_by<I: Index<T>>(&self, key: &(impl Query<I::Key> + ?Sized)) -> Vec<ObjectKey> {
        self.inner.read().indexes.get::<I>(key).to_vec()
    }

    /// Whether the store holds no object.
    pub fn is_empty(&self) -> bool {
        self.inner.read().objects.is_empty()
    }

    /// Returns all objects. Each one is read when the iterator reaches it.
    pub fn objects(&self) -> impl Iterator<Item = Arc<Object<T>>> {
        self.keys().into_iter().filter_map(|key| self.get(&key.namespace, &key.name))
    }

    /// Returns all keys.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.inner.read().objects.keys().cloned().collect()
    }

    /// Takes the response to one of our own writes. It may arrive after the watch event of the object's deletion, if
    /// the write removed the last finalizer. A response about an object that the store does not hold is therefore
    /// ignored if the watch has already shown a later version.
    ///
    /// An object that has lost the label of the watch is removed: the watch shows no further changes of it, so it would
    /// stay outdated forever.
    pub fn record(&self, object: Object<T>, origin: &'static str) {
        self.record_text(object, 0, origin);
    }

    /// Like [`Store::record`], for an object that arrived as `length` bytes of text.
    fn record_text(&self, object: Object<T>, length: usize, origin: &'static str) {
        if self.selects(&object) {
            self.upsert(object, length, Source::Response(origin));
            return;
        }
        let key = ObjectKey::of(&object);
        let mut inner = self.inner.write();
        let is_known = inner.objects.get(&key).is_some_and(|entry| entry.object.open().uid() == object.uid());
        let old = if is_known { take(&mut inner, &key) } else { None };
        drop(inner);
        if old.is_some() {
            self.notify(&Change { old, new: None, origin: Some(origin) });
        }
    }

    /// Whether the object has the label of the watch.
    fn selects(&self, object: &Object<T>) -> bool {
        self.label.is_none_or(|(key, value)| {
            let found = object.metadata.labels.get(key);
            found.is_some_and(|found| value.is_none_or(|value| found == value))
        })
    }

    /// Adds or updates an object from a watch event.
    #[cfg(test)]
    pub(crate) fn apply_event(&self, object: Object<T>) {
        self.upsert(object, 0, Source::Event);
    }

    /// Adds or updates an object from a list, see [`AnyStore::take_listed`].
    #[cfg(test)]
    pub(crate) fn list_object(&self, object: Object<T>) {
        self.upsert(object, 0, Source::List);
    }

    /// Removes an object after a watch event of its deletion.
    pub(crate) fn delete_event(&self, object: &Object<T>) {
        let key = ObjectKey::of(object);
        let mut inner = self.inner.write();
        inner.shown = inner.shown.max(version(object).unwrap_or_default());
        inner.deleted.remove(object.uid());
        if inner.objects.get(&key).is_some_and(|entry| entry.object.open().uid() != object.uid()) {
            return; // an object of the same name has been created since
        }
        let old = take(&mut inner, &key);
        drop(inner);
        if old.is_some() {
            self.notify(&Change { old, new: None, origin: None });
        }
    }

    /// Adds or updates an object that arrived as `length` bytes of text; 0 if unknown.
    fn upsert(&self, object: Object<T>, length: usize, source: Source) {
        let key = ObjectKey::of(&object);
        let mut guard = self.inner.write();
        let inner = &mut *guard;
        let (epoch, version) = (inner.epoch, version(&object).unwrap_or_default());
        match inner.deleted.get(object.uid()) {
            Some(deleted) if source == Source::List && *deleted < epoch => {
                inner.deleted.remove(object.uid());
            }
            Some(_) => return,
            None => {}
        }
        let known = inner.objects.get_mut(&key).map(|entry| (entry.object.open(), &mut entry.epoch));
        let (old, seen) = known.unzip();
        let same = old.as_ref().filter(|old| old.uid() == object.uid());
        match source {
            Source::Response(_) if same.is_none() && (1..=inner.shown).contains(&version) => return,
            Source::Response(_) => {}
            Source::List | Source::Event => inner.shown = inner.shown.max(version),
        }
        // Whether the object is from a list and the stored object is from before that list.
        let mut wins = false;
        if source == Source::List {
            inner.list.newest = inner.list.newest.max(version);
            wins = seen.map(|seen| std::mem::replace(seen, epoch)).is_some_and(|seen| seen < epoch);
        }
        if let Some(same) = same.filter(|same| !is_newer(&object, same)) {
            if !wins || object.metadata.resource_version == same.metadata.resource_version {
                return;
            }
            inner.list.has_gone_back = true;
        }
        inner.indexes.update(&key, old.as_deref(), Some(&object));
        let new = Arc::new(object);
        inner.objects.insert(key, Entry { object: StoredObject::new(&new, length), epoch });
        drop(guard);
        if old.as_deref().is_none_or(|old| differs(old, &new)) {
            let origin = if let Source::Response(origin) = source { Some(origin) } else { None };
            self.notify(&Change { old, new: Some(new), origin });
        }
    }

    fn notify(&self, change: &Change<T>) {
        // Called without the lock: a handler may read this store, or panic.
        let handlers = self.handlers.read().clone();
        for handler in handlers.iter() {
            handler(change);
        }
    }
}

fn take<T: Kind>(inner: &mut Inner<T>, key: &ObjectKey) -> Option<Arc<Object<T>>> {
    let object = inner.objects.remove(key)?.object.open();
    inner.indexes.update(key, Some(&object), None);
    Some(object)
}
