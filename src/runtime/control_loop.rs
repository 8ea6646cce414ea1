//! A control loop as the manager runs it: the stores that it waits for, when its workers run, and how it
//! stops.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{BoxFuture, FutureExt, select_all};
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::watch;
use tracing::{info, warn};

use super::controller::{self, ReconcileKey};
use super::events::{EventNote, Recorder};
use super::queue::{Priority, Queue};
use super::readiness::{LoopState, Readiness};
use super::store::StoreState;
use super::store_set::{DeclaredStores, Need};

/// A loop, ready to run.
pub struct ControlLoop {
    name: &'static str,
    queue: Arc<Queue>,
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
        Self {
            name: R::NAME,
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
        self.wait(|_, state| state != StoreState::Syncing).await;
    }

    /// Runs the workers until [`ControlLoop::stop`] is called. They start once all required kinds are served
    /// and their stores are synced.
    pub async fn run(&self) {
        self.leading.send_replace(true);
        let served = self.wait(|required, state| match state {
            StoreState::Syncing => false,
            StoreState::Missing => !required,
            StoreState::Synced => true,
        });
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            () = served => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        self.working.store(true, Ordering::SeqCst);
        info!(controller = self.name, "working");
        (self.workers)().await;
        self.working.store(false, Ordering::SeqCst);
    }

    /// Waits until `enough(is_required, state)` is true of each store.
    async fn wait(&self, enough: impl Fn(bool, StoreState) -> bool) {
        for need in &self.needs {
            // An error means that the store is gone, but stores live as long as the process.
            let _ = need.state.clone().wait_for(|state| enough(need.is_required, *state)).await;
        }
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
    #[must_use]
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
        let mut needs: Vec<(String, bool, watch::Receiver<StoreState>)> =
            self.needs.iter().map(|need| (need.crd.clone(), need.is_required, need.state.clone())).collect();
        let mut leading = self.leading.subscribe();
        let (name, appeared) = (self.name, Arc::clone(&self.appeared));
        readiness.set(name, LoopState::Starting);
        async move {
            let mut missing_before = 0;
            loop {
                let states: Vec<_> = needs
                    .iter_mut()
                    .map(|(crd, required, state)| (crd.as_str(), *required, *state.borrow_and_update()))
                    .collect();
                let state = assess(&states, *leading.borrow_and_update());
                let missing = states.iter().filter(|(_, _, state)| *state == StoreState::Missing).count();
                if missing < missing_before {
                    appeared();
                }
                missing_before = missing;
                if readiness.set(name, state.clone()) {
                    announce(name, &state, &events, &subject).await;
                }
                let changes = needs.iter_mut().map(|(_, _, state)| state.changed().boxed());
                let first = select_all(changes.chain([leading.changed().boxed()])).await.0;
                if first.is_err() {
                    return;
                }
            }
        }
    }
}

/// The state of a loop. `states` has the CRD of each store, whether it is required, and the state of the store.
fn assess(states: &[(&str, bool, StoreState)], leading: bool) -> LoopState {
    let crds = |required: bool| -> Vec<String> {
        let missing = |(_, needed, state): &&(&str, bool, StoreState)| {
            *needed == required && *state == StoreState::Missing
        };
        states.iter().filter(missing).map(|(crd, _, _)| (*crd).to_owned()).collect()
    };
    let required = crds(true);
    if !required.is_empty() {
        return LoopState::WaitingForCrd(required);
    }
    if states.iter().any(|(_, _, state)| *state == StoreState::Syncing) {
        return LoopState::Starting;
    }
    if !leading {
        return LoopState::Standby;
    }
    let optional = crds(false);
    if optional.is_empty() { LoopState::Ready } else { LoopState::Degraded(optional) }
}

/// Logs the state of a loop, and publishes an event about `subject` if CRDs are missing.
async fn announce(name: &str, state: &LoopState, events: &Recorder, subject: &ObjectReference) {
    let crds = match state {
        LoopState::WaitingForCrd(crds) | LoopState::Degraded(crds) => crds.join(", "),
        state => {
            info!(controller = name, ?state, "state");
            return;
        }
    };
    let message = format!(
        "The {name} loop misses CRDs that are not installed: {crds}; it uses them as soon as they are"
    );
    warn!(controller = name, crds, "CRDs are not installed");
    events.publish_about(subject, &EventNote::warning("WaitingForCRD", message)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_waits_for_what_it_requires_and_works_without_the_rest() {
        use StoreState::{Missing, Synced, Syncing};
        let state = |a, b, leading| assess(&[("a.x", true, a), ("b.y", false, b)], leading);
        assert_eq!(state(Syncing, Synced, false), LoopState::Starting);
        assert_eq!(state(Missing, Syncing, false), LoopState::WaitingForCrd(vec!["a.x".into()]));
        assert_eq!(state(Synced, Syncing, true), LoopState::Starting);
        assert_eq!(state(Synced, Missing, false), LoopState::Standby);
        assert_eq!(state(Synced, Missing, true), LoopState::Degraded(vec!["b.y".into()]));
        assert_eq!(state(Synced, Synced, true), LoopState::Ready);
    }
}
