//! The connections of a server, independent of the protocol. They are accepted, limited in number, and asked to close
//! when the server stops. When a new connection exceeds the limit, the connection that has waited longest for a complete
//! request is closed. Two kinds of connections are not:
//!
//! - a connection that has waited for less than [`SHORTEST_WAIT`]: its request may have arrived without being read yet;
//! - a connection whose last response promised to keep it: its next request may be on its way at any moment. At most half of
//!   the connections have this promise ([`Connection::keep`]).
//!
//! Idle and slow clients therefore never lock others out, every complete request gets a response, and streams continue;
//! they do not count.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

/// The time that a new connection waits for an idle one to close before the next idle one is asked as well. Closing
/// usually takes less, unless the client does not read its last response.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The time in which a connection may wait for a request without being asked to close.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The pause after a connection could not be accepted.
const REFUSED: Duration = Duration::from_millis(100);

/// Accepts connections, at most `limit` at the same time, until `stop` completes. `serve` handles each connection in
/// its own task. Completes when all connections are closed.
pub async fn accept<S: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    limit: usize,
    stop: impl Future<Output = ()>,
    serve: impl Fn(TcpStream, SocketAddr, Connection) -> S,
) {
    let connections = Connections::new(limit);
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, address)) => {
                let place = tokio::select! {
                    place = connections.place() => place,
                    () = &mut stop => break,
                };
                tokio::spawn(serve(stream, address, place));
            }
            Err(error) => {
                // The process is out of file descriptors, or the client has already disconnected.
                debug!(%error, "a connection could not be accepted");
                sleep(REFUSED).await;
            }
        }
    }
    drop(listener);
    connections.stopping.send_replace(true);
    connections.stopping.closed().await;
}

/// The slots for connections, and the connections that wait for a request.
struct Connections {
    places: Arc<Semaphore>,
    /// The connections that may still be promised to be kept.
    promises: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
    /// Whether the server stops. Each connection has a receiver, and drops it when it closes.
    stopping: watch::Sender<bool>,
}

/// The connections without a request and without a promise, ordered by the beginning of their wait.
#[derive(Default)]
struct Waiting {
    connections: BTreeMap<u64, (Instant, Arc<Notify>)>,
    next: u64,
}

impl Waiting {
    /// Removes and returns the connection that has waited longest, if it has waited long enough.
    fn longest(&mut self) -> Option<Arc<Notify>> {
        let longest =
            self.connections.first_entry().filter(|first| first.get().0.elapsed() >= SHORTEST_WAIT)?;
        Some(longest.remove().1)
    }
}

impl Connections {
    /// Creates slots for this number of connections.
    fn new(limit: usize) -> Arc<Self> {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        let [places, promises] = [limit, limit / 2].map(|number| Arc::new(Semaphore::new(number)));
        Arc::new(Self { places, promises, waiting: Mutex::default(), stopping: watch::Sender::new(false) })
    }

    /// Returns the slot of a new connection. If none is free, asks the connection that has waited longest for a request
    /// to close, and waits until any connection does.
    async fn place(self: &Arc<Self>) -> Connection {
        let mut place = Arc::clone(&self.places).try_acquire_owned().ok();
        while place.is_none() {
            let longest = self.waiting.lock().longest();
            let acquired = Arc::clone(&self.places).acquire_owned();
            if let Some(end) = longest {
                end.notify_one();
            }
            // The semaphore is never closed. If all connections serve requests, or have not waited long enough, the next
            // attempt may find one.
            place = timeout(ASK_AGAIN, acquired).await.ok().and_then(Result::ok);
        }
        let connection = Connection {
            all: Arc::clone(self),
            end: Arc::default(),
            turn: Mutex::default(),
            stopping: self.stopping.subscribe(),
            slot: Mutex::new(place),
        };
        connection.wait();
        connection
    }
}

/// A connection, with its slot. The slot is released when the connection becomes a stream or is dropped.
pub struct Connection {
    all: Arc<Connections>,
    end: Arc<Notify>,
    turn: Mutex<Turn>,
    stopping: watch::Receiver<bool>,
    slot: Mutex<Option<OwnedSemaphorePermit>>,
}

/// The state of a connection.
#[derive(Default)]
struct Turn {
    /// Its position among the connections that wait.
    waits: Option<u64>,
    /// The promise to keep it.
    promise: Option<OwnedSemaphorePermit>,
    open: Open,
}

