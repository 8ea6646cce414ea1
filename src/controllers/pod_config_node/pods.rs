//! The pods: their state, and their retries. The current time is passed in as `now`.
//!
//! Only failed work is delayed: a pod whose process cannot be determined, or a link. The delay of a link ends when
//! another link is wanted in its place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::due::RETRY;
use super::locate::{Located, Location, NotLocated};
use super::mark::{LinkKey, Mark, process_of};
use super::plan::{Plan, problem};
use super::records::{Desired, DesiredLink};
use super::report::Results;
use super::work::{Done, PodLink, PodProcess};
use crate::api::reason::{LINK_FAILED, RUNTIME_UNAVAILABLE};

/// The maximum delay until a pod without a process is checked again.
const NOT_RUNNING: Duration = Duration::from_secs(4);

/// The number of pods that are worked on concurrently. The kernel changes one link at a time, so a larger number would
/// only wait for it.
pub const AT_WORK: usize = 4;
/// The number of pods that the container runtime is queried for concurrently.
pub const ASKED: usize = 8;

/// A verified link: its mark, its bridge, and the node's end with whether it can pass packets.
type Verified = (Mark, u32, Option<(u32, bool)>);

/// A link that could not be created or verified.
struct Failed {
    /// The wanted link, and its bridge.
    wanted: (DesiredLink, u32),
    /// The earliest time for a retry; `None` if it is due.
    retry: Option<Instant>,
    failures: u32,
}

/// The current activity for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Doing {
    /// Nothing.
    #[default]
    Nothing,
    /// The container runtime is being queried.
    Asking,
    /// Its links are being changed.
    Working,
}

/// A pod.
#[derive(Default)]
struct Pod {
    doing: Doing,
    /// The known process of the pod. It may have ended.
    process: Option<u32>,
    /// The answer of the runtime, until it is used.
    located: Option<Located>,
    /// Whether the runtime must be queried.
    ask: bool,
    /// The links that are being worked on.
    working: Vec<PodLink>,
    /// The verified links.
    verified: BTreeMap<LinkKey, Verified>,
    /// The links that have failed since.
    failed: BTreeMap<LinkKey, Failed>,
    /// The runtime is not queried before this time.
    retry: Option<Instant>,
    /// The number of failed queries in a row.
    failures: u32,
}

/// The pods of this node that have links.
#[derive(Default)]
pub struct Pods {
    known: BTreeMap<String, Pod>,
    /// The pods that may need work.
    queue: VecDeque<String>,
    /// The results for their links.
    pub results: Results,
}

/// The next step for a pod.
pub enum Step {
    /// Query the container runtime.
    Ask,
    /// Work on the links.
    Work(Vec<PodLink>, PodProcess),
}

impl Pods {
    /// The pods whose links are being changed.
    pub fn busy(&self) -> BTreeSet<String> {
        let busy = self.known.iter().filter(|(_, pod)| pod.doing == Doing::Working);
        busy.map(|(uid, _)| uid.clone()).collect()
    }

    /// Marks every pod for verification by the next [`look`](Self::look).
    pub fn verify_all(&mut self) {
        self.known.values_mut().for_each(|pod| pod.verified.clear());
    }

    /// Clears the delays of failed pods, so that the next [`look`](Self::look) retries them.
    pub fn retry_all(&mut self) {
        for pod in self.known.values_mut() {
            pod.retry = None;
            pod.failed.values_mut().for_each(|failed| failed.retry = None);
        }
    }

    /// The next time when a pod is to be retried; `None` for never.
    pub fn next_retry(&self) -> Option<Instant> {
        let waiting = self.known.values().filter(|pod| pod.doing == Doing::Nothing);
        let links = |pod: &Pod| pod.failed.values().filter_map(|failed| failed.retry).min();
        waiting.filter_map(|pod| pod.retry.or_else(|| links(pod))).min()
    }

