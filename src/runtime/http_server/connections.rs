//! The connections of a server. There is a bounded number; when one more arrives, the one that has waited longest for a
//! request ends. So idle clients never keep others out, and a request that has begun is always answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The places for connections, and who waits for a request.
pub struct Connections {
    places: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
}

/// The connections without a request, in the order in which they began to wait.
#[derive(Default)]
struct Waiting {
    connections: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

impl Connections {
    /// At most this number of connections.
    pub fn new(limit: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { places, waiting: Mutex::default() })
    }

    /// The place of a connection that has arrived. Without a free one, it asks the connection that has waited longest
    /// for a request to end, and waits until any does.
    pub async fn place(self: &Arc<Self>) -> Connection {
        if self.places.available_permits() == 0 {
            let longest = self.waiting().connections.pop_first();
            if let Some((_, end)) = longest {
                end.notify_one();
            }
        }
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let connection =
            Connection { all: Arc::clone(self), end: Arc::default(), turn: Mutex::default(), _place: place };
        connection.wait();
        connection
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        // No code that can panic runs while the lock is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection; dropped when the connection has ended.
pub struct Connection {
    all: Arc<Connections>,
    end: Arc<Notify>,
    /// Its place among those that wait.
    turn: Mutex<Option<u64>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// A request has begun.
    pub fn serve(&self) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turn.take() {
            self.all.waiting().connections.remove(&turn);
        }
    }

    /// It waits for a request from now on.
    pub fn wait(&self) {
        self.serve();
        let mut waiting = self.all.waiting();
        waiting.next += 1;
        let next = waiting.next;
        waiting.connections.insert(next, Arc::clone(&self.end));
        drop(waiting);
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
    }

    /// Completes when the connection has to end because another one needs its place.
    pub async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.serve();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_one_that_has_waited_longest_ends_and_a_request_never() {
        let connections = Connections::new(2);
        let place = || connections.place().now_or_never();
        let (first, second) = (place().expect("free"), place().expect("free"));
        first.serve();
        assert!(place().is_none(), "there are two places");
        assert!(first.ended().now_or_never().is_none(), "it serves a request");
        assert!(second.ended().now_or_never().is_some());
        drop(second);
        let third = place().expect("the place of the second");
        first.wait();
        assert!(place().is_none());
        assert!(third.ended().now_or_never().is_some(), "it has waited longer than the first");
        assert!(first.ended().now_or_never().is_none());
        drop((first, third));
        assert!(connections.waiting().connections.is_empty());
    }
}
