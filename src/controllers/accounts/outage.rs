//! The circuit breaker in front of Keycloak.
//!
//! The first request without an answer opens it, as do credentials that are missing or rejected: other requests would
//! fail, too. While it is open, no account is changed. One request at a time checks whether Keycloak is available
//! again: first immediately, then after pauses that grow up to [`LONGEST_PAUSE`]. Then all waiting work continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::gauge;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clients::keycloak::KeycloakError;
use crate::runtime::outages::{Outages, System};

/// The pause after the first request without an answer.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two requests.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The metric: 1 while Keycloak is available, 0 during an outage.
const METRIC: &str = "keycloak_up";

/// The answer of Keycloak to a request: a success or a rejection.
type Answered = Result<(), KeycloakError>;

/// Called when Keycloak is available again.
type Listener = Box<dyn Fn() + Send + Sync>;

/// The state of Keycloak: available, or in an outage. Clones share it.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Outage")]
pub struct Outage {
    /// The last error of the outage; `None` while Keycloak is available.
    reason: Arc<watch::Sender<Option<KeycloakError>>>,
    is_slow: Arc<AtomicBool>,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

impl Outage {
    /// The reason why no requests should be sent now; `None` while Keycloak is available.
    pub fn reason(&self) -> Option<KeycloakError> {
        self.reason.borrow().clone()
    }

    /// Starts an outage after a request without an answer.
    pub fn begin(&self, error: &KeycloakError) {
        self.reason.send_if_modified(|reason| {
            let is_first = reason.is_none();
            reason.get_or_insert_with(|| error.clone());
            is_first
        });
    }

    /// Whether responses are slow, so that waiting for one is not worthwhile. True from the first slow response until
    /// the next fast one.
    pub fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::SeqCst)
    }

    /// Records whether the last response was slow.
    pub fn set_slow(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::SeqCst);
    }

    /// Calls `listener` at the end of each outage.
    pub fn on_end(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.listeners.lock().push(Box::new(listener));
    }

    /// Detects the end of an outage with `ask`, which fails during the outage, and reports outages to
    /// `outages` with the URL of Keycloak. If `ask` returns the rejection of a request, work continues,
    /// because Keycloak answers. But the reported outage lasts until a request succeeds. Never returns.
    pub async fn watch<A>(&self, ask: impl Fn() -> A, (outages, url): (&Outages, &str))
    where
        A: Future<Output = Result<Answered, KeycloakError>>,
    {
        gauge!(METRIC).set(1.0);
        let mut reason = self.reason.subscribe();
        loop {
            // The sender lives as long as `self`.
            drop(reason.wait_for(Option::is_some).await);
            // If `ask` succeeds immediately, only a single request had failed, and nothing is reported.
            let (begin, mut pause) = (Instant::now(), FIRST_PAUSE);
            let answered = loop {
                let error = match ask().await {
                    Ok(answered) => break answered,
                    Err(error) => error,
                };
                gauge!(METRIC).set(0.0);
                outages.failed_since(System::Keycloak, url, &error, begin);
                self.reason.send_replace(Some(error));
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            };
            gauge!(METRIC).set(1.0);
            outages.record(System::Keycloak, url, &answered);
            self.set_slow(false);
            self.reason.send_replace(None);
            for listener in self.listeners.lock().iter() {
                listener();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_request_at_a_time_detects_the_end_of_an_outage() {
        let (outage, outages, url) = (Outage::default(), Outages::default(), "https://auth.example.com");
        let (asked, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&ends);
        outage.on_end(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let begin = Instant::now();
        let ask = || async {
            asked.lock().push(begin.elapsed().as_secs());
            tokio::time::sleep(Duration::from_millis(1)).await;
            if asked.lock().len() <= 7 { Err(KeycloakError::MailNotSent) } else { Ok(Ok(())) }
        };
        let watched = outage.watch(ask, (&outages, url));
        let tested = async {
            for _ in 0..10 {
                outage.begin(&KeycloakError::NotLeader);
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
            let line = "[!] Keycloak https://auth.example.com: failing for 3 s, accounts and roles wait: ";
            assert_eq!(outage.reason(), Some(KeycloakError::MailNotSent), "the last error");
            assert!(outages.lines().starts_with(line), "{}", outages.lines());
            while outage.reason().is_some() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! { () = watched => {}, () = tested => {} }
        assert_eq!(*asked.lock(), [0, 1, 3, 7, 12, 17, 22, 27]);
        assert_eq!(ends.load(Ordering::SeqCst), 1);
        assert_eq!(outages.lines(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_continues_work_but_does_not_end_the_reported_outage() {
        let (outage, outages, url) = (Outage::default(), Outages::default(), "https://auth.example.com");
        let asked = AtomicU32::new(0);
        let ask = || async {
            match asked.fetch_add(1, Ordering::SeqCst) {
                0 => Err(KeycloakError::NotLeader),
                1 => Ok(Err(KeycloakError::MailNotSent)),
                _ => Ok(Ok(())),
            }
        };
        let tested = async {
            for is_over in [false, true] {
                outage.begin(&KeycloakError::NotLeader);
                tokio::time::sleep(LONGEST_PAUSE).await;
                assert_eq!(outage.reason(), None);
                assert_eq!(outages.lines().is_empty(), is_over, "{}", outages.lines());
            }
        };
        tokio::select! { () = outage.watch(ask, (&outages, url)) => {}, () = tested => {} }
    }
}
