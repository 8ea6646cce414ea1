//! The connections of a server, whatever it speaks: they are accepted, bounded in number, and asked to end when the server
//! stops. When one more arrives than there may be, the one that has waited longest for a request ends. So idle clients never
//! keep others out, a request that has begun is always answered, and a stream goes on.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tracing::debug;

/// How long a new connection waits for a place that another one is asked to leave, before a further one is asked, too. One that
/// ends takes less, unless its client does not take its last answer.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// How long to wait after a connection could not be accepted.
const REFUSED: Duration = Duration::from_millis(100);

/// Accepts connections, at most `limit` at the same time, until `stop` completes. Each is served by `serve` on a task of its
/// own. Completes when all of them have ended.
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
                // The process is out of file descriptors, or the client has gone away already.
                debug!(%error, "a connection could not be accepted");
                sleep(REFUSED).await;
            }
        }
    }
    drop(listener);
    connections.stopping.send_replace(true);
    connections.stopping.closed().await;
}

/// The places for connections, and who waits for a request.
struct Connections {
    places: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
    /// Whether the server stops. Each connection has a receiver, and drops it when it ends.
    stopping: watch::Sender<bool>,
}

/// The connections without a request, in the order in which they began to wait.
#[derive(Default)]
struct Waiting {
    connections: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

impl Connections {
    /// At most this number of connections.
    fn new(limit: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { places, waiting: Mutex::default(), stopping: watch::Sender::new(false) })
    }

    /// The place of a connection that has arrived. Without a free one, it asks the connection that has waited longest
    /// for a request to end, and waits until any does.
    async fn place(self: &Arc<Self>) -> Connection {
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
        let connection = Connection {
            all: Arc::clone(self),
            end: Arc::default(),
            turn: Mutex::default(),
            stopping: self.stopping.subscribe(),
            _place: place,
        };
        connection.wait();
        connection
    }
}

/// The place of one connection; dropped when the connection has ended.
pub struct Connection {
    all: Arc<Connections>,
    end: Arc<Notify>,
    turn: Mutex<Turn>,
    stopping: watch::Receiver<bool>,
    _place: Option<OwnedSemaphorePermit>,
}

/// What a connection does.
#[derive(Default)]
struct Turn {
    /// Its place among those that wait.
    waits: Option<u64>,
    open: Open,
}

/// What may be lost when a connection is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Open {
    /// Nothing: there was no request yet that is complete.
    #[default]
    Fresh,
    /// The rest of the last answer, if the client has not taken it yet.
    Answered,
    /// Nothing any more: others need the memory of what its client has not taken.
    Untaken,
    /// The answer to a request.
    Serving,
    /// The rest of a stream: it has no end of its own, so it keeps its place from others, and delays no stop.
    Streaming,
}

impl Connection {
    /// A request has begun.
    pub fn serve(&self) {
        self.leave();
        self.turn.lock().open = Open::Serving;
    }

    /// The answer to the request is a stream.
    pub fn stream(&self) {
        self.turn.lock().open = Open::Streaming;
    }

    /// What may be lost when it is closed now.
    pub fn open(&self) -> Open {
        self.turn.lock().open
    }

    /// Asks it to end at once, with what its client has not taken.
    pub fn end(&self) {
        self.turn.lock().open = Open::Untaken;
        self.end.notify_one();
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
        turn.waits = Some(next);
        if turn.open != Open::Fresh {
            turn.open = Open::Answered;
        }
    }

    /// Completes when the connection has to end: whether because another one needs its place, or the memory of its answer.
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
        first.stream();
        assert_eq!(first.open(), Open::Streaming);
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
