//! Runs a loop: workers take objects from its queue and pass them to it.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument, debug, error, info, info_span, warn};

use super::key::ObjectKey;
use super::metrics::{LoopMetrics, PassResult};
use super::queue::{Action, Queue};

/// The end of one pass over one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// When the object is wanted next.
    pub next: Action,
    /// What went wrong, for the log.
    pub error: Option<String>,
}

impl Pass {
    /// A pass that succeeded.
    #[must_use]
    pub fn done(next: Action) -> Self {
        Self { next, error: None }
    }

    /// A pass that failed and is retried with backoff.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { next: Action::Retry, error: Some(error.into()) }
    }
}

/// A control loop: brings one object to where it should be.
pub trait Reconciler: Send + Sync + 'static {
    /// The name of the loop, in metrics and logs.
    const NAME: &'static str;

    /// One pass over the object of that key, which may be gone.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Pass> + Send;
}

/// What wakes a loop: the stores that it reads.
pub trait Source: Send + Sync + 'static {
    /// Lets `queue` know of every change that concerns an object of the loop.
    fn subscribe(self: &Arc<Self>, queue: &Arc<Queue>);

    /// Asks for all objects of the loop, for example because a kind that was missing is served.
    fn enqueue_all(&self, queue: &Queue);
}

/// Runs `concurrency` workers until the queue is closed, and returns when the last pass has ended.
/// Dropped before, it ends the passes where they are.
pub async fn run<R: Reconciler>(reconciler: Arc<R>, queue: Arc<Queue>, concurrency: usize) {
    let metrics = LoopMetrics::new(R::NAME, concurrency);
    // A task each: what wakes one worker does not poll the others.
    let mut workers = JoinSet::new();
    for _ in 0..concurrency.max(1) {
        workers.spawn(work(Arc::clone(&reconciler), Arc::clone(&queue), metrics.clone()));
    }
    while workers.join_next().await.is_some() {}
}

/// A worker: one pass after the other.
async fn work<R: Reconciler>(reconciler: Arc<R>, queue: Arc<Queue>, metrics: LoopMetrics) {
    while let Some(job) = queue.next().await {
        let span = info_span!("reconcile", controller = R::NAME, object = %job.key);
        metrics.begin();
        let begin = Instant::now();
        // A defect that shows with one object must not stop the work on all others.
        let pass = AssertUnwindSafe(reconciler.reconcile(&job.key))
            .catch_unwind()
            .instrument(span.clone())
            .await
            .unwrap_or_else(|_| {
                metrics.panicked();
                Pass::failed("the pass panicked; this is a defect of the daemon")
            });
        let took = begin.elapsed();
        span.in_scope(|| log(&pass, job.failures, took));
        metrics.end(
            match (&pass.error, pass.next) {
                (Some(_), _) | (None, Action::Retry) => PassResult::Error,
                (None, Action::RequeueAfter(_)) => PassResult::RequeueAfter,
                (None, Action::AwaitChange | Action::Forget) => PassResult::Success,
            },
            took,
        );
        queue.done(job, pass.next);
    }
}

fn log(pass: &Pass, failures: u32, took: Duration) {
    match &pass.error {
        Some(error) if failures >= 3 => {
            error!(failures = failures + 1, error, "the pass failed; it is tried again later");
        }
        Some(error) if failures > 0 => {
            warn!(failures = failures + 1, error, "the pass failed; it is tried again shortly");
        }
        // Conflicts and the like pass at the second try.
        Some(error) => info!(error, "the pass failed; it is tried again at once"),
        None => debug!(?took, next = ?pass.next, "done"),
    }
}
