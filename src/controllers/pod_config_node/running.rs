//! The running loop. It sleeps until an event arrives, and then does the work that is due. Slow work (the container
//! runtime, the API server, the links of a pod) runs in tasks, so that one does not delay the others.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, gauge};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::due::Schedule;
use super::locate::{Location, NotLocated, locate, probe};
use super::mark::{Mark, bridge_namespace};
use super::node_loop::PodConfigNodeLoop;
use super::plan::{Plan, plan};
use super::pods::{Pods, Step};
use super::records::Desired;
use super::report::{Sources, leftovers, node_problem, report, unread};
use super::settle::settle;
use super::work::{Done, work};
use crate::controllers::pod_network::{self, LinkProblem, NODE_KEY, Node};
use crate::netlink::{Event, Events, in_thread};
use crate::runtime::metrics::precise;
use crate::runtime::replica::Health;

/// Changes of links within this time are handled together.
const QUIET: Duration = Duration::from_millis(100);
/// The same for the report.
const REPORT: Duration = Duration::from_millis(75);

/// The result of a finished task.
enum Ended {
    /// The runtime has answered a query for its version, or has failed to.
    Probed(Result<(), String>),
    /// The runtime has answered a query for the process of a pod.
    Located(String, Location),
    /// The work on a pod's links in the namespace of this process has ended.
    Worked(String, u32, Done),
    /// The report was written, or writing it failed.
    Written(Result<(), String>),
}

/// The loop.
pub struct Running {
    own: PodConfigNodeLoop,
    health: Health,
    /// The path of the network namespace of the node.
    node_namespace: PathBuf,
    desired: Arc<Desired>,
    /// The plan that was carried out last.
    settled: Option<Plan>,
    pods: Pods,
    events: Option<Events>,
    tasks: JoinSet<Ended>,
    settling: Schedule,
    probing: Schedule,
    reporting: Schedule,
    resync: Instant,
    is_writing: bool,
    /// Why the runtime does not respond; `None` if it does or was not queried yet.
    runtime_problem: Option<String>,
    is_probed: bool,
    /// Why the links of the node cannot be read.
    node_problem: Option<String>,
    /// Why the kernel's link events are not received.
    events_problem: Option<String>,
    /// Why the report could not be written.
    report_problem: Option<String>,
}

impl Running {
    /// Creates the loop. It has not done any work yet.
    pub fn new(own: PodConfigNodeLoop, health: Health) -> Self {
        let node_namespace = match own.config.node_namespace.as_str() {
            "" => PathBuf::from(&own.config.proc_root).join("1/ns/net"),
            path => PathBuf::from(path),
        };
        Self {
            health,
            node_namespace,
            desired: Arc::default(),
            settled: None,
            pods: Pods::default(),
            events: None,
            tasks: JoinSet::new(),
            settling: Schedule { at: Some(Instant::now()), failures: 0 },
            probing: Schedule { at: Some(Instant::now()), failures: 0 },
            reporting: Schedule::default(),
            resync: Instant::now() + Duration::from(own.config.resync),
            is_writing: false,
            runtime_problem: None,
            is_probed: false,
            node_problem: None,
            events_problem: None,
            report_problem: None,
            own,
        }
    }

    /// Runs forever.
    pub async fn run(mut self) {
        self.read_pools();
        loop {
            self.step().await;
            let next = self.next();
            tokio::select! {
                () = self.own.changed.notified() => {
                    self.read_pools();
                    self.settling.after(Duration::ZERO);
                    self.reporting.after(REPORT);
                }
                events = next_events(self.events.as_mut()) => self.links_changed(events),
                Some(ended) = self.tasks.join_next() => match ended {
                    Ok(ended) => self.ended(ended),
                    Err(error) => warn!(%error, "a task has panicked, which is a defect of the daemon"),
                },
                () = sleep_until(next) => {}
            }
        }
    }

    /// The next time when some work is due.
    fn next(&self) -> Instant {
        let due = [self.settling.at, self.probing.at, self.reporting.at.filter(|_| !self.is_writing)];
        due.into_iter().flatten().chain(self.pods.next_retry()).fold(self.resync, Instant::min)
    }

