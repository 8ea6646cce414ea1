//! The pods: which wait for what, and when they are tried again. Time enters as `now`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::due::RETRY;
use super::locate::{Located, NotLocated};
use super::mark::{LinkKey, Mark, process_of};
use super::plan::{Plan, problem};
use super::records::{Desired, DesiredLink};
use super::report::Results;
use super::work::{Done, Plugged, PodLink, PodProcess};
use crate::api::reason::{LINK_FAILED, RUNTIME_UNAVAILABLE};

/// A pod that has no process yet is looked at after this time at the latest.
const NOT_RUNNING: Duration = Duration::from_secs(4);

/// How many pods are worked on at once: the kernel changes one link at a time, so more would only wait for it; and of how many
/// the container runtime is asked at once.
pub const AT_WORK: usize = 4;
/// See [`AT_WORK`].
pub const ASKED: usize = 8;

/// A link as it was verified: with its bridge, and the node's end with whether packets can pass.
type Verified = (Mark, u32, Option<(u32, bool)>);

/// What is done for a pod at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Doing {
    /// Nothing.
    #[default]
    Nothing,
    /// The container runtime is asked.
    Asking,
    /// Its links are being changed.
    Working,
}

/// A pod.
#[derive(Default)]
struct Pod {
    doing: Doing,
    /// A process of the pod that is known; it may have ended.
    process: Option<u32>,
    /// What the runtime has said, until it is used.
    located: Option<Located>,
    /// Whether the runtime has to be asked.
    ask: bool,
    /// What was verified; `None` if anything is to be done.
    verified: Option<Vec<Verified>>,
    /// Not before this time.
    retry: Option<Instant>,
    failures: u32,
}

/// The pods of this node that have links.
#[derive(Default)]
pub struct Pods {
    known: BTreeMap<String, Pod>,
    /// Those for which something may be to do.
    queue: VecDeque<String>,
    /// What was made of their links.
    pub results: Results,
}

/// What can be begun for a pod.
pub enum Step {
    /// Ask the container runtime.
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

    /// Every pod is verified again, once they are looked at.
    pub fn verify_all(&mut self) {
        self.known.values_mut().for_each(|pod| pod.verified = None);
    }

    /// The pods that failed are tried at once, once they are looked at.
    pub fn retry_all(&mut self) {
        self.known.values_mut().for_each(|pod| pod.retry = None);
    }

    /// When a pod is to be tried again; `None` for never.
    pub fn next_retry(&self) -> Option<Instant> {
        let waiting = self.known.values().filter(|pod| pod.doing == Doing::Nothing);
        waiting.filter_map(|pod| pod.retry).min()
    }

    /// Finds out for which pods something is to do.
    pub fn look(&mut self, desired: &Desired, settled: &Plan) {
        let possible =
            desired.wanted.iter().filter(|(key, wanted)| can_be_made(key, wanted, desired, settled));
        let all: BTreeSet<&str> = possible.map(|(key, _)| key.pod_uid.as_str()).collect();
        self.known.retain(|uid, pod| pod.doing != Doing::Nothing || all.contains(uid.as_str()));
        self.results.retain(|key, _| {
            let wanted = desired.wanted.get(key);
            wanted.is_some_and(|wanted| !wanted.is_ending || settled.ends.contains_key(key))
        });
        for uid in &all {
            self.known.entry((*uid).to_owned()).or_default();
        }
        let is_due = |uid: &&str| {
            let pod = self.known.get(*uid);
            pod.is_some_and(|pod| !pod.is_verified(&candidates(uid, desired, settled)))
        };
        self.queue = all.into_iter().filter(is_due).map(str::to_owned).collect();
    }

    /// The pods whose time to be tried again has come are looked at.
    pub fn look_at_due(&mut self, now: Instant) {
        for (uid, pod) in &mut self.known {
            if pod.doing == Doing::Nothing && pod.retry.take_if(|retry| *retry <= now).is_some() {
                self.queue.push_back(uid.clone());
            }
        }
    }

