//! The queries of registries that are under way, and the result of the last one of each list.
//!
//! A query is a task of its own, so that a registry that hangs occupies no worker. Its result is kept in memory until the
//! next query, and adds the list to the queue.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use jiff::Timestamp;
use metrics::{counter, gauge};
use tokio::task::AbortHandle;

use super::observe::Query;
use super::plan::is_doubted;
use crate::api::image_list::ImageList;
use crate::clients::registry::{Listing, QueryError, Registry};
use crate::config::RegistryConfig;
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::queue::{Priority, Queue};

/// The metric that counts queries by list and result.
const QUERIES: &str = "image_list_queries_total";
/// The metric with the time of the last query of each list that succeeded.
const LAST_SUCCESS: &str = "image_list_last_success_timestamp_seconds";

/// The last query of each list.
#[derive(Clone)]
pub struct Queries {
    registries: Arc<HashMap<ObjectKey, Registry>>,
    queue: Arc<Queue>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    entries: HashMap<ObjectKey, Entry>,
    /// The number of the last query, of any list.
    serial: u64,
}

struct Entry {
    query: Query,
    serial: u64,
    task: AbortHandle,
}

impl Drop for Entry {
    /// Ends the query if it is still under way.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Queries {
    /// Without any query yet. Results add their lists to `queue`.
    pub fn new(registries: &[RegistryConfig], queue: Arc<Queue>) -> Self {
        let mut known = HashMap::new();
        for registry in registries {
            for result in ["succeeded", "failed"] {
                let name = registry.image_list_name.clone();
                counter!(QUERIES, "image_list" => name, "result" => result).increment(0);
            }
            known.insert(key(registry), Registry::new(registry.clone()));
        }
        Self { registries: Arc::new(known), queue, known: Arc::default() }
    }

    /// The last query of a list.
    pub fn last(&self, key: &ObjectKey) -> Option<Query> {
        self.lock().entries.get(key).map(|entry| entry.query.clone())
    }

    /// Drops what is known about a list, and ends its query if one is under way.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().entries.remove(key);
    }

    /// Notes that a reconcile has acted upon the result of a query, if it was this one.
    pub fn settle(&self, key: &ObjectKey, query: &Query) {
        let mut known = self.lock();
        let entry = known.entries.get_mut(key).filter(|entry| entry.query == *query);
        if let Some(entry) = entry.filter(|entry| entry.query.result.is_some()) {
            entry.query.is_settled = true;
        }
    }

    /// Begins a query of the registry of a list; another one of the same list ends.
    pub fn begin(&self, key: &ObjectKey, list: &ImageList) {
        let Some(registry) = self.registries.get(key).cloned() else { return };
        // Locked until the task is in the entry: the task cannot record its result before.
        let mut known = self.lock();
        known.serial += 1;
        let serial = known.serial;
        let before = known.entries.get(key).map(|entry| &entry.query);
        let success = before.and_then(|last| match &last.result {
            Some((ended, Ok(listing))) if !is_doubted(listing, list, last.empty) => Some(*ended),
            _ => last.last_success,
        });
        let query = Query {
            begun: clock::now(),
            failures: before.map_or(0, |last| last.failures),
            empty: before.map_or(0, |last| last.empty),
            last_success: success,
            result: None,
            is_settled: false,
        };
        let (queries, at) = (self.clone(), key.clone());
        let task = tokio::spawn(async move {
            let listed = AssertUnwindSafe(registry.list()).catch_unwind().await;
            queries.record(at, serial, listed.unwrap_or(Err(QueryError::Panicked)));
        });
        known.entries.insert(key.clone(), Entry { query, serial, task: task.abort_handle() });
    }

    /// Keeps the result of a query, unless another one has begun since.
    fn record(&self, key: ObjectKey, serial: u64, listed: Result<Listing, QueryError>) {
        let (now, name) = (clock::now(), key.name.to_string());
        let result = if listed.is_ok() { "succeeded" } else { "failed" };
        counter!(QUERIES, "image_list" => name.clone(), "result" => result).increment(1);
        if listed.is_ok() {
            gauge!(LAST_SUCCESS, "image_list" => name).set(seconds(now));
        }
        let mut known = self.lock();
        let Some(entry) = known.entries.get_mut(&key).filter(|entry| entry.serial == serial) else { return };
        entry.query.end(now, listed.map(Arc::new));
        drop(known);
        self.queue.add(key, Priority::Change);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // No code that can panic runs while the data is inconsistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of the list of a registry.
pub fn key(registry: &RegistryConfig) -> ObjectKey {
    ObjectKey::new("", registry.image_list_name.as_str())
}

/// A time in seconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "whole seconds are exact for millions of years")]
fn seconds(time: Timestamp) -> f64 {
    time.as_second() as f64
}
