//! The children of an object: the objects that a loop creates for it.

use std::any::Any;
use std::sync::Arc;

use super::key::ObjectKey;
use super::queue::Queue;
use super::store::{AnyObject, AnyStore, Store};
use super::store_set::{Declaration, enqueue_controller};
use crate::api::meta::Metadata;
use crate::api::{Kind, Object};

/// The children of one object, and other objects that have one of its children's names regardless of their owner, as
/// cached in the stores.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Children({})", _0.len())]
pub struct Children(Vec<Arc<dyn AnyObject>>);

impl Children {
    /// All objects of a kind.
    pub fn of<T: Kind>(&self) -> impl Iterator<Item = &Object<T>> {
        self.0.iter().filter_map(|object| {
            let object: &dyn Any = &**object;
            object.downcast_ref()
        })
    }

    /// Returns the object of a kind with this name in a namespace, which is empty for a cluster-scoped kind.
    pub fn get<T: Kind>(&self, namespace: &str, name: &str) -> Option<&Object<T>> {
        self.of().find(|object| object.name() == name && object.namespace() == namespace)
    }

    /// Returns the object of a kind with this name in the namespace of `owner`, if `owner` is its controller.
    pub fn own<T: Kind, O: Kind>(&self, owner: &Object<O>, name: &str) -> Option<&Object<T>> {
        self.get(owner.namespace(), name).filter(|object| object.is_controlled_by(owner))
    }

    /// The uids of the controllers of all objects.
    pub fn controllers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|object| Some(&*object.metadata().controller()?.uid))
    }

    /// The uids of the controllers of the objects with this name.
    pub fn controllers_of(&self, name: &str) -> impl Iterator<Item = &str> {
        let named =
            self.0.iter().map(|object| object.metadata()).filter(move |metadata| *metadata.name == *name);
        named.filter_map(|metadata| Some(&*metadata.controller()?.uid))
    }

    /// The first object of a kind.
    ///
    /// # Panics
    /// If there is no such object.
    #[cfg(test)]
    pub fn first<T: Kind>(&self) -> &Object<T> {
        self.of().next().expect("an object of the kind")
    }

    /// Adds objects of a kind.
    #[cfg(test)]
    pub fn with<T: Kind>(mut self, objects: impl IntoIterator<Item = Arc<Object<T>>>) -> Self {
        self.0.extend(objects.into_iter().map(|object| object as Arc<dyn AnyObject>));
        self
    }

    /// Replaces all objects of a kind by these.
    #[cfg(test)]
    pub fn set<T: Kind>(&mut self, objects: impl IntoIterator<Item = Arc<Object<T>>>) {
        self.0.retain(|object| {
            let object: &dyn Any = &**object;
            !object.is::<Object<T>>()
        });
        *self = std::mem::take(self).with(objects);
    }
}

/// A child before and after a change.
pub struct ChildChange<'a> {
    /// Its metadata before the change; `None` when it was created.
    pub old: Option<&'a Metadata>,
    /// Its metadata after the change; `None` when it was deleted.
    pub new: Option<&'a Metadata>,
    /// Whether the change was written by the loop itself.
    pub is_own: bool,
}

/// Adds the objects affected by a change of a child to the queue.
type Wake = Arc<dyn Fn(&ChildChange<'_>, &Queue) + Send + Sync>;

/// The stores of the kinds of children that a loop declares.
pub struct ChildStores {
    stores: Vec<Arc<dyn AnyStore>>,
    wake: Wake,
}

impl ChildStores {
    /// Creates an empty set of stores. `wake` is called for each change of a child, and adds the affected objects to
    /// the queue.
    pub fn new(wake: impl Fn(&ChildChange<'_>, &Queue) + Send + Sync + 'static) -> Self {
        Self { stores: Vec::new(), wake: Arc::new(wake) }
    }

    /// Creates an empty set of stores for children that are controlled by objects of kind `O`. A change adds the former
    /// and the current controller to the queue, unless the loop itself wrote it.
    pub fn of_controller<O: Kind>() -> Self {
        Self::new(|change, queue| {
            for metadata in [change.old, change.new].into_iter().flatten().filter(|_| !change.is_own) {
                enqueue_controller::<O>(metadata, queue);
            }
        })
    }

    /// Completes the declaration of a store of children, which the loop writes.
    pub fn add<T: Kind>(&mut self, declaration: Declaration<'_, '_, T>) -> Arc<Store<T>> {
        let (wake, name) = (Arc::clone(&self.wake), declaration.loop_name());
        let store = declaration
            .child()
            .on_change(move |change, queue| {
                let [old, new] =
                    [&change.old, &change.new].map(|side| side.as_deref().map(|object| &object.metadata));
                wake(&ChildChange { old, new, is_own: change.origin == Some(name) }, queue);
            })
            .get();
        self.stores.push(Arc::<Store<T>>::clone(&store));
        store
    }

    /// Includes the objects of this store, which others create for children, among the children.
    pub fn read<T: Kind>(&mut self, store: &Arc<Store<T>>) {
        self.stores.push(Arc::<Store<T>>::clone(store));
    }

    /// Returns the children that the object with this uid controls, from the stores that have the index
    /// [`super::store::ByController`], and all objects that have one of these keys.
    pub fn children(&self, uid: &str, keys: &[ObjectKey]) -> Children {
        let mut all = Vec::new();
        for store in &self.stores {
            let mut found = store.controlled(uid);
            for object in keys.iter().filter_map(|key| store.seen(key)) {
                if !found.iter().any(|known| known.metadata().uid == object.metadata().uid) {
                    found.push(object);
                }
            }
            all.append(&mut found);
        }
        Children(all)
    }
}