    /// Determines the pods that need work.
    pub fn look(&mut self, desired: &Desired, settled: &Plan) {
        let possible =
            desired.wanted.iter().filter(|(key, wanted)| can_be_made(key, wanted, desired, settled));
        let all: BTreeSet<&str> = possible.map(|(key, _)| key.pod_uid.as_str()).collect();
        self.known.retain(|uid, pod| pod.doing != Doing::Nothing || all.contains(uid.as_str()));
        self.results.retain(|key, _| {
            let wanted = desired.wanted.get(key);
            wanted.is_some_and(|wanted| !wanted.is_ending || settled.ends.contains_key(key))
        });
        let mut is_due = |uid: &&str| {
            let links = candidates(uid, desired, settled);
            let pod = self.known.entry((*uid).to_owned()).or_default();
            let wanted = |link: &PodLink| (link.key(), link.wanted_on());
            let wanted: BTreeMap<_, _> = links.iter().map(wanted).collect();
            pod.failed.retain(|key, failed| wanted.get(key) == Some(&failed.wanted));
            links.iter().any(|link| !pod.is_verified(link))
        };
        let due: Vec<&str> = all.into_iter().filter(|uid| is_due(uid)).collect();
        self.queue = due.into_iter().map(str::to_owned).collect();
    }

    /// Queues the pods that are due for a retry, or that have such a link.
    pub fn look_at_due(&mut self, now: Instant) {
        for (uid, pod) in self.known.iter_mut().filter(|(_, pod)| pod.doing == Doing::Nothing) {
            let retries = pod.failed.values_mut().map(|failed| &mut failed.retry).chain([&mut pod.retry]);
            // All due retries are taken, not only the first one.
            let due = retries.filter_map(|retry| retry.take_if(|retry| *retry <= now));
            if due.count() > 0 {
                self.queue.push_back(uid.clone());
            }
        }
    }

    /// Returns the steps that can be started now, and marks them as started.
    pub fn begin(&mut self, desired: &Desired, settled: &Plan, now: Instant) -> Vec<(String, Step)> {
        let mut steps = Vec::new();
        if self.queue.is_empty() {
            return steps;
        }
        let count = |doing| self.known.values().filter(|pod| pod.doing == doing).count();
        let (mut workers, mut askers) =
            (AT_WORK.saturating_sub(count(Doing::Working)), ASKED.saturating_sub(count(Doing::Asking)));
        for uid in std::mem::take(&mut self.queue) {
            if workers == 0 && askers == 0 {
                self.queue.push_back(uid);
                continue;
            }
            let mut links = candidates(&uid, desired, settled);
            let Some(pod) = self.known.get_mut(&uid) else { continue };
            let is_waiting = pod.retry.is_some_and(|retry| retry > now);
            let recalled = process(&links);
            links.retain(|link| !pod.waits(link, now) && !pod.is_verified(link));
            if links.is_empty() || pod.doing != Doing::Nothing || is_waiting {
                continue;
            }
            let known = pod.process.or(recalled);
            let may_try = known.filter(|_| !pod.ask && links.iter().all(|link| link.host.is_some()));
            let is_work = pod.located.is_some() || may_try.is_some();
            let free = if is_work { &mut workers } else { &mut askers };
            if *free == 0 {
                self.queue.push_back(uid);
                continue;
            }
            *free -= 1;
            pod.retry = None;
            let located = pod.located.take().map(PodProcess::Located);
            let process = located.or_else(|| may_try.map(PodProcess::Recalled));
            let step = process.map_or(Step::Ask, |process| {
                pod.working.clone_from(&links);
                Step::Work(links, process)
            });
            pod.doing = if is_work { Doing::Working } else { Doing::Asking };
            steps.push((uid, step));
        }
        steps
    }

    /// Records the answer of the container runtime for a pod.
    pub fn located(&mut self, uid: &str, answer: Location, desired: &Desired, now: Instant) {
        let Some(pod) = self.known.get_mut(uid) else { return };
        pod.doing = Doing::Nothing;
        self.queue.push_back(uid.to_owned());
        let (failure, longest) = match answer {
            Ok(located) => {
                (pod.ask, pod.failures) = (false, 0);
                pod.located = Some(located);
                return;
            }
            Err(NotLocated::NotRunning) => (None, NOT_RUNNING),
            Err(NotLocated::Unavailable(why)) => (
                Some(problem(RUNTIME_UNAVAILABLE, format!("the container runtime is unavailable: {why}"))),
                RETRY.cap,
            ),
            Err(NotLocated::Failed(why)) => (
                Some(problem(LINK_FAILED, format!("the pod's process cannot be determined: {why}"))),
                RETRY.cap,
            ),
        };
        pod.failures += 1;
        pod.retry = Some(now + RETRY.wait(pod.failures).min(longest));
        for key in desired.wanted.keys().filter(|key| key.pod_uid == uid) {
            // A pod without a process has no links, except those with a node's end that still exists.
            self.results.remove(key);
            self.results.extend(failure.clone().map(|failure| (key.clone(), Err(failure))));
        }
    }

