//! The breaker: while the API server does not answer, requests of users fail at once. Only a probe decides that it does
//! not, so one slow request does not make the others fail.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use derive_more::From;
use http::Method;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::{Content, Credential, UserClient, request};
use crate::runtime::error::ApiError;

/// The time between two probes.
const PERIOD: Duration = Duration::from_secs(2);
/// The time in which a probe needs an answer.
const PROBE: Duration = Duration::from_secs(4);
/// The time between two attempts of a probe: a connection that breaks is no silence.
const AGAIN: Duration = Duration::from_millis(500);
/// A request that takes longer requires a probe.
const SLOW: Duration = Duration::from_secs(1);

/// The error of a write that was sent, and that the API server has not answered before it fell silent.
const UNCONFIRMED: &str = "the API server stopped answering";

/// Whether the API server answers. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Breaker(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_silent: watch::Sender<bool>,
    /// The time of the last answer to a request of a user.
    heard: Mutex<Option<Instant>>,
    /// Whether a request has waited for [`SLOW`] since the last probe.
    waits: AtomicBool,
}

/// What a request does. Reads change nothing, also if their answer is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Write,
}

impl Breaker {
    /// Returns the answer to a request.
    ///
    /// # Errors
    /// [`ApiError::Silent`] if the API server does not answer: the request was not sent, or has changed nothing.
    pub async fn pass<T>(
        &self,
        effect: Effect,
        request: impl Future<Output = Result<T, ApiError>> + Unpin,
    ) -> Result<T, ApiError> {
        let mut silence = self.silence();
        if silence.is_now() {
            return Err(ApiError::Silent);
        }
        tokio::select! {
            biased;
            answer = request => {
                if !answer.as_ref().is_err_and(ApiError::is_away) {
                    *self.0.heard.lock() = Some(Instant::now());
                }
                answer
            }
            () = self.falls_silent(&mut silence) => Err(match effect {
                Effect::Read => ApiError::Silent,
                Effect::Write => ApiError::transient(UNCONFIRMED),
            }),
        }
    }

    /// Completes when the API server does not answer. Until then, it requires probes.
    async fn falls_silent(&self, silence: &mut Silence) {
        while timeout(SLOW, silence.becomes(true)).await.is_err() {
            self.0.waits.store(true, Ordering::Relaxed);
        }
    }

    /// Sends probes while pages are open (`is_watched`), while requests are slow, and while the API server does not
    /// answer. Never returns.
    async fn watch<A>(&self, is_watched: impl Fn() -> bool, probe: impl Fn() -> A)
    where
        A: Future<Output = bool>,
    {
        loop {
            sleep(PERIOD).await;
            let waits = self.0.waits.swap(false, Ordering::Relaxed);
            if !waits && !is_watched() && !*self.0.is_silent.borrow() {
                continue;
            }
            let begin = Instant::now();
            let answered = async {
                while !probe().await {
                    sleep(AGAIN).await;
                }
            };
            let is_answered = timeout(PROBE, answered).await.is_ok();
            // An overloaded API server may answer others only.
            let is_heard = self.0.heard.lock().is_some_and(|heard| heard >= begin);
            self.set(!is_answered && !is_heard);
        }
    }

    fn silence(&self) -> Silence {
        self.0.is_silent.subscribe().into()
    }

    fn set(&self, is_silent: bool) {
        let has_changed =
            self.0.is_silent.send_if_modified(|was| std::mem::replace(was, is_silent) != is_silent);
        if has_changed && is_silent {
            warn!("the API server does not answer: pages show what is known, and forms change nothing");
        } else if has_changed {
            info!("the API server answers again");
        }
    }
}

/// Follows whether the API server does not answer.
#[derive(Clone, From)]
pub struct Silence(watch::Receiver<bool>);

impl Silence {
    /// Whether the API server does not answer now.
    pub fn is_now(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes when the API server does not answer (`true`), or answers (`false`).
    pub async fn becomes(&mut self, expected: bool) {
        if self.0.wait_for(|is_silent| *is_silent == expected).await.is_err() {
            // No one probes any more.
            pending::<()>().await;
        }
    }
}

impl UserClient {
    /// Returns whether the API server does not answer, as long as [`UserClient::watch_silence`] runs.
    pub fn silence(&self) -> Silence {
        self.breaker.silence()
    }

    /// Keeps [`UserClient::silence`] up to date while `is_watched`, or while requests need it. Never returns.
    pub async fn watch_silence(&self, is_watched: impl Fn() -> bool) {
        self.breaker.watch(is_watched, || self.is_alive()).await;
    }

    /// Whether the API server answers a request. It needs no right: a refusal is an answer. Unlike `/readyz`, `/livez`
    /// stays successful while an API server of several shuts down.
    async fn is_alive(&self) -> bool {
        let Ok(probe) = request(&Credential::of_account("", []), Method::GET, "/livez", Content::NONE) else {
            return false;
        };
        // Boxed, because the loop of the dashboard holds this future.
        let answer = Box::pin(self.prober.exchange(probe, PROBE)).await;
        answer.is_ok_and(|answered| !answered.code.is_server_error())
    }
}

#[cfg(test)]
mod tests;
