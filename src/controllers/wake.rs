//! Whom a change in a store concerns, where several rooms answer alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::{Kind, Object};
use crate::kinds::{Namespace, NamespaceKind};
use crate::runtime::ObjectKey;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{Change, Store};

/// Asks for the objects of kind `O` that control what changes in a store, before or now; what the loop
/// `origin` has written itself it knows.
pub fn owners<O: Kind, T: Kind>(store: &Store<T>, queue: &Arc<Queue>, origin: &'static str) {
    let queue = Arc::clone(queue);
    store.subscribe(move |change| owners_of::<O, T>(change, &queue, origin));
}

/// The same for one change.
pub fn owners_of<O: Kind, T: Kind>(change: &Change<T>, queue: &Queue, origin: &'static str) {
    if change.origin != Some(origin) {
        [&change.old, &change.new].into_iter().flatten().for_each(|object| owner::<O, T>(object, queue));
    }
}

/// Asks for the object of kind `O` that controls another.
pub fn owner<O: Kind, T: Kind>(object: &Object<T>, queue: &Queue) {
    for owner in object.metadata.owner_references.iter().flatten() {
        if owner.kind == O::KIND && owner.controller == Some(true) {
            let namespace = if O::NAMESPACED { object.namespace() } else { "" };
            queue.add(ObjectKey::new(namespace, &owner.name), Priority::Change);
        }
    }
}

/// Asks for the objects of a store whose namespace has become ours, by the labels of `selector`, or has
/// ceased to be.
pub fn residents<T: Kind>(
    namespaces: &Store<NamespaceKind>,
    store: &Arc<Store<T>>,
    queue: &Arc<Queue>,
    selector: &BTreeMap<String, String>,
) {
    let (store, queue, selector) = (Arc::clone(store), Arc::clone(queue), selector.clone());
    namespaces.subscribe(move |change| {
        if let Some(name) = turned(change, &selector) {
            for key in store.keys().into_iter().filter(|key| key.namespace == name) {
                queue.add(key, Priority::Change);
            }
        }
    });
}

/// The name of a namespace that has become ours by a change, or has ceased to be.
pub fn turned<'a>(change: &'a Change<NamespaceKind>, selector: &BTreeMap<String, String>) -> Option<&'a str> {
    let ours = |namespace: &Option<Arc<Namespace>>| {
        namespace.as_ref().is_some_and(|namespace| namespace.has_labels(selector))
    };
    let namespace = change.object().filter(|_| ours(&change.old) != ours(&change.new))?;
    Some(namespace.name())
}
