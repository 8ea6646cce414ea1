//! Loops that work in every replica, independent of leader election: files, packet capture, servers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::readiness::{self, LoopState, Need, Readiness};

/// The time limit for replica loops to end after the process is asked to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A loop that works in every replica. It writes nothing to the cluster that a second replica could contradict.
pub trait ReplicaLoop: Sized + Send + 'static {
    /// The name of the loop: its key in the configuration, its name in readiness and logs.
    const NAME: &'static str;

    /// Works until `stop` asks it to end; it must not end earlier. It is called after the stores of the loop are
    /// synced, and reports to `health` whether it works.
    fn run(self, health: Health, stop: Stop) -> impl Future<Output = ()> + Send;
}

/// The last report of a part of a loop: none yet, that it works, or why it does not.
type Said = Option<Result<(), String>>;

/// Reports the health of a loop to the readiness of the replica. Until the first report, the loop is starting.
#[derive(Clone)]
pub struct Health {
    name: &'static str,
    readiness: Readiness,
    /// The last report of each part of the loop.
    said: Arc<Mutex<Vec<Said>>>,
    part: usize,
}

impl Health {
    fn new(name: &'static str, readiness: Readiness) -> Self {
        Self { name, readiness, said: Arc::new(Mutex::new(vec![None])), part: 0 }
    }

    /// Divides the health between two independent parts of the loop. The loop works once both parts do.
    pub fn divided(self) -> [Self; 2] {
        *self.said.lock() = vec![None, None];
        [0, 1].map(|part| Self { part, ..self.clone() })
    }

    /// Reports that the loop works.
    pub fn ready(&self) {
        self.say(Ok(()));
    }

    /// Reports that the loop does not work; `why` is a sentence that says what is wrong and how to fix it.
    pub fn failing(&self, why: impl Into<String>) {
        self.say(Err(why.into()));
    }

    fn say(&self, result: Result<(), String>) {
        let mut said = self.said.lock();
        if let Some(own) = said.get_mut(self.part) {
            *own = Some(result);
        }
        let failures = said.iter().flatten().filter_map(|result| Some(result.as_ref().err()?.as_str()));
        let why = failures.collect::<Vec<_>>().join("; ");
        if !why.is_empty() {
            if self.readiness.set(self.name, LoopState::Failing(why.clone())) {
                warn!(controller = self.name, "{why}");
            }
        } else if said.iter().all(Option::is_some) && self.readiness.set(self.name, LoopState::Ready) {
            info!(controller = self.name, "working");
        }
    }
}

/// The request to stop. Clones share it.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Completes when the process is asked to stop.
    pub async fn asked(&self) {
        // An error means that the process ends, too.
        let _ = self.0.clone().wait_for(|asked| *asked).await;
    }

    /// Whether the process was asked to stop.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }
}

/// A replica loop with its type erased.
pub struct Replica {
    name: &'static str,
    needs: Vec<Need>,
    run: Box<dyn FnOnce(Health, Stop) -> BoxFuture<'static, ()> + Send>,
}

impl Replica {
    /// Wraps a loop that begins once its needs are met.
    pub fn new<R: ReplicaLoop>(built: R, needs: Vec<Need>) -> Self {
        let run = |health, stop| async move { built.run(health, stop).await }.boxed();
        Self { name: R::NAME, needs, run: Box::new(run) }
    }

    /// Waits for the stores of the loop, then runs it until `stop`. Readiness names the missing CRDs.
    async fn work(self, readiness: Readiness, stop: Stop) {
        let Self { name, needs, run } = self;
        let ready = async {
            loop {
                readiness::settled(&needs).await;
                let missing = readiness::missing(&needs);
                if missing.is_empty() {
                    return;
                }
                readiness.set(name, LoopState::WaitingForCrd(missing));
                readiness::served(&needs).await;
            }
        };
        tokio::select! {
            () = ready => {}
            () = stop.asked() => return,
        }
        run(Health::new(name, readiness), stop).await;
    }
}

/// The running replica loops of the process.
pub struct Replicas {
    running: JoinSet<&'static str>,
    stop: watch::Sender<bool>,
}

impl Replicas {
    /// Starts the loops.
    pub fn start(replicas: Vec<Replica>, readiness: &Readiness) -> Self {
        let stop = watch::Sender::new(false);
        let mut running = JoinSet::new();
        for replica in replicas {
            let (name, readiness, stop) = (replica.name, readiness.clone(), Stop(stop.subscribe()));
            readiness.set(name, LoopState::Starting(Vec::new()));
            running.spawn(async move {
                replica.work(readiness, stop).await;
                name
            });
        }
        Self { running, stop }
    }