    fn read_pools(&mut self) {
        let records: Vec<_> = self.own.pools.objects().collect();
        let pools = records.iter().map(|record| (record.name(), &record.spec));
        let desired = Desired::of(&self.own.settings.node, pools);
        if desired.unreadable != self.desired.unreadable {
            for what in &desired.unreadable {
                warn!("a record of pod networks cannot be parsed; its links stay unchanged: {what}");
            }
        }
        if desired != *self.desired {
            // The earlier failures concerned other requests.
            self.settling.failures = 0;
        }
        self.desired = Arc::new(desired);
    }

    /// Does the work that is due.
    async fn step(&mut self) {
        if self.resync <= Instant::now() {
            self.resync = Instant::now() + Duration::from(self.own.config.resync);
            self.pods.verify_all();
            self.settling.after(Duration::ZERO);
            self.probing.after(Duration::ZERO);
        }
        if self.probing.take() {
            let runtime = Arc::clone(&self.own.runtime);
            self.tasks.spawn(async move { Ended::Probed(probe(&runtime).await) });
        }
        if self.settling.take() {
            self.settle().await;
        }
        if let Some(settled) = &self.settled {
            self.pods.look_at_due(Instant::now());
            let steps = self.pods.begin(&self.desired, settled, Instant::now());
            for (uid, step) in steps {
                self.begin(uid, step);
            }
        }
        if !self.is_writing && self.reporting.take() {
            self.report();
        }
    }

    /// Brings the node to the desired state, and reports the readiness.
    async fn settle(&mut self) {
        if self.events.is_none() {
            // The events are opened before the links are read, so that no change is missed.
            let opened = Events::of(self.node_namespace.clone()).await;
            self.events_problem = opened.as_ref().err().map(ToString::to_string);
            self.events = opened.ok();
        }
        let (path, desired) = (self.node_namespace.clone(), Arc::clone(&self.desired));
        let (settings, busy) = (Arc::clone(&self.own.settings), self.pods.busy());
        let work = in_thread(move |thread| {
            settle(thread, &path, |observed| plan(observed, &desired, &settings, &busy))
        });
        match work.await.and_then(|settled| settled) {
            Ok(settled) => {
                self.node_problem = None;
                if settled.has_failed {
                    self.settling.failed();
                } else {
                    self.settling.failures = 0;
                }
                self.pods.look(&self.desired, &settled);
                self.settled = Some(settled);
            }
            Err(error) => {
                let path = self.node_namespace.display();
                self.node_problem = Some(format!(
                    "the network namespace of the node, {path}, cannot be used: {error}; the daemon needs the \
                     processes of the node (hostPID), and the capabilities NET_ADMIN, SYS_ADMIN and SYS_PTRACE"
                ));
                self.events = None;
                self.settling.failed();
            }
        }
        self.report_health();
        self.reporting.after(REPORT);
    }