    /// What can be begun now, which counts as begun.
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
            let links = candidates(&uid, desired, settled);
            let Some(pod) = self.known.get_mut(&uid) else { continue };
            let is_waiting = pod.retry.is_some_and(|retry| retry > now);
            if links.is_empty() || pod.doing != Doing::Nothing || is_waiting || pod.is_verified(&links) {
                continue;
            }
            let known = pod.process.or_else(|| process(&links));
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
            let step = process.map_or(Step::Ask, |process| Step::Work(links, process));
            pod.doing = if is_work { Doing::Working } else { Doing::Asking };
            steps.push((uid, step));
        }
        steps
    }

    /// The container runtime has answered for a pod.
    pub fn located(
        &mut self,
        uid: &str,
        answer: Result<Located, NotLocated>,
        desired: &Desired,
        now: Instant,
    ) {
        let Some(pod) = self.known.get_mut(uid) else { return };
        pod.doing = Doing::Nothing;
        self.queue.push_back(uid.to_owned());
        let (failure, longest) = match answer {
            Ok(located) => {
                pod.ask = false;
                pod.located = Some(located);
                return;
            }
            Err(NotLocated::NotRunning) => (None, NOT_RUNNING),
            Err(NotLocated::Unavailable(why)) => (
                Some(problem(RUNTIME_UNAVAILABLE, format!("the container runtime cannot be asked: {why}"))),
                RETRY.cap,
            ),
            Err(NotLocated::Failed(why)) => {
                (Some(problem(LINK_FAILED, format!("the pod's process is not known: {why}"))), RETRY.cap)
            }
        };
        pod.fail(now, longest);
        for key in desired.wanted.keys().filter(|key| key.pod_uid == uid) {
            match &failure {
                Some(failure) => {
                    self.results.insert(key.clone(), Err(failure.clone()));
                }
                // A pod that has no process has no links either, but those whose end is still there.
                None => {
                    self.results.remove(key);
                }
            }
        }
    }

    /// The work on a pod's links has ended; returns what failed, and whether anything is different now.
    pub fn worked(&mut self, uid: &str, process: u32, done: Done, now: Instant) -> (Vec<String>, bool) {
        let Some(pod) = self.known.get_mut(uid) else { return (Vec::new(), true) };
        pod.doing = Doing::Nothing;
        // What was asked for meanwhile may concern it.
        self.queue.push_back(uid.to_owned());
        let Done::Links(links) = done else {
            (pod.process, pod.ask) = (None, true);
            return (Vec::new(), false);
        };
        let reasons: Vec<String> =
            links.iter().filter_map(|(_, result)| Some(result.as_ref().err()?.reason.clone())).collect();
        if reasons.is_empty() {
            (pod.process, pod.failures) = (Some(process), 0);
            let plugged = links.iter().filter_map(|(_, result)| result.as_ref().ok());
            let verified =
                |plugged: &Plugged| (plugged.mark.clone(), plugged.bridge.1, Some((plugged.host.1, true)));
            pod.verified = Some(plugged.map(verified).collect());
        } else {
            pod.verified = None;
            pod.fail(now, RETRY.cap);
        }
        let is_other = links.iter().any(|(key, result)| self.results.get(key) != Some(result));
        self.results.extend(links);
        (reasons, is_other)
    }
}

impl Pod {
    /// Whether these links were verified, and nothing has changed since.
    fn is_verified(&self, links: &[PodLink]) -> bool {
        let now = |PodLink { wanted, host, master }: &PodLink| {
            let host = host.as_ref().map(|host| (host.index, host.is_operational));
            (wanted.mark.clone(), *master, host)
        };
        self.verified.as_ref().is_some_and(|verified| links.iter().map(now).eq(verified.iter().cloned()))
    }

    fn fail(&mut self, now: Instant, longest: Duration) {
        self.failures += 1;
        self.retry = Some(now + RETRY.wait(self.failures).min(longest));
    }
}

/// Whether a link can be made or verified.
fn can_be_made(key: &LinkKey, wanted: &DesiredLink, desired: &Desired, settled: &Plan) -> bool {
    !settled.problems.contains_key(key)
        && !desired.unreadable_pods.contains(&key.pod_uid)
        && settled.bridges.contains_key(&wanted.bridge)
        && (!wanted.is_ending || settled.ends.contains_key(key))
}

/// The links of a pod that can be made or verified.
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

/// The process in the names of links that are there.
fn process(links: &[PodLink]) -> Option<u32> {
    links.iter().find_map(|link| process_of(&link.wanted.mark.key.attachment, &link.host.as_ref()?.name))
}
