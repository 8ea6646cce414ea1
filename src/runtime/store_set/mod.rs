//! The stores of one loop. Each is declared once, with all of its uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ObjectKey;
use super::plan::KindInfo;
use super::queue::{Priority, Queue};
use super::readiness::Need;
use super::store::{ByNamespace, Change, Index, Store, StoreFactory, WrittenStores};
use super::watch::Selection;
use crate::api::meta::Metadata;
use crate::api::{Kind, Object};
use crate::kinds::{Namespace, NamespaceKind};

/// Lists the objects of a loop.
pub type Keys = Box<dyn Fn() -> Vec<ObjectKey> + Send + Sync>;

/// Collects the stores of one loop while they are declared.
///
/// A declaration ([`StoreSet::store`]) returns the store and registers it for readiness, for the apply engine if the
/// loop writes its kind, with its indexes, and with the handlers that add objects of the loop to its queue. The loop's
/// RBAC rules are derived from the declarations.
pub struct StoreSet<'f> {
    factory: &'f mut StoreFactory,
    name: &'static str,
    has_children: bool,
    declared: DeclaredStores,
}

/// The declared stores of a loop.
pub struct DeclaredStores {
    /// The work queue of the loop.
    pub queue: Arc<Queue>,
    /// The stores that the loop waits for.
    pub needs: Vec<Need>,
    /// The stores of the kinds that the loop writes.
    pub written: WrittenStores,
    /// Lists the objects of the loop.
    pub keys: Keys,
}

impl<'f> StoreSet<'f> {
    /// Creates the set for the loop called `name`, with stores from the factory of the process.
    pub fn new(name: &'static str, factory: &'f mut StoreFactory) -> Self {
        let queue = Arc::new(Queue::new(name));
        let written = WrittenStores::default();
        let declared = DeclaredStores { queue, needs: Vec::new(), written, keys: Box::new(Vec::new) };
        Self { factory, name, has_children: false, declared }
    }

    /// Returns the name of the loop.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Declares a store. The workers of the loop do not start before the store is synced, unless its kind is not served
    /// and the store is [`Declaration::optional`].
    pub fn store<T: Kind>(&mut self, selection: &Selection) -> Declaration<'_, 'f, T> {
        self.declare(KindInfo::of::<T>(), selection, true)
    }

    /// Like [`StoreSet::store`], for a kind whose names are in the configuration.
    pub fn store_as<T: Kind>(&mut self, kind: KindInfo, selection: &Selection) -> Declaration<'_, 'f, T> {
        self.declare(kind, selection, true)
    }

    /// Declares a store of a kind that the loop no longer uses, to remove the objects that it created earlier. The loop
    /// does not wait for the store. If the kind is not served, that is not reported, and the watch is not retried.
    pub fn leftovers<T: Kind>(&mut self, selection: &Selection) -> Declaration<'_, 'f, T> {
        self.declare(KindInfo::of::<T>(), selection, false)
    }

    fn declare<T: Kind>(
        &mut self,
        kind: KindInfo,
        selection: &Selection,
        is_needed: bool,
    ) -> Declaration<'_, 'f, T> {
        let (store, selection) = (self.factory.watched(kind, selection, is_needed), selection.clone());
        Declaration { set: self, store, selection, is_needed, is_required: is_needed, is_written: false }
            .allow("list watch")
    }

    /// Declares that the loop reconciles objects of this kind: it writes their status, if `writes_status` is set, and may
    /// let its children, if it has any, block the deletion of their owner.
    pub fn reconciles<T: Kind>(&mut self, writes_status: bool) {
        let kind = KindInfo::of::<T>();
        if writes_status {
            self.factory.allow(self.name, (kind, "status"), "patch");
        }
        if self.has_children {
            self.factory.allow(self.name, (kind, "finalizers"), "update");
        }
    }

    /// Declares that the loop occasionally lists objects of this kind, which no store holds.
    pub fn lists(&mut self, kind: KindInfo) {
        self.factory.allow(self.name, (kind, ""), "list");
    }

    /// The work queue of the loop, for additions from other sources than stores.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.declared.queue
    }

    /// Completes the declarations.
    pub fn finish(self) -> DeclaredStores {
        self.declared
    }
}

