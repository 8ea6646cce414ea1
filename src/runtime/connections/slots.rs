//! A limited number of slots for connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// The time that a new connection waits for an idle one to close before the next idle one is asked as well. Closing
/// usually takes less, unless the client does not read its last response.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The time in which a connection may wait for a request without being asked to close.
pub const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// A limited number of slots, and the connections that may be closed for another one.
pub struct Slots {
    pub(super) free: Arc<Semaphore>,
    /// Held by the connection that gets the next slot.
    next: tokio::sync::Mutex<()>,
    pub(super) waiting: Arc<Mutex<Waiting>>,
}

/// The connections that wait, ordered by the beginning of their wait.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) connections: BTreeMap<u64, (Instant, Arc<Notify>)>,
    next: u64,
}

impl Slots {
    /// Creates this number of slots.
    pub fn new(number: usize) -> Self {
        let free = Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)));
        Self { free, next: tokio::sync::Mutex::default(), waiting: Arc::default() }
    }

    /// Creates this number of slots for some of the same connections.
    pub fn part(&self, number: usize) -> Self {
        Self { waiting: Arc::clone(&self.waiting), ..Self::new(number) }
    }

    /// Returns a slot. If none is free, asks the connection that has waited longest to close, and waits until any does.
    /// Slots are given in the order of the calls.
    pub async fn acquire(&self) -> OwnedSemaphorePermit {
        let _next = self.next.lock().await;
        loop {
            if let Ok(slot) = Arc::clone(&self.free).try_acquire_owned() {
                return slot;
            }
            self.close_longest();
            // The semaphore is never closed. If all connections serve requests, or have not waited long enough, the next
            // attempt may find one.
            if let Ok(Ok(slot)) = timeout(ASK_AGAIN, Arc::clone(&self.free).acquire_owned()).await {
                return slot;
            }
        }
    }

    /// Asks the connection that has waited longest to close, if it has waited long enough.
    pub fn close_longest(&self) {
        let mut waiting = self.waiting.lock();
        if let Some(first) = waiting.connections.first_entry()
            && first.get().0.elapsed() >= SHORTEST_WAIT
        {
            first.remove().1.notify_one();
        }
    }

    /// A connection waits from now on. Returns its position.
    pub fn wait(&self, end: &Arc<Notify>) -> u64 {
        let mut waiting = self.waiting.lock();
        waiting.next += 1;
        let next = waiting.next;
        waiting.connections.insert(next, (Instant::now(), Arc::clone(end)));
        next
    }

    /// The connection at this position does not wait any more. Returns whether it still did: a connection that is
    /// asked to close does not.
    pub fn leave(&self, position: u64) -> bool {
        self.waiting.lock().connections.remove(&position).is_some()
    }
}
