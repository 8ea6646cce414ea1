//! The stores of a process: one for each kind and selector, shared by all loops that request it.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;

use super::{AnyStore, Store};
use crate::api::Kind;
use crate::runtime::plan::KindInfo;
use crate::runtime::resume::{self, Restores};
use crate::runtime::watch::{self, Selection};
use crate::runtime::watch_health::{Interruptions, WatchHealth};

/// Starts the watch that fills a store.
type StartWatch = Box<dyn FnOnce(Client, WatchHealth) -> BoxFuture<'static, ()> + Send>;

/// A store and its watch.
struct Shared {
    kind: KindInfo,
    selection: Selection,
    store: Arc<dyn AnyStore>,
    start: StartWatch,
}

/// The verbs of a loop's cluster-wide requests, by the kind and its subresource.
pub type Rights = BTreeMap<(KindInfo, &'static str), BTreeSet<&'static str>>;

/// Creates stores. Two calls for the same kind and selector return the same store.
#[derive(Default)]
pub struct StoreFactory {
    shared: Vec<Shared>,
    /// The permissions of each loop, by its name.
    pub rights: BTreeMap<&'static str, Rights>,
    /// Signals that a watch of a store has ended before its time.
    pub interruptions: Interruptions,
}

impl StoreFactory {
    /// Returns the store of a kind and selector, which the first call creates.
    pub fn store<T: Kind>(&mut self, selection: &Selection) -> Arc<Store<T>> {
        self.watched(KindInfo::of::<T>(), selection, true)
    }

    /// Like [`StoreFactory::store`], for a kind with these names. If this call creates the store and the kind is not
    /// served, the watch is retried only with `retry`.
    pub fn watched<T: Kind>(&mut self, kind: KindInfo, selection: &Selection, retry: bool) -> Arc<Store<T>> {
        let is_same = |shared: &&Shared| shared.kind == kind && shared.selection == *selection;
        let mut known = self.shared.iter().filter(is_same);
        let typed = |shared: &Shared| {
            let store: Arc<dyn Any + Send + Sync> = Arc::<dyn AnyStore>::clone(&shared.store);
            store.downcast().ok()
        };
        if let Some(store) = known.find_map(typed) {
            return store;
        }
        let label = selection.label_of_all();
        let store: Arc<Store<T>> =
            Arc::new(Store { kind, label, ..Store::new(*selection == Selection::ALL) });
        let (watched, selected) = (Arc::clone(&store), selection.clone());
        self.shared.push(Shared {
            kind,
            selection: selection.clone(),
            store: Arc::<Store<T>>::clone(&store),
            start: Box::new(move |client, health| watch::run(client, watched, selected, health, retry)),
        });
        store
    }

    /// Returns the watches of all stores, with the plural names of their kinds and their health. The futures never
    /// complete.
    pub fn watches(
        self,
        client: &Client,
    ) -> impl Iterator<Item = (&'static str, WatchHealth, impl Future<Output = ()> + Send + 'static)> {
        let restores = Restores::default();
        self.shared.into_iter().map(move |shared| {
            let health = WatchHealth::signalling(&self.interruptions);
            let (told, client, restores) = (health.clone(), client.clone(), restores.clone());
            let watch = async move { (shared.start)(resume::checked(client, restores), told).await };
            (shared.kind.plural, health, watch)
        })
    }

    /// Records that a loop sends cluster-wide requests with these verbs for a kind or one of its subresources.
    pub fn allow(&mut self, name: &'static str, of: (KindInfo, &'static str), verbs: &'static str) {
        self.rights.entry(name).or_default().entry(of).or_default().extend(verbs.split(' '));
    }

    /// Returns the selections of the kinds with this plural name.
    #[cfg(test)]
    pub fn selections(&self, plural: &str) -> Vec<Selection> {
        let shared = self.shared.iter().filter(|shared| shared.kind.plural == plural);
        shared.map(|shared| shared.selection.clone()).collect()
    }

    /// Adds an object to every store whose selector it matches, as if the watch had shown it. Returns whether there is
    /// such a store. For `crownlabs plan`.
    ///
    /// # Errors
    /// When the document is not a valid object of its kind.
    pub fn offer(&self, document: &Value) -> Result<bool, serde_json::Error> {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let mut is_taken = false;
        for shared in self.shared.iter().filter(|shared| shared.kind.kind == text("/kind")) {
            if shared.selection.matches(document) {
                shared.store.take_listed(document.to_string().as_bytes())?;
                is_taken = true;
            }
        }
        Ok(is_taken)
    }

    /// Marks every store as synced.
    pub fn end_lists(&self) {
        self.shared.iter().for_each(|shared| shared.store.end_list());
    }
}