/// A store during its declaration, which [`Declaration::get`] completes.
#[must_use = "a store is declared by `get`"]
pub struct Declaration<'s, 'f, T: Kind> {
    set: &'s mut StoreSet<'f>,
    store: Arc<Store<T>>,
    is_needed: bool,
    selection: Selection,
    is_required: bool,
    is_written: bool,
}

impl<T: Kind> Declaration<'_, '_, T> {
    /// Lets the loop work if the kind of this store is not served.
    pub fn optional(self) -> Self {
        Self { is_required: false, ..self }
    }

    /// Lets the loop work before the store is synced, and without the right to watch its kind. The watch is retried.
    pub fn not_awaited(self) -> Self {
        Self { is_needed: false, ..self }
    }

    /// Declares that the loop sends requests with these verbs for objects of this kind: it writes them, or reads some
    /// before it deletes or rejects. The store is updated with the responses.
    pub fn requests(mut self, verbs: &'static str) -> Self {
        self.is_written = true;
        self.allow(verbs)
    }

    /// Declares that the loop creates objects of this kind as children. If this store does not hold an object with the
    /// name of a child, the object is read.
    pub fn child(self) -> Self {
        self.set.has_children = true;
        let is_whole = self.selection == Selection::ALL;
        self.requests(if is_whole { "create patch delete" } else { "get create patch delete" })
    }

    /// Records the verbs. For a store within one namespace, a Role grants them instead.
    fn allow(self, verbs: &'static str) -> Self {
        if self.selection.namespace.is_none() {
            self.set.factory.allow(self.set.name, (self.store.kind(), ""), verbs);
        }
        self
    }

    /// Returns the name of the loop.
    pub fn loop_name(&self) -> &'static str {
        self.set.name
    }

    /// Registers an index of the store.
    pub fn index<I: Index<T>>(self) -> Self {
        self.store.index::<I>();
        self
    }

    /// Calls `handler` for every change, to add the affected objects to the queue.
    pub fn on_change(self, handler: impl Fn(&Change<T>, &Queue) + Send + Sync + 'static) -> Self {
        let queue = Arc::clone(&self.set.declared.queue);
        self.store.subscribe(move |change| handler(change, &queue));
        self
    }

    /// Like [`Declaration::on_change`], without changes by writes of this loop, which its reconcile already knows.
    pub fn on_foreign_change(self, handler: impl Fn(&Change<T>, &Queue) + Send + Sync + 'static) -> Self {
        let name = self.set.name;
        self.on_change(move |change, queue| {
            if change.origin != Some(name) {
                handler(change, queue);
            }
        })
    }

    /// Declares that the loop reconciles these objects: a change adds the object to the queue, and the store is updated
    /// with the responses to writes of their status. When a kind that was missing is served, all objects that satisfy
    /// `is_relevant` are added.
    pub fn objects(mut self, is_relevant: fn(&Object<T>) -> bool) -> Self {
        self.is_written = true;
        self.listed(is_relevant).on_foreign_change(|change, queue| {
            if let Some(object) = change.object() {
                queue.add(ObjectKey::of(&**object), Priority::Change);
            }
        })
    }

    /// Like [`Declaration::objects`], but a change adds nothing to the queue.
    pub fn listed(self, is_relevant: fn(&Object<T>) -> bool) -> Self {
        let store = Arc::clone(&self.store);
        self.set.declared.keys = Box::new(move || {
            let is_relevant = |key: &ObjectKey| {
                store.get(&key.namespace, &key.name).is_some_and(|object| is_relevant(&object))
            };
            store.keys().into_iter().filter(is_relevant).collect()
        });
        self.on_foreign_change(|change, queue| {
            if let Some(object) = change.object_if(|object| object.metadata.generation) {
                queue.reset_failures(&ObjectKey::of(&**object));
            }
        })
    }

    /// Declares that the loop reconciles the objects with these keys, whether they exist or not, because the
    /// configuration names them. They are queued from the start. A change adds the object; changes of other objects add
    /// nothing.
    pub fn named(self, keys: Vec<ObjectKey>) -> Self {
        for key in &keys {
            self.set.declared.queue.add(key.clone(), Priority::Background);
        }
        let named: BTreeSet<ObjectKey> = keys.iter().cloned().collect();
        self.set.declared.keys = Box::new(move || keys.clone());
        self.on_foreign_change(move |change, queue| {
            let key = change.object().map(|object| ObjectKey::of(&**object));
            if let Some(key) = key.filter(|key| named.contains(key)) {
                queue.add(key, Priority::Change);
            }
        })
    }

    /// Adds the objects of `store` that its index `I` lists under the keys that `keys` returns for a change.
    pub fn wakes_by<I: Index<O>, O: Kind, C: IntoIterator<Item: Into<I::Key>>>(
        self,
        store: &Arc<Store<O>>,
        keys: impl Fn(&Change<T>) -> C + Send + Sync + 'static,
    ) -> Self {
        let store = Arc::clone(store);
        self.on_change(move |change, queue| {
            for key in keys(change).into_iter().flat_map(|key| store.keys_by::<I>(&key.into())) {
                queue.add(key, Priority::Change);
            }
        })
    }

    /// Adds the objects that the index `I` lists under the same keys when an object is deleted.
    pub fn wakes_siblings<I: Index<T>>(self) -> Self {
        let siblings = Arc::clone(&self.store);
        self.index::<I>().wakes_by::<I, T, _>(&siblings, |change| match (&change.old, &change.new) {
            (Some(gone), None) => I::keys(gone),
            _ => Vec::new(),
        })
    }

    /// Adds the former and the current controller of kind `O` of a changed object.
    pub fn wakes_controller<O: Kind>(self) -> Self {
        self.on_foreign_change(|change, queue| {
            for object in [&change.old, &change.new].into_iter().flatten() {
                enqueue_controller::<O>(&object.metadata, queue);
            }
        })
    }

    /// Completes the declaration.
    pub fn get(self) -> Arc<Store<T>> {
        let Self { set, store, selection, is_needed, is_required, is_written } = self;
        if is_needed {
            set.declared.needs.push(Need::of(&store, is_required));
        }
        if is_written {
            set.declared.written.add(&store, &selection);
        }
        store
    }
}

