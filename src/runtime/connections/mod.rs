//! The connections of a server, independent of the protocol. They are accepted, limited in number, and asked to close
//! when the server stops. A connection has a slot once its client has sent something. When the slots are taken, the
//! connection that has waited longest for a complete request is closed. Two kinds of connections are not:
//!
//! - a connection that has waited for less than [`SHORTEST_WAIT`](slots::SHORTEST_WAIT): its request may have arrived without being read yet;
//! - a connection whose last response promised to keep it: its next request may be on its way at any moment. At most half of
//!   the connections have this promise ([`Connection::keep`]).
//!
//! Browsers and proxies open connections in advance, or send the request later than they connect. Such a connection has no
//! slot, so a new one does not close it just when its request arrives. [`MOST_WITHOUT_SLOT`] limits their number.
//!
//! A connection that begins with a write may have to wait: at most half of the slots are for such connections, until their
//! first response. So the page that follows a form does not wait for the forms of all others.
//!
//! Idle and slow clients therefore never lock others out, every complete request gets a response, and streams continue;
//! they do not count. At a stop, a complete request that waits for a slot still gets one.

mod slots;

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

use self::slots::Slots;

/// The maximum number of accepted connections that have no slot: their clients have sent nothing, or all slots are taken.
/// Others wait in the kernel. Above it, the connection that has been silent longest is closed.
const MOST_WITHOUT_SLOT: usize = 2_048;

/// The time in which the bytes that the kernel has for a connection are read before the connection closes.
pub const UNREAD: Duration = Duration::from_millis(20);

/// The pause after a connection could not be accepted.
const REFUSED: Duration = Duration::from_millis(100);

/// Accepts connections until `stop` completes. `serve` handles each of them in its own task once its client has sent
/// something, at most `limit` at the same time. A client that sends nothing for `silence` is disconnected. `is_write` tells
/// from the first byte of a connection whether it begins with a write. Completes when all connections are closed.
pub async fn accept<S: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    limit: usize,
    silence: Duration,
    is_write: fn(u8) -> bool,
    stop: impl Future<Output = ()>,
    serve: impl Fn(TcpStream, SocketAddr, Connection) -> S + Clone + Send + Sync + 'static,
) {
    let connections = Connections::new(limit, MOST_WITHOUT_SLOT);
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, address)) => {
                let accepted = tokio::select! {
                    accepted = connections.accepted() => accepted,
                    () = &mut stop => break,
                };
                let serve = serve.clone();
                tokio::spawn(async move {
                    if let Some(place) = accepted.place(&stream, silence, is_write).await {
                        // Boxed, so that silent connections do not hold its future.
                        Box::pin(serve(stream, address, place)).await;
                    }
                });
            }
            Err(error) => {
                // The process is out of file descriptors, or the client has already disconnected.
                debug!(%error, "a connection could not be accepted");
                connections.accepted.close_longest();
                sleep(REFUSED).await;
            }
        }
    }
    drop(listener);
    connections.stopping.send_replace(true);
    connections.stopping.closed().await;
}

/// Completes when the server is asked to stop.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    drop(stopping.wait_for(|stopping| *stopping).await);
}

/// The connections of a server.
struct Connections {
    /// Those without a slot. The silent ones wait.
    accepted: Slots,
    /// Those with a slot. Those without a request and without a promise wait.
    served: Slots,
    /// The served ones that begin with a write, until their first response.
    writes: Slots,
    /// The connections that may still be promised to be kept.
    promises: Arc<Semaphore>,
    /// Whether the server stops. Each connection has a receiver, and drops it when it closes.
    stopping: watch::Sender<bool>,
}

impl Connections {
    /// Creates slots for this number of connections, and for this number of connections without a slot.
    fn new(limit: usize, without_slot: usize) -> Arc<Self> {
        let served = Slots::new(limit);
        Arc::new(Self {
            accepted: Slots::new(without_slot),
            writes: served.part(limit.div_ceil(2)),
            served,
            promises: Arc::new(Semaphore::new((limit / 2).min(Semaphore::MAX_PERMITS))),
            stopping: watch::Sender::new(false),
        })
    }

    /// Accepts a connection.
    async fn accepted(self: &Arc<Self>) -> Accepted {
        let slot = self.accepted.acquire().await;
        Accepted { all: Arc::clone(self), stopping: self.stopping.subscribe(), _slot: slot }
    }

    /// Returns the slot of a connection whose client has sent something.
    async fn place(self: &Arc<Self>, is_write: bool) -> Connection {
        let write = if is_write { Some(self.writes.acquire().await) } else { None };
        let slot = self.served.acquire().await;
        let connection = Connection {
            all: Arc::clone(self),
            end: Arc::default(),
            turn: Mutex::new(Turn { write, ..Turn::default() }),
            stopping: self.stopping.subscribe(),
            slot: Mutex::new(Some(slot)),
        };
        connection.wait();
        connection
    }
}

/// A connection that has no slot yet.
struct Accepted {
    all: Arc<Connections>,
    stopping: watch::Receiver<bool>,
    _slot: OwnedSemaphorePermit,
}

impl Accepted {
    /// Returns the slot of the connection once its client has sent something; `None` if it has to close before.
    async fn place(
        mut self,
        stream: &TcpStream,
        silence: Duration,
        is_write: fn(u8) -> bool,
    ) -> Option<Connection> {
        let end = Arc::<Notify>::default();
        let position = self.all.accepted.wait(&end);
        // Unlike `readable`, this completes only with data, or when the client has disconnected.
        let arrival = async || {
            let mut first = [0];
            stream.peek(&mut first).await.ok().filter(|length| *length > 0).map(|_| first[0])
        };
        let asked_to_close = async {
            tokio::select! {
                () = end.notified() => {}
                () = stopped(&mut self.stopping) => {}
            }
        };
        let first = tokio::select! {
            biased;
            first = arrival() => first,
            // Its data may have arrived without being noticed yet.
            () = asked_to_close => timeout(UNREAD, arrival()).await.ok().flatten(),
            () = sleep(silence) => None,
        };
        self.all.accepted.leave(position);
        // Its request may be complete, so it waits for a slot also at a stop. Slots are then released soon.
        Some(self.all.place(is_write(first?)).await)
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
    /// Its slot among the writes.
    write: Option<OwnedSemaphorePermit>,
    /// Whether it was asked to close.
    is_asked: bool,
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
        let mut turn = self.turn.lock();
        (turn.promise, turn.write) = (None, None);
    }

    /// Returns whether the next response may promise to keep the connection for another request. It may not after
    /// the connection was asked to close, or while the server stops.
    pub fn keep(&self) -> bool {
        let mut turn = self.turn.lock();
        if turn.is_asked || *self.stopping.borrow() {
            return false;
        }
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
        let mut turn = self.turn.lock();
        (turn.open, turn.is_asked) = (Open::Untaken, true);
        drop(turn);
        self.end.notify_one();
    }

    /// Removes the connection from the waiting ones.
    fn leave(&self) {
        let mut turn = self.turn.lock();
        if let Some(position) = turn.waits.take() {
            turn.is_asked |= !self.all.served.leave(position);
        }
    }

    /// The connection waits for a request from now on.
    pub fn wait(&self) {
        self.leave();
        let mut turn = self.turn.lock();
        if turn.promise.is_none() && !turn.is_asked {
            turn.waits = Some(self.all.served.wait(&self.end));
        }
        if turn.open != Open::Fresh {
            turn.open = Open::Answered;
            turn.write = None;
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
        stopped(&mut self.stopping.clone()).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
