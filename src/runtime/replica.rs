//! Loops that work for the replica that they run in, elected or not: files, packet capture, servers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::readiness::{self, LoopState, Need, Readiness};

/// A replica loop has this long to end once the process is asked to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A loop that works in every replica. It writes nothing to the cluster that a second replica could contradict.
pub trait ReplicaLoop: Sized + Send + 'static {
    /// The name of the loop: its key in the configuration, its name in readiness and logs.
    const NAME: &'static str;

    /// Works until `stop` asks it to end; it must not end before. It is called once the stores of the loop are synced,
    /// and tells `health` when it works and when it does not.
    fn run(self, health: Health, stop: Stop) -> impl Future<Output = ()> + Send;
}

/// What a part of a loop has said last: nothing yet, that it works, or why it does not.
type Said = Option<Result<(), String>>;

/// Tells the readiness of the replica how a loop fares. Until the first call, it is starting.
#[derive(Clone)]
pub struct Health {
    name: &'static str,
    readiness: Readiness,
    /// What each part of the loop has said last.
    said: Arc<Mutex<Vec<Said>>>,
    part: usize,
}

impl Health {
    fn new(name: &'static str, readiness: Readiness) -> Self {
        Self { name, readiness, said: Arc::new(Mutex::new(vec![None])), part: 0 }
    }

    /// The same for two parts of the loop that do not wait for each other: the loop works once both do.
    pub fn divided(self) -> [Self; 2] {
        *self.said.lock() = vec![None, None];
        [0, 1].map(|part| Self { part, ..self.clone() })
    }

    /// The loop works.
    pub fn ready(&self) {
        self.say(Ok(()));
    }

    /// The loop does not work; `why` is a sentence that says what is wrong and what would be right.
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

    /// Whether the process has been asked to stop.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }
}

/// A replica loop that has been built, independent of its type.
pub struct Replica {
    name: &'static str,
    needs: Vec<Need>,
    run: Box<dyn FnOnce(Health, Stop) -> BoxFuture<'static, ()> + Send>,
}

impl Replica {
    /// A loop that begins once what it needs is there.
    pub fn new<R: ReplicaLoop>(built: R, needs: Vec<Need>) -> Self {
        let run = |health, stop| async move { built.run(health, stop).await }.boxed();
        Self { name: R::NAME, needs, run: Box::new(run) }
    }

    /// Waits for the stores of the loop, then runs it until `stop`. Readiness names the CRDs that are missing.
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

/// The replica loops of the process, while they run.
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

    /// Completes with the name of a loop that has ended by itself, which none may; its name is empty where it panicked.
    /// Pending for ever while all run, and where there is none.
    pub async fn ended(&mut self) -> &'static str {
        match self.running.join_next().await {
            Some(ended) => ended.unwrap_or_default(),
            None => std::future::pending().await,
        }
    }

    /// Asks all loops to end, and waits until they have, for ten seconds at most.
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
    use crate::runtime::store::Store;

    /// A loop with these needs that is called `name`.
    fn replica<F: Future<Output = ()> + Send + 'static>(
        name: &'static str,
        needs: Vec<Need>,
        run: impl FnOnce(Health, Stop) -> F + Send + 'static,
    ) -> Replica {
        Replica { name, needs, run: Box::new(|health, stop| run(health, stop).boxed()) }
    }

    /// What readiness says of a loop, once everything has come to rest.
    async fn said(readiness: &Readiness, name: &str) -> String {
        tokio::time::sleep(Duration::from_secs(1)).await;
        readiness.report_of(name).expect("known").1
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_begins_when_its_stores_are_synced_and_says_how_it_fares() {
        let store = Store::<NamespaceKind>::new(true);
        let (breaks, mut is_broken) = watch::channel(false);
        let run = |health: Health, stop: Stop| async move {
            health.ready();
            is_broken.changed().await.expect("the test goes on");
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
        assert_eq!(said(), None, "the other one has said nothing yet");
        other.failing("no address");
        one.failing("no answer");
        assert_eq!(said().as_deref(), Some("[!] test: no answer; no address\n"));
        one.ready();
        assert_eq!(said().as_deref(), Some("[!] test: no address\n"));
        other.ready();
        assert_eq!(said().as_deref(), Some("[+] test: ready\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_ends_by_itself_is_named() {
        let ends = |_, stop: Stop| async move { assert!(!stop.is_asked()) };
        let goes_on = |_, stop: Stop| async move { stop.asked().await };
        let loops = vec![replica("first", Vec::new(), goes_on), replica("second", Vec::new(), ends)];
        assert_eq!(Replicas::start(loops, &Readiness::default()).ended().await, "second");
        let none = Replicas::start(Vec::new(), &Readiness::default()).ended().now_or_never();
        assert_eq!(none, None, "none ends where there is none");
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_end_is_left_after_ten_seconds() {
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