impl Declaration<'_, '_, NamespaceKind> {
    /// Adds the objects of `store` in a namespace when the namespace gains or loses the labels of `selector`: they
    /// become ours, or are no longer ours.
    pub fn wakes_objects_within<O: Kind>(
        self,
        store: &Arc<Store<O>>,
        selector: &BTreeMap<String, String>,
    ) -> Self {
        store.index::<ByNamespace>();
        let selector = selector.clone();
        self.wakes_by::<ByNamespace, O, _>(store, move |change| {
            changed_sides(change, &selector).map(str::to_owned)
        })
    }
}

/// Adds the controller of kind `O` of an object.
pub fn enqueue_controller<O: Kind>(object: &Metadata, queue: &Queue) {
    for owner in object.owner_references.iter() {
        if owner.kind == O::KIND && owner.controller {
            let namespace = if O::NAMESPACED { &*object.namespace } else { "" };
            queue.add(ObjectKey::new(namespace, &owner.name), Priority::Change);
        }
    }
}

/// Returns a function that adds all objects of `store`, with the lower priority.
pub fn enqueue_all<T: Kind>(store: &Arc<Store<T>>) -> impl Fn(&Queue) + Send + Sync + 'static {
    let store = Arc::clone(store);
    move |queue| store.keys().into_iter().for_each(|key| queue.add(key, Priority::Background))
}

/// Returns the name of the namespace if the change has added or removed the labels of `selector`.
pub fn changed_sides<'a>(
    change: &'a Change<NamespaceKind>,
    selector: &BTreeMap<String, String>,
) -> Option<&'a str> {
    let ours = |namespace: &Option<Arc<Namespace>>| {
        namespace.as_ref().is_some_and(|namespace| namespace.has_labels(selector))
    };
    change.object().filter(|_| ours(&change.old) != ours(&change.new)).map(|namespace| namespace.name())
}

#[cfg(test)]
mod tests;