    fn begin(&mut self, uid: String, step: Step) {
        let (proc, node_namespace) = (PathBuf::from(&self.own.config.proc_root), self.node_namespace.clone());
        match step {
            Step::Ask => {
                let runtime = Arc::clone(&self.own.runtime);
                self.tasks.spawn(async move {
                    let answer = locate(&runtime, &uid, &proc).await;
                    Ended::Located(uid, answer)
                });
            }
            Step::Work(links, process) => {
                let number = process.number();
                self.tasks.spawn(async move {
                    let done = in_thread(move |thread| work(thread, &links, process, &proc, &node_namespace));
                    // A thread that cannot be started or panics is handled like a process that has ended.
                    Ended::Worked(uid, number, done.await.unwrap_or(Done::Ask))
                });
            }
        }
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Probed(answer) => {
                self.is_probed = true;
                let was = std::mem::replace(&mut self.runtime_problem, answer.err());
                if self.runtime_problem.is_some() {
                    self.probing.failed();
                } else {
                    self.probing = Schedule::default();
                    if was.is_some() {
                        self.pods.retry_all();
                        self.settling.after(Duration::ZERO);
                    }
                }
                self.report_health();
            }
            Ended::Located(uid, answer) => {
                if let Err(NotLocated::Unavailable(_)) = &answer
                    && self.runtime_problem.is_none()
                {
                    self.probing.after(Duration::ZERO);
                }
                self.pods.located(&uid, answer, &self.desired, Instant::now());
            }
            Ended::Worked(uid, process, done) => {
                let (reasons, is_other) = self.pods.worked(&uid, process, done, Instant::now());
                for reason in reasons {
                    counter!("pod_network_failures_total", "reason" => reason).increment(1);
                }
                if !is_other {
                    return;
                }
                // The node's ends of its links have changed, and the requests for them may have changed in the
                // meantime.
                self.settling.after(QUIET);
            }
            Ended::Written(written) => {
                self.is_writing = false;
                self.report_problem = written.err();
                match self.report_problem {
                    Some(_) => self.reporting.failed(),
                    None => self.reporting.failures = 0,
                }
                self.report_health();
                return;
            }
        }
        self.reporting.after(REPORT);
    }

    /// Schedules planning if these events may be relevant.
    fn links_changed(&mut self, events: std::io::Result<Vec<Event>>) {
        let Ok(events) = events else {
            self.events = None;
            self.settling.failed();
            return;
        };
        let is_due = self.settling.at.is_some_and(|at| at <= Instant::now() + QUIET);
        if !is_due && events.iter().any(|event| self.concerns(event)) {
            self.settling.after(QUIET);
        }
    }

    fn concerns(&self, event: &Event) -> bool {
        let Some(settled) = &self.settled else { return true };
        // An obstacle to a link may be gone.
        let has_problems = !settled.problems.is_empty() || self.pods.results.values().any(Result::is_err);
        let is_bridge = |index: u32| settled.bridges.values().any(|bridge| *bridge == index);
        has_problems
            || match event {
                Event::Link(link) => {
                    Mark::read(&link.alias).is_some()
                        || bridge_namespace(&link.alias).is_some()
                        || self.desired.bridges.contains_key(&link.name)
                        || is_bridge(link.index)
                        || settled.ends.values().any(|end| end.index == link.index)
                }
                Event::Address(address) => is_bridge(address.link),
                Event::Lost => true,
            }
    }

    /// Writes the report if it differs from the stored one.
    fn report(&mut self) {
        let Some(writer) = &self.own.report else { return };
        let stored = writer.stored();
        // Without its label, the leader does not see the report.
        let is_seen = stored
            .as_ref()
            .is_none_or(|stored| stored.label(pod_network::RECORD) == Some(pod_network::REPORT));
        let before: BTreeMap<String, String> = stored.map(|stored| stored.spec.clone()).unwrap_or_default();
        let node = Node { node: self.own.settings.node.clone(), problem: self.problem(&before) };
        let data = match &self.settled {
            Some(settled) => {
                let (desired, results, busy) = (&self.desired, &self.pods.results, &self.pods.busy());
                report(&node, &Sources { desired, settled, results, busy, stored: &before })
            }
            None => unread(&node, &before),
        };
        let plugged = self.pods.results.values().filter(|result| result.is_ok()).count();
        gauge!("pod_network_links").set(precise(plugged));
        if data != before || !is_seen {
            self.is_writing = true;
            let writer = writer.clone();
            self.tasks.spawn(async move { Ended::Written(writer.write(data).await) });
        }
    }

    /// The problem of the whole node. Until the runtime was queried, the stored problem holds.
    fn problem(&self, stored: &BTreeMap<String, String>) -> Option<LinkProblem> {
        if self.is_probed || self.node_problem.is_some() {
            return node_problem(self.runtime_problem.as_deref(), self.node_problem.as_deref());
        }
        serde_json::from_str::<Node>(stored.get(NODE_KEY)?).ok()?.problem
    }

    /// Reports the readiness of the loop.
    fn report_health(&self) {
        if let Some(why) = &self.node_problem {
            self.health.failing(why.clone());
        } else if let Some(why) = &self.runtime_problem {
            self.health.failing(format!("new links cannot be created: {why}"));
        } else if let Some(why) = &self.report_problem {
            self.health.failing(format!("the report about the links cannot be written: {why}; retrying"));
        } else if let Some(why) = &self.events_problem {
            let resync = self.own.config.resync;
            self.health.failing(format!("changes of links are noticed only every {resync}: {why}"));
        } else if let Some(why) = self.settled.as_ref().and_then(|done| leftovers(&self.desired, done)) {
            self.health.failing(why);
        } else if self.is_probed && self.settled.is_some() {
            self.health.ready();
        }
    }
}

/// The next link events. Never resolves if no events are received.
async fn next_events(events: Option<&mut Events>) -> std::io::Result<Vec<Event>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}
