//! A control loop as the manager runs it: the stores that it waits for, when its workers run, and how it stops.

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
use super::store_set::{DeclaredStores, Keys};
use crate::api::reason;

/// A control loop, ready to run.
pub struct ControlLoop {
    name: &'static str,
    queue: Arc<Queue>,
    preparation: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
    workers: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
    needs: Vec<Need>,
    leading: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
    /// Lists the objects of the loop.
    keys: Arc<Keys>,
    working: AtomicBool,
}

impl ControlLoop {
    /// Creates the control loop of a reconciler that reads these stores, with up to `concurrency` concurrent
    /// reconciles.
    pub fn new<R: ReconcileKey>(reconciler: R, stores: DeclaredStores, concurrency: usize) -> Self {
        let DeclaredStores { queue, needs, keys, .. } = stores;
        let (reconciler, queued) = (Arc::new(reconciler), Arc::clone(&queue));
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
            keys: Arc::new(keys),
            working: AtomicBool::new(false),
        }
    }

    /// Waits until each store of the loop is synced, or its kind is found not to be served.
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

    /// Stops the loop: no new reconcile begins, and running ones finish normally.
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

    /// Updates the readiness of the loop whenever it changes, and publishes an event about `subject` when CRDs are
    /// missing. Never returns.
    pub fn track(
        &self,
        readiness: Readiness,
        events: Recorder,
        subject: ObjectReference,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (name, keys, queue) = (self.name, Arc::clone(&self.keys), Arc::clone(&self.queue));
        let waiting = |leads: &bool| (!leads).then_some(LoopState::Standby);
        let (needs, leading) = (self.needs.clone(), (self.leading.subscribe(), waiting));
        readiness.set(name, LoopState::Starting(needs.iter().map(|need| need.crd.clone()).collect()));
        readiness.track(
            name,
            needs,
            leading,
            // A kind that was missing is now served.
            move || keys().into_iter().for_each(|key| queue.add(key, Priority::Background)),
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
        // Called once for each kind that it waits for; `/readyz` names the remaining ones.
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
        "The {name} loop needs CRDs that are not installed: {crds}; it uses them once they are installed"
    );
    warn!(controller = name, crds, "CRDs are not installed");
    events.publish_about(subject, &EventNote::warning(reason::WAITING_FOR_CRD, message)).await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;
    use crate::kinds::NamespaceKind;
    use crate::runtime::ObjectKey;
    use crate::runtime::controller::ReconcileError;
    use crate::runtime::queue::Action;
    use crate::runtime::store::{AnyStore, StoreFactory};
    use crate::runtime::store_set::StoreSet;
    use crate::runtime::watch::Selection;

    /// Sends a message for each call.
    struct Telling(mpsc::UnboundedSender<String>);

    impl ReconcileKey for Telling {
        const NAME: &'static str = "telling";

        async fn prepare(&self) {
            self.0.send("prepared".to_owned()).expect("the receiver exists");
        }

        async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
            self.0.send(key.name.to_string()).expect("the receiver exists");
            Ok(Action::AwaitChange)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_works_from_the_end_of_the_first_lists_until_it_is_stopped() {
        let limit = Duration::from_mins(1);
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("telling", &mut factory);
        let namespaces = set.store::<NamespaceKind>(&Selection::ALL).objects(|_| true).get();
        let (tell, mut told) = mpsc::unbounded_channel();
        let control_loop = Arc::new(ControlLoop::new(Telling(tell), set.finish(), 2));
        let running = Arc::clone(&control_loop);
        let running = tokio::spawn(async move { running.run().await });
        namespaces.begin_list();
        let namespace = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "1"}});
        namespaces.list_object(serde_json::from_value(namespace).expect("a namespace"));
        timeout(limit, control_loop.settled()).await.expect_err("the first list has not ended");
        assert!(told.is_empty() && !control_loop.is_working());
        namespaces.end_list();
        timeout(limit, control_loop.settled()).await.expect("the first list has ended");
        for expected in ["prepared", "a"] {
            assert_eq!(timeout(limit, told.recv()).await, Ok(Some(expected.to_owned())));
        }
        assert!(control_loop.is_working());
        control_loop.stop();
        timeout(limit, running).await.expect("it ends").expect("no panic");
        assert!(!control_loop.is_working());
    }
}
