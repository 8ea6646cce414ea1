//! The stores of a process: one a kind and selection, whichever loops ask for it.

use std::any::{Any, TypeId};
use std::future::Future;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kube::Client;

use super::store::Store;
use super::watch::{self, Selection};
use crate::api::Kind;

/// Makes the watch of a store.
type Start = Box<dyn FnOnce(Client) -> BoxFuture<'static, ()>>;

/// A store, and the watch that fills it.
struct Shared {
    kind: TypeId,
    plural: &'static str,
    selection: Selection,
    store: Arc<dyn Any + Send + Sync>,
    start: Start,
}

/// The stores that have been asked for.
#[derive(Default)]
pub struct StoreFactory {
    shared: Vec<Shared>,
}

impl StoreFactory {
    /// The store of that kind and selection, made when it is first asked for.
    pub fn store<T: Kind>(&mut self, selection: Selection) -> Arc<Store<T>> {
        let kind = TypeId::of::<T>();
        let known = self.shared.iter().find(|shared| shared.kind == kind && shared.selection == selection);
        if let Some(store) = known.and_then(|shared| Arc::clone(&shared.store).downcast().ok()) {
            return store;
        }
        let store: Arc<Store<T>> = Arc::new(Store::new(selection == Selection::default()));
        let (watched, selected) = (Arc::clone(&store), selection.clone());
        self.shared.push(Shared {
            kind,
            plural: T::PLURAL,
            selection,
            store: Arc::<Store<T>>::clone(&store),
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
}
