//! The children of an object: what a loop makes for it.

use std::any::Any;
use std::sync::Arc;

use super::key::ObjectKey;
use super::queue::Queue;
use super::store::{AnyObject, AnyStore, Store};
use super::store_set::{Declaration, enqueue_controller};
use crate::api::meta::Metadata;
use crate::api::{Kind, Object};

/// The children of one object and other objects that have their names, whoever owns them, as the stores have them.
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

    /// The object of a kind with this name in a namespace; that is empty for a kind without namespaces.
    pub fn get<T: Kind>(&self, namespace: &str, name: &str) -> Option<&Object<T>> {
        self.of().find(|object| object.name() == name && object.namespace() == namespace)
    }

    /// The uids of the controllers of all objects.
    pub fn controllers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|object| Some(&*object.metadata().controller()?.uid))
    }

    /// The first object of a kind.
    ///
    /// # Panics
    /// Without one.
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
    /// Its metadata before; `None` when it is new.
    pub old: Option<&'a Metadata>,
    /// Its metadata after; `None` when it has been deleted.
    pub new: Option<&'a Metadata>,
    /// Whether the loop itself has written it.
    pub is_own: bool,
}

/// Adds the objects that a change of a child concerns to the queue.
type Wake = Arc<dyn Fn(&ChildChange<'_>, &Queue) + Send + Sync>;

/// The stores of the kinds of children that a loop declares.
pub struct ChildStores {
    stores: Vec<Arc<dyn AnyStore>>,
    wake: Wake,
}

impl ChildStores {
    /// No stores yet. `wake` is called with each change of a child, and adds the objects that it concerns to the queue.
    pub fn new(wake: impl Fn(&ChildChange<'_>, &Queue) + Send + Sync + 'static) -> Self {
        Self { stores: Vec::new(), wake: Arc::new(wake) }
    }

    /// The same for children that objects of kind `O` control: these are added to the queue, the former controller and the
    /// present one, unless the loop itself has written the child.
    pub fn of_controller<O: Kind>() -> Self {
        Self::new(|change, queue| {
            for metadata in [change.old, change.new].into_iter().flatten().filter(|_| !change.is_own) {
                enqueue_controller::<O>(metadata, queue);
            }
        })
    }

    /// Ends the declaration of the store of a kind of children, which the loop writes.
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

    /// The objects of this store, which others make for children, are among the children as well.
    pub fn read<T: Kind>(&mut self, store: &Arc<Store<T>>) {
        self.stores.push(Arc::<Store<T>>::clone(store));
    }

    /// The children that the object with this uid controls, of the kinds whose stores have the index
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
