//! The queries of a loop to servers outside the cluster, and the last result for each object.
//!
//! A query is a separate task, so that an unresponsive server does not block a worker. Its result is kept in memory
//! until the next query, and adds the object to the queue.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::runtime::queue::{Priority, Queue};
use crate::runtime::{ObjectKey, clock};

/// The state of an object's last query.
pub trait LastQuery: Clone + Send + 'static {
    /// The answer of the server, or the error.
    type Answer: Send + 'static;

    /// Stores the answer that arrived at this time.
    fn end(&mut self, at: Timestamp, answer: Self::Answer);
}

/// The last query of each object.
#[derive(Clone)]
pub struct Queries<Q> {
    queue: Arc<Queue>,
    state: Arc<Mutex<State<Q>>>,
}

struct State<Q> {
    entries: HashMap<ObjectKey, Entry<Q>>,
    /// The number of the last query of any object.
    serial: u64,
}

struct Entry<Q> {
    query: Q,
    serial: u64,
    task: AbortHandle,
}

impl<Q> Drop for Entry<Q> {
    /// Cancels the query if it is still running.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<Q: LastQuery> Queries<Q> {
    /// Starts without any query. Results add their objects to `queue`.
    pub fn new(queue: Arc<Queue>) -> Self {
        Self { queue, state: Arc::new(Mutex::new(State { entries: HashMap::new(), serial: 0 })) }
    }

    /// The last query of an object.
    pub fn last(&self, key: &ObjectKey) -> Option<Q> {
        self.state.lock().entries.get(key).map(|entry| entry.query.clone())
    }

    /// Changes the state of an object's last query.
    pub fn change(&self, key: &ObjectKey, change: impl FnOnce(&mut Q)) {
        if let Some(entry) = self.state.lock().entries.get_mut(key) {
            change(&mut entry.query);
        }
    }

    /// Drops the state of an object, and cancels its query if one is running.
    pub fn forget(&self, key: &ObjectKey) {
        self.state.lock().entries.remove(key);
    }

    /// Starts a query for an object and cancels an earlier one. `query` derives the new state from the last one.
    pub fn begin(
        &self,
        key: ObjectKey,
        query: impl FnOnce(Option<&Q>) -> Q,
        answer: impl Future<Output = Q::Answer> + Send + 'static,
    ) {
        // The lock is held until the task is in the entry, so that the task cannot record its answer earlier.
        let mut state = self.state.lock();
        state.serial += 1;
        let serial = state.serial;
        let query = query(state.entries.get(&key).map(|entry| &entry.query));
        let (queries, at) = (self.clone(), key.clone());
        let task = tokio::spawn(async move { queries.record(at, serial, answer.await) });
        state.entries.insert(key, Entry { query, serial, task: task.abort_handle() });
    }

    /// Stores the answer to a query, unless a newer query has begun.
    fn record(&self, key: ObjectKey, serial: u64, answer: Q::Answer) {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&key).filter(|entry| entry.serial == serial) else { return };
        entry.query.end(clock::now(), answer);
        drop(state);
        self.queue.add(key, Priority::Change);
    }
}
