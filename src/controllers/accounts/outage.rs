//! Whether Keycloak answers: the circuit breaker in front of it.
//!
//! The first request that is not answered opens it. As long as it is open, no account is worked on; one request at a time
//! finds out whether Keycloak answers again, first at once, then after pauses that grow up to [`LONGEST_PAUSE`]. Then
//! whatever has waited goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::gauge;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::clients::keycloak::KeycloakError;
use crate::runtime::readiness::Readiness;

/// The pause after the first request that was not answered.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two requests.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The metric: 1 while Keycloak answers, 0 while it does not.
const METRIC: &str = "keycloak_up";

/// Called when Keycloak answers again.
type Listener = Box<dyn Fn() + Send + Sync>;

/// Whether Keycloak answers. Clones share it.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Outage")]
pub struct Outage {
    /// Why it counts as not answering; `None` while it answers.
    reason: Arc<watch::Sender<Option<KeycloakError>>>,
    is_slow: Arc<AtomicBool>,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

impl Outage {
    /// Why nothing should be asked of Keycloak now; `None` while it answers.
    pub fn reason(&self) -> Option<KeycloakError> {
        self.reason.borrow().clone()
    }

    /// Keycloak has not answered.
    pub fn begin(&self, error: &KeycloakError) {
        self.reason.send_if_modified(|reason| {
            let is_first = reason.is_none();
            reason.get_or_insert_with(|| error.clone());
            is_first
        });
    }

    /// Whether it is worth while to wait a moment for an answer: false from the first one that took long until there is
    /// another one.
    pub fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::SeqCst)
    }

    /// Keycloak has answered, or has taken long.
    pub fn set_slow(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::SeqCst);
    }

    /// Calls `listener` whenever Keycloak answers again.
    pub fn on_end(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.listeners.lock().push(Box::new(listener));
    }

    /// Finds out by `ask`, which fails while Keycloak does not answer, when an outage ends. Never returns.
    pub async fn watch<A>(&self, ask: impl Fn() -> A, readiness: &Readiness)
    where
        A: Future<Output = Result<(), KeycloakError>>,
    {
        gauge!(METRIC).set(1.0);
        let mut reason = self.reason.subscribe();
        loop {
            // The sender lives as long as `self`.
            drop(reason.wait_for(Option::is_some).await);
            outlast(&ask, readiness).await;
            self.set_slow(false);
            self.reason.send_replace(None);
            for listener in self.listeners.lock().iter() {
                listener();
            }
        }
    }
}

/// Waits until `ask` succeeds. Nothing is reported if it does so at once: a single request has failed then.
async fn outlast<A>(ask: impl Fn() -> A, readiness: &Readiness)
where
    A: Future<Output = Result<(), KeycloakError>>,
{
    let (begin, mut pause) = (Instant::now(), FIRST_PAUSE);
    let mut is_reported = false;
    while let Err(error) = ask().await {
        if !is_reported {
            is_reported = true;
            warn!(%error, "Keycloak does not answer: accounts and roles wait, everything else goes on");
            gauge!(METRIC).set(0.0);
            readiness.set_notice("Keycloak", Some(format!("accounts and roles wait: {error}")));
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    if is_reported {
        let seconds = begin.elapsed().as_secs();
        info!(seconds, "Keycloak answers again: the accounts and roles that waited are worked on now");
        gauge!(METRIC).set(1.0);
        readiness.set_notice("Keycloak", None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_request_at_a_time_finds_out_when_it_answers_again() {
        let (outage, readiness) = (Outage::default(), Readiness::default());
        let (asked, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&ends);
        outage.on_end(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let begin = Instant::now();
        let ask = || async {
            asked.lock().push(begin.elapsed().as_secs());
            tokio::time::sleep(Duration::from_millis(1)).await;
            if asked.lock().len() <= 7 { Err(KeycloakError::MailNotSent) } else { Ok(()) }
        };
        let watched = outage.watch(ask, &readiness);
        let tested = async {
            for _ in 0..10 {
                outage.begin(&KeycloakError::MailNotSent);
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert!(
                outage.reason().is_some()
                    && readiness.report().1.contains("[!] Keycloak: accounts and roles wait")
            );
            while outage.reason().is_some() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! { () = watched => {}, () = tested => {} }
        assert_eq!(*asked.lock(), [0, 1, 3, 7, 12, 17, 22, 27]);
        assert_eq!(ends.load(Ordering::SeqCst), 1);
        assert!(!readiness.report().1.contains("Keycloak"));
    }
}