    /// Completes with the name of a loop that has ended although no loop may; the name is empty if the loop panicked.
    /// Never completes while all loops run, or without loops.
    pub async fn ended(&mut self) -> &'static str {
        match self.running.join_next().await {
            Some(ended) => ended.unwrap_or_default(),
            None => std::future::pending().await,
        }
    }

    /// Asks all loops to end, and waits for them, for at most ten seconds.
    pub async fn finish(mut self) {
        self.stop.send_replace(true);
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_LIMIT, all).await.is_err() {
            warn!("some loops of this replica did not end in time");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::NamespaceKind;
    use crate::runtime::store::{AnyStore, Store};

    /// Creates a loop with these needs that is called `name`.
    fn replica<F: Future<Output = ()> + Send + 'static>(
        name: &'static str,
        needs: Vec<Need>,
        run: impl FnOnce(Health, Stop) -> F + Send + 'static,
    ) -> Replica {
        Replica { name, needs, run: Box::new(|health, stop| run(health, stop).boxed()) }
    }

    /// Returns the readiness of a loop, once everything is idle.
    async fn said(readiness: &Readiness, name: &str) -> String {
        tokio::time::sleep(Duration::from_secs(1)).await;
        readiness.report_of(name).expect("known").1
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_begins_when_its_stores_are_synced_and_reports_its_health() {
        let store = Store::<NamespaceKind>::new(true);
        let (breaks, mut is_broken) = watch::channel(false);
        let run = |health: Health, stop: Stop| async move {
            health.ready();
            is_broken.changed().await.expect("the test continues");
            health.failing("no such thing");
            stop.asked().await;
        };
        let readiness = Readiness::default();
        let mut replicas =
            Replicas::start(vec![replica("test", vec![Need::of(&store, true)], run)], &readiness);
        assert_eq!(said(&readiness, "test").await, "[-] test: starting\n");
        store.mark_missing();
        let missing = "[-] test: waiting for CRDs that are not installed: namespaces\n";
        assert_eq!(said(&readiness, "test").await, missing);
        store.begin_list();
        store.end_list();
        assert_eq!(said(&readiness, "test").await, "[+] test: ready\n");
        breaks.send_replace(true);
        assert_eq!(said(&readiness, "test").await, "[!] test: no such thing\n");
        assert!(tokio::time::timeout(STOP_LIMIT, replicas.ended()).await.is_err(), "it has not ended");
        let begin = tokio::time::Instant::now();
        replicas.finish().await;
        assert!(begin.elapsed() < STOP_LIMIT, "it ends when it is asked to");
    }

    #[test]
    fn a_loop_of_two_parts_works_once_both_do() {
        let readiness = Readiness::default();
        let [one, other] = Health::new("test", readiness.clone()).divided();
        let said = || readiness.report_of("test").map(|report| report.1);
        one.ready();
        assert_eq!(said(), None, "the other part has not reported yet");
        other.failing("no address");
        one.failing("no answer");
        assert_eq!(said().as_deref(), Some("[!] test: no answer; no address\n"));
        one.ready();
        assert_eq!(said().as_deref(), Some("[!] test: no address\n"));
        other.ready();
        assert_eq!(said().as_deref(), Some("[+] test: ready\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_ends_unexpectedly_is_named() {
        let ends = |_, stop: Stop| async move { assert!(!stop.is_asked()) };
        let goes_on = |_, stop: Stop| async move { stop.asked().await };
        let loops = vec![replica("first", Vec::new(), goes_on), replica("second", Vec::new(), ends)];
        assert_eq!(Replicas::start(loops, &Readiness::default()).ended().await, "second");
        let none = Replicas::start(Vec::new(), &Readiness::default()).ended().now_or_never();
        assert_eq!(none, None, "there is no loop to end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_end_is_abandoned_after_ten_seconds() {
        let (told, mut asked) = watch::channel(None);
        let stays = |_, stop: Stop| async move {
            told.send_replace(Some(stop.is_asked()));
            stop.asked().await;
            told.send_replace(Some(stop.is_asked()));
            std::future::pending::<()>().await;
        };
        let store = Store::<NamespaceKind>::new(true);
        let waits = |_, _| async { panic!("its store is not synced") };
        let loops =
            vec![replica("stays", Vec::new(), stays), replica("waits", vec![Need::of(&store, true)], waits)];
        let replicas = Replicas::start(loops, &Readiness::default());
        assert_eq!(*asked.wait_for(Option::is_some).await.expect("it begins"), Some(false));
        let begin = tokio::time::Instant::now();
        replicas.finish().await;
        assert_eq!((begin.elapsed(), *asked.borrow()), (STOP_LIMIT, Some(true)));
    }
}
