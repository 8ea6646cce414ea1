//! The workers of a control loop: they take objects from its queue and reconcile them.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument, debug, error, info, info_span, warn};

use super::key::ObjectKey;
use super::metrics::{ERROR, LoopMetrics, REQUEUE_AFTER, SUCCESS};
use super::queue::{Action, Queue};

/// The reason why a reconcile failed. It is retried with backoff.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReconcileError {
    /// The error message.
    pub message: String,
    /// The minimum time before the retry, as requested by the API server.
    pub retry_after: Duration,
}

impl From<String> for ReconcileError {
    fn from(message: String) -> Self {
        Self { message, retry_after: Duration::ZERO }
    }
}

/// Reconciles the object with a key. The workers call it.
pub trait ReconcileKey: Send + Sync + 'static {
    /// The name of the loop, in metrics and logs.
    const NAME: &'static str;

    /// Prepares for the first reconcile after becoming the leader. Completes when everything is ready.
    fn prepare(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Reconciles the object with this key, which may no longer exist.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<Action, ReconcileError>> + Send;
}

/// Runs `concurrency` workers until the queue is closed, and returns when the last reconcile has finished. If the
/// future is dropped, running reconciles are aborted.
pub async fn run<R: ReconcileKey>(reconciler: Arc<R>, queue: Arc<Queue>, concurrency: usize) {
    let metrics = LoopMetrics::new(R::NAME, concurrency);
    // Each worker is a task, so an event for one worker does not poll the others.
    let mut workers = JoinSet::new();
    for _ in 0..concurrency.max(1) {
        workers.spawn(work(Arc::clone(&reconciler), Arc::clone(&queue), metrics.clone()));
    }
    while workers.join_next().await.is_some() {}
}

/// A worker: reconciles one object after the other.
async fn work<R: ReconcileKey>(reconciler: Arc<R>, queue: Arc<Queue>, metrics: LoopMetrics) {
    while let Some(job) = queue.next().await {
        let span = info_span!("reconcile", controller = R::NAME, object = %job.key);
        metrics.begin();
        let begin = Instant::now();
        // A panic in the reconcile of one object must not stop the others.
        let result = AssertUnwindSafe(reconciler.reconcile(&job.key))
            .catch_unwind()
            .instrument(span.clone())
            .await
            .unwrap_or_else(|_| {
                metrics.panics.increment(1);
                Err("the reconcile panicked; this is a defect of the daemon".to_owned().into())
            });
        let took = begin.elapsed();
        span.in_scope(|| log(&result, job.failures, took));
        metrics.end(
            match &result {
                Err(_) | Ok(Action::Retry(_)) => ERROR,
                Ok(Action::RequeueAfter(_)) => REQUEUE_AFTER,
                Ok(Action::AwaitChange | Action::Forget) => SUCCESS,
            },
            took,
        );
        queue.done(job, result.unwrap_or_else(|error| Action::Retry(error.retry_after)));
    }
}

fn log(result: &Result<Action, ReconcileError>, failures: u32, took: Duration) {
    match result {
        Err(error) if failures >= 3 => {
            error!(failures = failures + 1, %error, "the reconcile failed; retrying later");
        }
        Err(error) if failures > 0 => {
            warn!(failures = failures + 1, %error, "the reconcile failed; retrying shortly");
        }
        // Conflicts and similar errors usually disappear on the second attempt.
        Err(error) => info!(%error, "the reconcile failed; retrying in a moment"),
        Ok(action) => debug!(?took, ?action, "reconciled"),
    }
}
