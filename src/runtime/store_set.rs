//! What one loop reads: each store is declared once, with all that follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch as channel;

use super::ObjectKey;
use super::queue::{Backoff, Priority, Queue};
use super::store::{ByNamespace, Change, Index, Store, StoreFactory, StoreState, WrittenStores};
use super::watch::Selection;
use crate::api::{Kind, Object};
use crate::kinds::{Namespace, NamespaceKind};

/// A store on which a loop depends.
pub struct Need {
    /// The name of the CRD, `<plural>.<group>`, or the plural name alone for the core group.
    pub crd: String,
    /// Whether the loop cannot work without it.
    pub is_required: bool,
    /// Whether the store mirrors the cluster.
    pub state: channel::Receiver<StoreState>,
}

/// Lists the objects of a loop.
type Keys = Box<dyn Fn() -> Vec<ObjectKey> + Send + Sync>;

/// Collects the stores of one loop while they are declared.
///
/// A declaration ([`StoreSet::store`]) yields the store, what readiness waits for, the entry in the map of
/// what the loop writes, the indexes that it needs, and which changes ask for which objects of the loop.
pub struct StoreSet<'f> {
    factory: &'f mut StoreFactory,
    name: &'static str,
    queue: Arc<Queue>,
    needs: Vec<Need>,
    written: WrittenStores,
    keys: Keys,
}

/// The stores of a loop, once all are declared.
pub struct DeclaredStores {
    /// The objects that the loop is asked for.
    pub queue: Arc<Queue>,
    /// What readiness waits for.
    pub needs: Vec<Need>,
    /// The stores of what the loop writes.
    pub written: WrittenStores,
    /// Lists the objects of the loop.
    pub keys: Box<dyn Fn() -> Vec<ObjectKey> + Send + Sync>,
}

impl<'f> StoreSet<'f> {
    /// The stores of the loop of that name, out of those of the process.
    pub fn new(name: &'static str, factory: &'f mut StoreFactory) -> Self {
        let queue = Arc::new(Queue::new(name, Backoff::default()));
        let (needs, written) = (Vec::new(), WrittenStores::default());
        Self { factory, name, queue, needs, written, keys: Box::new(Vec::new) }
    }

    /// Declares a store. The loop does not work before it mirrors the cluster, unless it is
    /// [`Declaration::optional`].
    pub fn store<T: Kind>(&mut self, selection: &Selection) -> Declaration<'_, 'f, T> {
        let store = self.factory.store(selection);
        Declaration { set: self, store, is_required: true, is_written: false }
    }

    /// The queue of the loop, for what is asked for by something other than a store.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Ends the declarations.
    pub fn finish(self) -> DeclaredStores {
        let Self { queue, needs, written, keys, .. } = self;
        DeclaredStores { queue, needs, written, keys }
    }
}

/// A store while it is declared; [`Declaration::get`] ends the declaration.
#[must_use = "a store is declared by `get`"]
pub struct Declaration<'s, 'f, T: Kind> {
    set: &'s mut StoreSet<'f>,
    store: Arc<Store<T>>,
    is_required: bool,
    is_written: bool,
}

impl<T: Kind> Declaration<'_, '_, T> {
    /// The loop waits for this store, but works without it where its kind is not served.
    pub fn optional(mut self) -> Self {
        self.is_required = false;
        self
    }

    /// The loop writes objects of this kind, or reads single ones anew: the answers go into this store.
    pub fn written(mut self) -> Self {
        self.is_written = true;
        self
    }

    /// Keeps an index of the store.
    pub fn index<I: Index<T>>(self) -> Self {
        self.store.index::<I>();
        self
    }

    /// Hands every change to `handler`, which asks the queue for what it concerns.
    pub fn on_change(self, handler: impl Fn(&Change<T>, &Queue) + Send + Sync + 'static) -> Self {
        let queue = Arc::clone(&self.set.queue);
        self.store.subscribe(move |change| handler(change, &queue));
        self
    }