    /// Records the result of the work on a pod's links. Returns the reasons of failures, and whether any result has
    /// changed.
    pub fn worked(&mut self, uid: &str, process: u32, done: Done, now: Instant) -> (Vec<String>, bool) {
        let Some(pod) = self.known.get_mut(uid) else { return (Vec::new(), true) };
        pod.doing = Doing::Nothing;
        // Requests that arrived in the meantime may concern it.
        self.queue.push_back(uid.to_owned());
        let Done::Links(links) = done else {
            (pod.process, pod.ask) = (None, true);
            return (Vec::new(), false);
        };
        let working: BTreeMap<LinkKey, PodLink> =
            std::mem::take(&mut pod.working).into_iter().map(|link| (link.key(), link)).collect();
        let mut reasons = Vec::new();
        for (key, result) in &links {
            match result {
                Ok(plugged) => {
                    pod.process = Some(process);
                    pod.failed.remove(key);
                    let host = (plugged.host.1, true);
                    pod.verified.insert(key.clone(), (plugged.mark.clone(), plugged.bridge.1, Some(host)));
                }
                Err(problem) => {
                    reasons.push(problem.reason.clone());
                    pod.verified.remove(key);
                    pod.failed.extend(working.get(key).map(|link| (key.clone(), pod.failure(link, now))));
                }
            }
        }
        let is_other = links.iter().any(|(key, result)| self.results.get(key) != Some(result));
        self.results.extend(links);
        (reasons, is_other)
    }
}

impl Pod {
    /// Whether a link was verified and has not changed since.
    fn is_verified(&self, link: &PodLink) -> bool {
        self.verified.get(&link.wanted.mark.key).is_some_and(|(mark, bridge, host)| {
            let now = link.host.as_ref().map(|host| (host.index, host.is_operational));
            (mark, *bridge, *host) == (&link.wanted.mark, link.master, now)
        })
    }

    /// Whether the same link failed recently and waits for its retry.
    fn waits(&self, link: &PodLink, now: Instant) -> bool {
        let failed = self.failed.get(&link.wanted.mark.key);
        failed.is_some_and(|failed| {
            failed.wanted == link.wanted_on() && failed.retry.is_some_and(|retry| retry > now)
        })
    }

    /// The record of a link that has just failed.
    fn failure(&self, link: &PodLink, now: Instant) -> Failed {
        let wanted = link.wanted_on();
        let before = self.failed.get(&link.wanted.mark.key).filter(|before| before.wanted == wanted);
        let failures = before.map_or(0, |before| before.failures) + 1;
        Failed { wanted, retry: Some(now + RETRY.wait(failures)), failures }
    }
}

impl PodLink {
    /// The wanted link, and its bridge.
    fn wanted_on(&self) -> (DesiredLink, u32) {
        (self.wanted.clone(), self.master)
    }
}

/// Whether a link can be created or verified.
fn can_be_made(key: &LinkKey, wanted: &DesiredLink, desired: &Desired, settled: &Plan) -> bool {
    !settled.problems.contains_key(key)
        && !desired.unreadable_pods.contains(&key.pod_uid)
        && settled.bridges.contains_key(&wanted.bridge)
        && (!wanted.is_ending || settled.ends.contains_key(key))
}

/// The links of a pod that can be created or verified.
fn candidates(uid: &str, desired: &Desired, settled: &Plan) -> Vec<PodLink> {
    let first = LinkKey { pod_uid: uid.to_owned(), attachment: String::new() };
    let of_pod = desired.wanted.range(first..).take_while(|(key, _)| key.pod_uid == uid);
    let found = of_pod.filter(|(key, wanted)| can_be_made(key, wanted, desired, settled));
    let link = |(key, wanted): (&LinkKey, &DesiredLink)| {
        let master = *settled.bridges.get(&wanted.bridge)?;
        Some(PodLink { wanted: wanted.clone(), host: settled.ends.get(key).cloned(), master })
    };
    found.filter_map(link).collect()
}

/// The process ID in the names of existing links.
fn process(links: &[PodLink]) -> Option<u32> {
    links.iter().find_map(|link| process_of(&link.wanted.mark.key.attachment, &link.host.as_ref()?.name))
}
