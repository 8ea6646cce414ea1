//! The queries of a loop to servers outside of the cluster, and the result of the last one of each object.
//!
//! A query is a task of its own, so that a server that hangs occupies no worker. Its result is kept in memory until the next
//! query, and adds the object to the queue.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::queue::{Priority, Queue};

/// What is known of the last query of an object.
pub trait LastQuery: Clone + Send + 'static {
    /// What the server has answered, or why it has not.
    type Answer: Send + 'static;

    /// Keeps the answer, which was there at this time.
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
    /// The number of the last query, of any object.
    serial: u64,
}

struct Entry<Q> {
    query: Q,
    serial: u64,
    task: AbortHandle,
}

impl<Q> Drop for Entry<Q> {
    /// Ends the query if it is still under way.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<Q: LastQuery> Queries<Q> {
    /// Without any query yet. Results add their objects to `queue`.
    pub fn new(queue: Arc<Queue>) -> Self {
        Self { queue, state: Arc::new(Mutex::new(State { entries: HashMap::new(), serial: 0 })) }
    }

    /// The last query of an object.
    pub fn last(&self, key: &ObjectKey) -> Option<Q> {
        self.state.lock().entries.get(key).map(|entry| entry.query.clone())
    }

    /// Changes what is known of the last query of an object.
    pub fn change(&self, key: &ObjectKey, change: impl FnOnce(&mut Q)) {
        if let Some(entry) = self.state.lock().entries.get_mut(key) {
            change(&mut entry.query);
        }
    }

    /// Drops what is known about an object, and ends its query if one is under way.
    pub fn forget(&self, key: &ObjectKey) {
        self.state.lock().entries.remove(key);
    }

    /// Begins a query of an object; another one of the same object ends. `query` makes what is known of it from the last one.
    pub fn begin(
        &self,
        key: ObjectKey,
        query: impl FnOnce(Option<&Q>) -> Q,
        answer: impl Future<Output = Q::Answer> + Send + 'static,
    ) {
        // Locked until the task is in the entry: the task cannot record its answer before.
        let mut state = self.state.lock();
        state.serial += 1;
        let serial = state.serial;
        let query = query(state.entries.get(&key).map(|entry| &entry.query));
        let (queries, at) = (self.clone(), key.clone());
        let task = tokio::spawn(async move { queries.record(at, serial, answer.await) });
        state.entries.insert(key, Entry { query, serial, task: task.abort_handle() });
    }

    /// Keeps the answer to a query, unless another one has begun since.
    fn record(&self, key: ObjectKey, serial: u64, answer: Q::Answer) {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&key).filter(|entry| entry.serial == serial) else { return };
        entry.query.end(clock::now(), answer);
        drop(state);
        self.queue.add(key, Priority::Change);
    }
}
