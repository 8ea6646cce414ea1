//! The limits of the WebSockets of pages, such as terminals, and their end when the replica stops.

use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;

use super::clients::{Allowance, Clients, Running};

/// The maximum number of open sockets of a replica.
const MOST: usize = 1_000;
/// The sockets of a session.
const SESSION: Allowance = Allowance { running: 10, rate: 2, burst: 20 };
/// The maximum number of sockets that are being refused at the same time.
const MOST_REFUSED: usize = 64;
/// The interval of the checks whether a session still exists.
const CHECK: Duration = Duration::from_secs(5);
const OPEN: &str = "dashboard_open_sockets";

/// The sockets of a replica.
pub struct Sockets {
    all: Arc<Semaphore>,
    refused: Arc<Semaphore>,
    sessions: Arc<Clients<String>>,
    /// Whether the replica stops. Each open socket has a receiver.
    stop: watch::Sender<bool>,
}

/// The place of an open socket, until it is dropped.
pub struct Place {
    _all: OwnedSemaphorePermit,
    _session: Running<String>,
    stop: watch::Receiver<bool>,
}

/// Why an open socket has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The replica stops.
    Replica,
    /// The session has ended.
    Session,
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MOST)),
            refused: Arc::new(Semaphore::new(MOST_REFUSED)),
            sessions: Clients::new(SESSION),
            stop: watch::Sender::new(false),
        }
    }
}

impl Sockets {
    /// Returns a place for a socket of a session; `None` above a limit.
    pub fn open(&self, session: &str) -> Option<Place> {
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let of_session = self.sessions.begin(&session.to_owned())?;
        gauge!(OPEN).increment(1);
        Some(Place { _all: all, _session: of_session, stop: self.stop.subscribe() })
    }

    /// Returns a place for a socket that only tells its page why it is refused; `None` above the limit.
    pub fn refuse(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.refused).try_acquire_owned().ok()
    }

    /// Ends all sockets, and completes when their tasks have ended.
    pub async fn close(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}

impl Place {
    /// Completes when the replica stops, or within five seconds after the session has ended.
    pub async fn over(&self, has_session_ended: impl Fn() -> bool) -> Over {
        let mut stop = self.stop.clone();
        let ended = async {
            while !has_session_ended() {
                sleep(CHECK).await;
            }
        };
        tokio::select! {
            // An error means that the replica has stopped.
            _ = stop.wait_for(|is_asked| *is_asked) => Over::Replica,
            () = ended => Over::Session,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        gauge!(OPEN).decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_has_ten_sockets_and_a_replica_a_thousand() {
        let sockets = Sockets::default();
        let mut of_one: Vec<Place> = (0..20).map_while(|_| sockets.open("one")).collect();
        assert_eq!(of_one.len(), 10);
        of_one.pop();
        assert!(sockets.open("one").is_some(), "one has ended");
        drop(of_one);
        let all: Vec<Place> =
            (0..2_000).map_while(|number| sockets.open(&format!("session {number}"))).collect();
        assert_eq!(all.len(), MOST);
        let refused: Vec<_> = (0..100).map_while(|_| sockets.refuse()).collect();
        assert_eq!(refused.len(), MOST_REFUSED, "apart from the open ones");
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_ends_with_its_session_within_five_seconds_and_with_its_replica_at_once() {
        let sockets = Sockets::default();
        let place = sockets.open("one").expect("free");
        let has_ended = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&has_ended);
        let begin = Instant::now();
        let ends = async {
            advance(Duration::from_secs(12)).await;
            has_ended.store(true, Ordering::Relaxed);
        };
        let (over, ()) = tokio::join!(place.over(move || asked.load(Ordering::Relaxed)), ends);
        assert_eq!(over, Over::Session);
        assert!(begin.elapsed() <= Duration::from_secs(17), "{:?}", begin.elapsed());
        let begin = Instant::now();
        let served = async {
            let over = place.over(|| false).await;
            drop(place);
            over
        };
        let (over, ()) = tokio::join!(served, sockets.close());
        assert_eq!((over, begin.elapsed()), (Over::Replica, Duration::ZERO));
        let late = sockets.open("one").expect("free");
        assert_eq!(late.over(|| false).await, Over::Replica, "it was opened after the stop");
    }
}
