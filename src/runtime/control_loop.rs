//! A control loop as the manager runs it: the stores that it waits for, when its workers run, and how it
//! stops.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::controller::{self, ReconcileKey};
use super::events::{EventNote, Recorder};
use super::queue::{Priority, Queue};
use super::readiness::{self, LoopState, Need, Readiness};
use super::store_set::DeclaredStores;

/// A loop, ready to run.
pub struct ControlLoop {
    name: &'static str,
    queue: Arc<Queue>,
    preparation: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
    workers: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
    needs: Vec<Need>,
    leading: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
    /// Queues all objects. Called when a kind that was missing is served.
    appeared: Arc<dyn Fn() + Send + Sync>,
    working: AtomicBool,
}

impl ControlLoop {
    /// The control loop of a reconciler that reads these stores, with up to `concurrency` reconciles at
    /// once.
    pub fn new<R: ReconcileKey>(reconciler: R, stores: DeclaredStores, concurrency: usize) -> Self {
        let DeclaredStores { queue, needs, keys, .. } = stores;
        let (reconciler, queued, woken) = (Arc::new(reconciler), Arc::clone(&queue), Arc::clone(&queue));
        let prepared = Arc::clone(&reconciler);
        Self {
            name: R::NAME,
            preparation: Box::new(move || {
                let reconciler = Arc::clone(&prepared);
                async move { reconciler.prepare().await }.boxed()
            }),
            workers: Box::new(move || {
                controller::run(Arc::clone(&reconciler), Arc::clone(&queued), concurrency).boxed()
            }),
            queue,
            needs,
            leading: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
            appeared: Arc::new(move || {
                for key in keys() {
                    woken.add(key, Priority::Background);
                }
            }),
            working: AtomicBool::new(false),
        }
    }

    /// Waits until each store of the loop is synced, or its kind is known not to be served.
    pub async fn settled(&self) {
        readiness::settled(&self.needs).await;
    }

    /// Runs the workers until [`ControlLoop::stop`] is called. They start once all required kinds are served,
    /// their stores are synced, and the loop is prepared ([`ReconcileKey::prepare`]).
    pub async fn run(&self) {
        self.leading.send_replace(true);
        let mut stopping = self.stopping.subscribe();
        let prepared = async {
            readiness::served(&self.needs).await;
            (self.preparation)().await;
        };
        tokio::select! {
            () = prepared => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        self.queue.demote();
        self.working.store(true, Ordering::SeqCst);
        info!(controller = self.name, "working");
        (self.workers)().await;
        self.working.store(false, Ordering::SeqCst);
    }

    /// Stops the loop: no new reconcile begins, those under way end normally.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
        self.queue.close();
    }

    /// The queue of the loop.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Whether the workers run.
    pub fn is_working(&self) -> bool {
        self.working.load(Ordering::SeqCst)
    }

    /// Updates the readiness of the loop whenever it changes, and publishes an event about `subject` when
    /// CRDs are missing. Never returns.
    pub fn track(
        &self,
        readiness: Readiness,
        events: Recorder,
        subject: ObjectReference,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (name, appeared) = (self.name, Arc::clone(&self.appeared));
        let (needs, leading) = (self.needs.clone(), (self.leading.subscribe(), LoopState::Standby));
        readiness.set(name, LoopState::Starting(needs.iter().map(|need| need.crd.clone()).collect()));
        readiness.track(
            name,
            needs,
            leading,
            move || appeared(),
            async move |state| {
                announce(name, state, &events, &subject).await;
            },
        )
    }
}

/// Logs the state of a loop, and publishes an event about `subject` if CRDs are missing.
async fn announce(name: &str, state: &LoopState, events: &Recorder, subject: &ObjectReference) {
    let crds = match state {
        LoopState::WaitingForCrd(crds) | LoopState::Degraded(crds) => crds.join(", "),
        // Once for each kind that it waits for: `/readyz` names those that are left.
        LoopState::Starting(kinds) => {
            debug!(controller = name, ?kinds, "starting");
            return;
        }
        state => {
            info!(controller = name, "the loop is {}", state.sentence());
            return;
        }
    };
    let message = format!(
        "The {name} loop misses CRDs that are not installed: {crds}; it uses them as soon as they are"
    );
    warn!(controller = name, crds, "CRDs are not installed");
    events.publish_about(subject, &EventNote::warning("WaitingForCRD", message)).await;
}
