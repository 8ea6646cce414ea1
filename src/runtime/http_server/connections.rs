//! The connections of a server. There is a bounded number; when one more arrives, the one that has waited longest for a
//! request ends. So idle clients never keep others out, and a request that has begun is always answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a new connection waits for a place that another one is asked to leave, before a further one is asked, too. One that
/// ends takes less, unless its client does not take its last answer.
const ASK_AGAIN: Duration = Duration::from_millis(20);

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
        let mut place = Arc::clone(&self.places).try_acquire_owned().ok();
        while place.is_none() {
            let longest = self.waiting.lock().connections.pop_first();
            let acquired = Arc::clone(&self.places).acquire_owned();
            if let Some((_, end)) = longest {
                end.notify_one();
            }
            // The semaphore is never closed. Where all serve requests, one of them can be asked once it is answered.
            place = timeout(ASK_AGAIN, acquired).await.ok().and_then(Result::ok);
        }
        let connection =
            Connection { all: Arc::clone(self), end: Arc::default(), turn: Mutex::default(), _place: place };
        connection.wait();
        connection
    }
}

/// The place of one connection; dropped when the connection has ended.
pub struct Connection {
    all: Arc<Connections>,
    end: Arc<Notify>,
    turn: Mutex<Turn>,
    _place: Option<OwnedSemaphorePermit>,
}

/// What a connection does.
#[derive(Default)]
struct Turn {
    /// Its place among those that wait.
    waits: Option<u64>,
    /// Whether a request is served now.
    serves: bool,
    /// Whether one was served before.
    has_served: bool,
}

/// What may be lost when a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Nothing: there was no request yet that is complete.
    Fresh,
    /// The rest of the last answer, if the client has not taken it yet.
    Answered,
    /// The answer to a request.
    Serving,
}

impl Connection {
    /// A request has begun.
    pub fn serve(&self) {
        self.leave();
        let mut turn = self.turn.lock();
        (turn.serves, turn.has_served) = (true, true);
    }

    /// What may be lost when it is closed now.
    pub fn open(&self) -> Open {
        match *self.turn.lock() {
            Turn { serves: true, .. } => Open::Serving,
            Turn { has_served: true, .. } => Open::Answered,
            _ => Open::Fresh,
        }
    }

    /// It does not wait any more.
    fn leave(&self) {
        let waits = self.turn.lock().waits.take();
        if let Some(turn) = waits {
            self.all.waiting.lock().connections.remove(&turn);
        }
    }

    /// It waits for a request from now on.
    pub fn wait(&self) {
        self.leave();
        let mut waiting = self.all.waiting.lock();
        waiting.next += 1;
        let next = waiting.next;
        waiting.connections.insert(next, Arc::clone(&self.end));
        drop(waiting);
        let mut turn = self.turn.lock();
        (turn.waits, turn.serves) = (Some(next), false);
    }

    /// Completes when the connection has to end because another one needs its place.
    pub async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_one_that_has_waited_longest_ends_and_a_request_never() {
        let connections = Connections::new(2);
        let place = || connections.place().now_or_never();
        let (first, second) = (place().expect("free"), place().expect("free"));
        assert_eq!(first.open(), Open::Fresh);
        first.serve();
        assert_eq!(first.open(), Open::Serving);
        assert!(place().is_none(), "there are two places");
        assert!(first.ended().now_or_never().is_none(), "it serves a request");
        assert!(second.ended().now_or_never().is_some());
        drop(second);
        let third = place().expect("the place of the second");
        first.wait();
        assert_eq!(first.open(), Open::Answered);
        assert!(place().is_none());
        assert!(third.ended().now_or_never().is_some(), "it has waited longer than the first");
        assert!(first.ended().now_or_never().is_none());
        drop((first, third));
        assert!(connections.waiting.lock().connections.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_end_delays_a_new_one_by_a_moment() {
        let connections = Connections::new(3);
        let (stuck, other, serving) =
            (connections.place().await, connections.place().await, connections.place().await);
        serving.serve();
        let new = tokio::spawn(async move { connections.place().await });
        stuck.ended().await;
        other.ended().await;
        drop(other);
        new.await.expect("the place of the other");
        drop((stuck, serving));
    }
}