    /// The same without the changes that the loop makes itself: the reconcile that wrote them knows.
    pub fn on_foreign_change(self, handler: impl Fn(&Change<T>, &Queue) + Send + Sync + 'static) -> Self {
        let name = self.set.name;
        self.on_change(move |change, queue| {
            if change.origin != Some(name) {
                handler(change, queue);
            }
        })
    }

    /// These are the objects of the loop: a change asks for the object itself. Those that satisfy
    /// `is_relevant` are all asked for when a kind that was missing is served.
    pub fn objects(self, is_relevant: fn(&Object<T>) -> bool) -> Self {
        self.listed(is_relevant).on_foreign_change(|change, queue| {
            if let Some(object) = change.object() {
                queue.add(ObjectKey::of(&**object), Priority::Change);
            }
        })
    }

    /// The same, but a change asks for nothing by itself.
    pub fn listed(self, is_relevant: fn(&Object<T>) -> bool) -> Self {
        let store = Arc::clone(&self.store);
        self.set.keys = Box::new(move || {
            let is_relevant = |key: &ObjectKey| {
                store.get(&key.namespace, &key.name).is_some_and(|object| is_relevant(&object))
            };
            store.keys().into_iter().filter(is_relevant).collect()
        });
        self
    }

    /// A change asks for the object of kind `O` that controls the changed one, before or now.
    pub fn wakes_controller<O: Kind>(self) -> Self {
        self.on_foreign_change(|change, queue| {
            for object in [&change.old, &change.new].into_iter().flatten() {
                enqueue_controller::<O, T>(object, queue);
            }
        })
    }

    /// Ends the declaration.
    pub fn get(self) -> Arc<Store<T>> {
        let Self { set, store, is_required, is_written } = self;
        let crd =
            if T::GROUP.is_empty() { T::PLURAL.to_owned() } else { format!("{}.{}", T::PLURAL, T::GROUP) };
        set.needs.push(Need { crd, is_required, state: store.watch_state() });
        if is_written {
            set.written.add(&store);
        }
        store
    }
}

impl Declaration<'_, '_, NamespaceKind> {
    /// When a namespace gets the labels of `selector` or loses them, the objects of `store` in it are asked
    /// for: they have become ours, or have ceased to be.
    pub fn wakes_residents<O: Kind>(
        self,
        store: &Arc<Store<O>>,
        selector: &BTreeMap<String, String>,
    ) -> Self {
        store.index::<ByNamespace>();
        let (store, selector) = (Arc::clone(store), selector.clone());
        self.on_change(move |change, queue| {
            if let Some(name) = changed_sides(change, &selector) {
                enqueue_by::<ByNamespace, O>(&store, queue, name);
            }
        })
    }
}

/// Asks for all objects that the index `I` of a store lists under a key.
pub fn enqueue_by<I: Index<T>, T: Kind>(store: &Store<T>, queue: &Queue, key: impl Into<I::Key>) {
    for key in store.keys_by::<I>(key) {
        queue.add(key, Priority::Change);
    }
}

/// Asks for the object of kind `O` that controls another.
pub fn enqueue_controller<O: Kind, T: Kind>(object: &Object<T>, queue: &Queue) {
    for owner in object.metadata.owner_references.iter() {
        if owner.kind == O::KIND && owner.controller {
            let namespace = if O::NAMESPACED { object.namespace() } else { "" };
            queue.add(ObjectKey::new(namespace, &owner.name), Priority::Change);
        }
    }
}

/// The name of a namespace that has got the labels of `selector` by a change, or has lost them.
pub fn changed_sides<'a>(
    change: &'a Change<NamespaceKind>,
    selector: &BTreeMap<String, String>,
) -> Option<&'a str> {
    let ours = |namespace: &Option<Arc<Namespace>>| {
        namespace.as_ref().is_some_and(|namespace| namespace.has_labels(selector))
    };
    let namespace = change.object().filter(|_| ours(&change.old) != ours(&change.new))?;
    Some(namespace.name())
}