/// The data that may be lost when a connection is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Open {
    /// Nothing: no request was complete yet.
    #[default]
    Fresh,
    /// The rest of the last response, if the client has not read it yet.
    Answered,
    /// Nothing: the unread response was given up because its memory is needed.
    Untaken,
    /// The response to a request.
    Serving,
}

impl Connection {
    /// A request is complete.
    pub fn serve(&self) {
        self.leave();
        self.turn.lock().open = Open::Serving;
    }

    /// The response to the request is a stream, which needs no slot: the handler limits the number of streams.
    pub fn stream(&self) {
        drop(self.slot.lock().take());
        drop(self.turn.lock().promise.take());
    }

    /// Returns whether the next response may promise to keep the connection for another request.
    pub fn keep(&self) -> bool {
        let mut turn = self.turn.lock();
        if turn.promise.is_none() {
            turn.promise = Arc::clone(&self.all.promises).try_acquire_owned().ok();
        }
        turn.promise.is_some()
    }

    /// Returns the data that may be lost if the connection is closed now.
    pub fn open(&self) -> Open {
        self.turn.lock().open
    }

    /// Asks the connection to close at once, and gives up the unread response.
    pub fn end(&self) {
        self.turn.lock().open = Open::Untaken;
        self.end.notify_one();
    }

    /// Removes the connection from the waiting ones.
    fn leave(&self) {
        let waits = self.turn.lock().waits.take();
        if let Some(turn) = waits {
            self.all.waiting.lock().connections.remove(&turn);
        }
    }

    /// The connection waits for a request from now on.
    pub fn wait(&self) {
        self.leave();
        let mut turn = self.turn.lock();
        if turn.promise.is_none() {
            let mut waiting = self.all.waiting.lock();
            waiting.next += 1;
            let next = waiting.next;
            waiting.connections.insert(next, (Instant::now(), Arc::clone(&self.end)));
            turn.waits = Some(next);
        }
        if turn.open != Open::Fresh {
            turn.open = Open::Answered;
        }
    }

    /// Completes when the connection has to close. True if its slot or its response's memory is needed for another
    /// connection, false if the server stops.
    pub async fn ended(&self) -> bool {
        tokio::select! {
            () = self.end.notified() => true,
            () = self.stopping() => false,
        }
    }

    /// Completes when the server is asked to stop.
    pub async fn stopping(&self) {
        drop(self.stopping.clone().wait_for(|stopping| *stopping).await);
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
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_waiting_connection_closes_and_a_serving_one_does_not() {
        let connections = Connections::new(2);
        let place = || connections.place().now_or_never();
        let (first, second) = (place().expect("free"), place().expect("free"));
        assert_eq!(first.open(), Open::Fresh);
        first.serve();
        assert_eq!(first.open(), Open::Serving);
        assert!(place().is_none(), "both slots are taken");
        assert!(second.ended().now_or_never().is_none(), "its request may arrive at any moment");
        advance(SHORTEST_WAIT).await;
        assert!(place().is_none(), "both slots are still taken");
        assert!(first.ended().now_or_never().is_none(), "it is serving a request");
        assert!(second.ended().now_or_never().is_some());
        drop(second);
        let third = place().expect("the place of the second");
        first.wait();
        assert_eq!(first.open(), Open::Answered);
        advance(SHORTEST_WAIT).await;
        assert!(place().is_none());
        assert!(third.ended().now_or_never().is_some(), "it has waited longer than the first");
        assert!(first.ended().now_or_never().is_none());
        first.serve();
        first.stream();
        let fourth = place().expect("a stream has no slot");
        drop((first, third, fourth));
        assert!(connections.waiting.lock().connections.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_connection_is_not_asked_to_close() {
        let connections = Connections::new(2);
        let (kept, other) = (connections.place().await, connections.place().await);
        for connection in [&kept, &other] {
            connection.serve();
        }
        assert!(kept.keep() && kept.keep(), "one promise is enough for all its requests");
        assert!(!other.keep(), "half of the connections are kept");
        for connection in [&kept, &other] {
            connection.wait();
        }
        let new = connections.place();
        let (new, ()) = tokio::join!(new, async {
            assert!(other.ended().await);
            drop(other);
        });
        assert!(kept.ended().now_or_never().is_none());
        new.serve();
        assert!(!new.keep());
        kept.serve();
        kept.stream();
        assert!(new.keep(), "a stream needs no promise");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_close_delays_a_new_one_only_briefly() {
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
