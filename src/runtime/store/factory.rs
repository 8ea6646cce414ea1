//! The stores of a process: one for each kind and selection, whichever loops ask for it.

use std::any::{Any, TypeId};
use std::future::Future;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kube::Client;
use serde_json::Value;

use super::{AnyStore, Store};
use crate::api::Kind;
use crate::runtime::watch::{self, Selection};

/// Makes the future that keeps a store equal to the cluster.
type StartWatch = Box<dyn FnOnce(Client) -> BoxFuture<'static, ()>>;

/// A store and its watch.
struct Shared {
    type_id: TypeId,
    kind: &'static str,
    plural: &'static str,
    selection: Selection,
    typed: Arc<dyn Any + Send + Sync>,
    untyped: Arc<dyn AnyStore>,
    start: StartWatch,
}

/// Makes stores, and the same store for the same kind and selection.
#[derive(Default)]
pub struct StoreFactory {
    shared: Vec<Shared>,
}

impl StoreFactory {
    /// The store of that kind and selection, made when it is first asked for.
    pub fn store<T: Kind>(&mut self, selection: &Selection) -> Arc<Store<T>> {
        let type_id = TypeId::of::<T>();
        let known =
            self.shared.iter().find(|shared| shared.type_id == type_id && shared.selection == *selection);
        if let Some(store) = known.and_then(|shared| Arc::clone(&shared.typed).downcast().ok()) {
            return store;
        }
        let store: Arc<Store<T>> = Arc::new(Store::new(*selection == Selection::All));
        let (watched, selected) = (Arc::clone(&store), selection.clone());
        self.shared.push(Shared {
            type_id,
            kind: T::KIND,
            plural: T::PLURAL,
            selection: selection.clone(),
            typed: Arc::<Store<T>>::clone(&store),
            untyped: Arc::<Store<T>>::clone(&store),
            start: Box::new(move |client| watch::run(client, watched, selected).boxed()),
        });
        store
    }

    /// The watches of all stores, with the plural names of their kinds. None of them ends.
    pub fn watches(
        self,
        client: &Client,
    ) -> impl Iterator<Item = (&'static str, impl Future<Output = ()> + Send + 'static)> {
        self.shared.into_iter().map(|shared| (shared.plural, (shared.start)(client.clone())))
    }

    /// Puts an object into every store that would show it, as if the API server had; whether there is one.
    ///
    /// # Errors
    /// When the document is no object of its kind.
    pub fn offer(&self, document: &Value) -> Result<bool, serde_json::Error> {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let mut is_taken = false;
        for shared in self.shared.iter().filter(|shared| shared.kind == text("/kind")) {
            if shared.selection.matches(document) {
                shared.untyped.offer(document)?;
                is_taken = true;
            }
        }
        Ok(is_taken)
    }

    /// Lets every store count as filled: what was offered is all there is.
    pub fn end_lists(&self) {
        self.shared.iter().for_each(|shared| shared.untyped.end_list());
    }
}
