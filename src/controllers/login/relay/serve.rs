//! The connections of gateways. Each has one request, so that no part of a request can be taken for another one. It ends with
//! its response, or with the `WebSocket` that follows; before, if the right of the peer ends.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, info};

use super::activity::{Activity, Watched};
use super::users::Entered;
use super::{BUFFER, Relay};
use crate::controllers::login::door::Guest;
use crate::controllers::login::machines::Entry;
use crate::controllers::shared::connections::Recorded;
use crate::runtime::clock;
use crate::runtime::connections::{Connection, accept};

/// The maximum number of connections in a replica, with open `WebSockets`. Further ones wait.
const MOST: usize = 1_024;
/// The time limit of the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// The time between two checks of the right of a peer.
const CHECK: Duration = Duration::from_secs(5);
/// The time without a transferred byte after which a connection is closed: as through an Ingress to a machine.
const IDLE: Duration = Duration::from_hours(1);
/// The time that the other direction of a `WebSocket` has after one has ended, and a response after the stop.
const LAST: Duration = Duration::from_secs(3);

/// The request of a connection, and everything that belongs to it.
#[derive(Default)]
pub struct Exchange {
    activity: Activity,
    inside: Mutex<Option<Inside>>,
    /// The two sides of a `WebSocket`, until it begins.
    sides: Mutex<Option<(OnUpgrade, OnUpgrade)>>,
    /// The connection to the machine. It ends when this is dropped.
    tasks: Mutex<JoinSet<()>>,
}

/// A request that passed.
struct Inside {
    guest: Guest,
    _entered: Entered,
    desktop: Option<Recorded>,
}

impl Exchange {
    /// Returns the activity of both connections.
    pub fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// A peer's request passes.
    pub fn enter(&self, guest: Guest, entered: Entered) {
        *self.inside.lock() = Some(Inside { guest, _entered: entered, desktop: None });
    }

    /// A `WebSocket` begins after the response.
    pub fn open(&self, sides: (OnUpgrade, OnUpgrade), desktop: Recorded) {
        *self.sides.lock() = Some(sides);
        if let Some(inside) = &mut *self.inside.lock() {
            inside.desktop = Some(desktop);
        }
    }

    /// Drives the connection to the machine.
    pub fn drive(&self, connection: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().spawn(connection);
    }

    fn guest(&self) -> Option<Guest> {
        self.inside.lock().as_ref().map(|inside| inside.guest.clone())
    }

    fn has_desktop(&self) -> bool {
        self.inside.lock().as_ref().is_some_and(|inside| inside.desktop.is_some())
    }

    /// Transfers the bytes of a `WebSocket` until it ends.
    async fn transfer(&self) {
        let sides = self.sides.lock().take();
        let Some((browser, machine)) = sides else { return };
        match try_join(browser, machine).await {
            Ok((browser, machine)) => both(TokioIo::new(browser), TokioIo::new(machine)).await,
            Err(error) => debug!(%error, "a desktop of a peer did not begin"),
        }
    }
}

/// Transfers bytes in both directions. The end of one direction soon ends the other one.
async fn both(browser: impl AsyncRead + AsyncWrite, machine: impl AsyncRead + AsyncWrite) {
    let (mut from_browser, mut to_browser) = split(browser);
    let (mut from_machine, mut to_machine) = split(machine);
    // An error means that a side is gone.
    let input = async {
        let _ = copy(&mut from_browser, &mut to_machine).await;
        let _ = to_machine.shutdown().await;
    };
    let output = async {
        let _ = copy(&mut from_machine, &mut to_browser).await;
        let _ = to_browser.shutdown().await;
    };
    let mut input = pin!(input);
    let mut output = pin!(output);
    tokio::select! {
        () = &mut input => drop(timeout(LAST, output).await),
        () = &mut output => drop(timeout(LAST, input).await),
    }
}

impl Relay {
    /// Serves until `stop` completes.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let serve = move |stream, _: SocketAddr, place| Arc::clone(&self).connection(stream, place);
        accept(listener, MOST, HEAD, |_| false, stop, serve).await;
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, place: Connection) {
        if let Err(error) = stream.set_nodelay(true) {
            return debug!(%error, "a connection could not be prepared");
        }
        // It is never closed for another one.
        place.serve();
        let exchange = Arc::new(Exchange::default());
        let (relay, of_request) = (Arc::clone(&self), Arc::clone(&exchange));
        let service = service_fn(move |request| {
            let (relay, exchange) = (Arc::clone(&relay), Arc::clone(&of_request));
            async move { Ok::<_, Infallible>(relay.answer(request, &exchange).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .max_buf_size(BUFFER)
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(Watched::new(stream, exchange.activity())), service)
            .with_upgrades();
        let whole = async {
            if let Err(error) = served.await {
                debug!(%error, "a connection of a peer ended early");
            }
            exchange.transfer().await;
        };
        let why = tokio::select! {
            () = Box::pin(whole) => "one side has ended it",
            why = self.over(&exchange) => why,
            () = stopped(&exchange, &place) => "the replica stops",
        };
        if let Some(guest) = exchange.guest().filter(|_| exchange.has_desktop()) {
            info!(user = guest.pass.user, why, "closed a desktop of a peer");
        }
    }

    /// Completes with the reason when a connection has to end.
    async fn over(&self, exchange: &Exchange) -> &'static str {
        let mut tick = interval(CHECK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if exchange.activity.idle() >= IDLE {
                return "nothing was transferred for an hour";
            }
            if exchange.guest().is_some_and(|guest| !self.may_stay(&guest)) {
                return "the right of the peer has ended";
            }
        }
    }

    fn may_stay(&self, Guest { label, pass }: &Guest) -> bool {
        let now = clock::now();
        let entry = self.door.machines.entry_of_peer(pass, label, now);
        now.as_second() < pass.until && entry == Entry::Allowed
    }
}

/// Completes when the server stops. A response may still end.
async fn stopped(exchange: &Exchange, place: &Connection) {
    place.ended().await;
    if !exchange.has_desktop() {
        sleep(LAST).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_web_socket_ends_soon_after_one_side() {
        let (browser, mut of_browser) = duplex(16);
        let (machine, mut of_machine) = duplex(16);
        let relayed = tokio::spawn(both(browser, machine));
        of_browser.write_all(b"input").await.expect("written");
        let mut input = [0; 5];
        of_machine.read_exact(&mut input).await.expect("read");
        of_machine.write_all(b"output").await.expect("written");
        let mut output = [0; 6];
        of_browser.read_exact(&mut output).await.expect("read");
        assert_eq!((&input, &output), (b"input", b"output"));
        let begin = Instant::now();
        drop(of_browser);
        relayed.await.expect("no panic");
        assert!(begin.elapsed() < 2 * LAST, "a machine that stays does not keep it");
        let mut rest = Vec::new();
        of_machine.read_to_end(&mut rest).await.expect("the end");
        assert!(rest.is_empty());
    }
}
