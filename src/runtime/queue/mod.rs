//! The work queue of a control loop: each object is queued at most once, and reconciled by at most one
//! worker at a time.
//!
//! There are two priorities: changes precede the content of the first lists, periodic reconciles and retries. A failed
//! object is retried after a backoff that doubles with each failure, with a jitter that depends on the object. A
//! success resets the backoff, as does a change of the spec: the failures belonged to the previous spec.

mod backoff;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::backoff::Backoff;
use super::key::ObjectKey;
use super::metrics::{QueueMetrics, precise};

/// The priority of a queued object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// The content of a first list, a periodic reconcile or a retry.
    Background,
    /// A change of the object, or of another one that it depends on.
    Change,
}

/// After this many objects of the higher priority, one of the lower priority is taken, so that the lower priority does
/// not starve.
const FAIRNESS: u32 = 8;

/// The minimum time between two reconciles caused by [`Queue::add_limited`].
const LIMITED_PAUSE: Duration = Duration::from_secs(1);

/// The queue of one loop.
pub struct Queue {
    inner: Mutex<Inner>,
    wake: Notify,
    backoff: Backoff,
    metrics: QueueMetrics,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<ObjectKey, Entry>,
    ready: [VecDeque<ObjectKey>; 2],
    /// Objects that become ready later, by that time. The number distinguishes equal times.
    delayed: BTreeMap<(Instant, u64), ObjectKey>,
    serial: u64,
    streak: u32,
    closed: bool,
}

/// The state of an object that is not at rest. Most of many thousands only wait for a periodic reconcile.
#[derive(Debug, Default)]
struct Entry {
    /// Its key in `delayed`.
    due: Option<(Instant, u64)>,
    failures: u32,
    work: Option<Box<Work>>,
}

/// The state of an object that is queued or being reconciled, or was recently.
#[derive(Debug, Default)]
struct Work {
    /// The priority of the queued object, and the time when it was queued.
    queued: Option<(Priority, Instant)>,
    /// The time when a worker began to reconcile the object.
    running: Option<Instant>,
    /// The priority of an addition during the current reconcile.
    again: Option<Priority>,
    /// See [`Queue::add_limited`]: the earliest time of the next limited reconcile, and whether there was another
    /// limited addition during the current reconcile.
    limited: Option<Instant>,
    limited_again: bool,
    /// The earliest time of the next reconcile, even after a change, as requested by the API server.
    not_before: Option<Instant>,
}

impl Entry {
    fn work(&mut self) -> &mut Work {
        self.work.get_or_insert_default()
    }

    /// Removes expired state; returns whether nothing is left.
    fn rest(&mut self, now: Instant) -> bool {
        let lasts = |time: Option<Instant>| time.is_some_and(|time| time > now);
        let is_over = |work: &mut Box<Work>| {
            let is_in_use = work.queued.is_some() || work.running.is_some();
            !(is_in_use || lasts(work.limited) || lasts(work.not_before))
        };
        self.work.take_if(is_over);
        self.work.is_none() && self.due.is_none() && self.failures == 0
    }
}

/// An object that a worker reconciles. The worker must return it with [`Queue::done`].
#[derive(Debug)]
#[must_use = "the object stays in progress until the job is returned"]
pub struct Job {
    /// The object.
    pub key: ObjectKey,
    /// The number of failures in a row so far.
    pub failures: u32,
}

/// The time of the next reconcile of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// When something changes.
    AwaitChange,
    /// After this time, or when something changes.
    RequeueAfter(Duration),
    /// After the backoff, and at least this time: the reconcile failed.
    Retry(Duration),
    /// Never: the object no longer exists.
    Forget,
}

impl Queue {
    /// Creates an empty queue; `name` labels its metrics.
    pub fn new(name: &'static str) -> Self {
        let backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_mins(5) };
        Self { inner: Mutex::default(), wake: Notify::new(), backoff, metrics: QueueMetrics::new(name) }
    }

    /// Adds an object, to be reconciled as soon as a worker is free.
    pub fn add(&self, key: ObjectKey, priority: Priority) {
        let mut inner = self.inner.lock();
        let work = inner.entries.entry(key.clone()).or_default().work();
        if work.running.is_some() {
            work.again = work.again.max(Some(priority));
            return;
        }
        self.metrics.adds.increment(1);
        inner.enqueue(key, priority);
        self.metrics.depth.set(precise(inner.depth()));
        drop(inner);
        self.wake.notify_one();
    }

    /// Adds an object because of a change that users can make as often as they like: at most once a second, and not
    /// before the retry of a failed reconcile. The last change always leads to a reconcile.
    pub fn add_limited(&self, key: ObjectKey) {
        let mut inner = self.inner.lock();
        let now = Instant::now();
        let Entry { due, failures, work } = inner.entries.entry(key.clone()).or_default();
        let work = work.get_or_insert_default();
        if work.running.is_some() {
            work.limited_again = true;
            return;
        }
        if *failures > 0 || work.queued.is_some() {
            return;
        }
        match work.limited.filter(|earliest| *earliest > now) {
            None => {
                work.limited = Some(now + LIMITED_PAUSE);
                self.metrics.adds.increment(1);
                inner.enqueue(key, Priority::Change);
            }
            Some(earliest) if due.is_none_or(|(due, _)| due > earliest) => {
                work.limited = Some(earliest + LIMITED_PAUSE);
                inner.delay_until(key, earliest);
            }
            Some(_) => {}
        }
        self.metrics.depth.set(precise(inner.depth()));
        drop(inner);
        self.wake.notify_one();
    }

    /// Resets the number of an object's failures.
    pub fn reset_failures(&self, key: &ObjectKey) {
        if let Some(entry) = self.inner.lock().entries.get_mut(key) {
            entry.failures = 0;
        }
    }

    /// Lowers the priority of all waiting objects. Called before the workers start: the objects queued so far come from
    /// the first lists, or were handled by another leader, and must not precede new changes.
    pub fn demote(&self) {
        let mut inner = self.inner.lock();
        let [background, changes] = &mut inner.ready;
        background.append(changes);
        let queued = inner.entries.values_mut().filter_map(|entry| entry.work.as_mut()?.queued.as_mut());
        for (priority, _) in queued {
            *priority = Priority::Background;
        }
    }

    /// Returns the number of objects that wait for a worker.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.inner.lock().depth()
    }

    /// Waits for the next object. `None` once the queue is closed.
    pub async fn next(&self) -> Option<Job> {
        loop {
            let wake = self.wake.notified();
            let due = {
                let mut inner = self.inner.lock();
                if inner.closed {
                    return None;
                }
                inner.release_due(Instant::now());
                if let Some(job) = inner.pop(&self.metrics) {
                    let more = inner.depth() > 0;
                    self.metrics.depth.set(precise(inner.depth()));
                    drop(inner);
                    if more {
                        self.wake.notify_one();
                    }
                    return Some(job);
                }
                inner.delayed.keys().next().map(|(due, _)| *due)
            };
            match due {
                None => wake.await,
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, wake).await;
                }
            }
        }
    }

    /// Returns an object after its reconcile; `next` determines its next reconcile.
    pub fn done(&self, job: Job, next: Action) {
        let mut inner = self.inner.lock();
        let now = Instant::now();
        let Some(entry) = inner.entries.get_mut(&job.key) else { return };
        let work = entry.work();
        if let Some(since) = work.running.take() {
            self.metrics.worked.record(now - since);
        }
        let again = work.again.take();
        work.not_before = match next {
            Action::Retry(least) if !least.is_zero() => Some(now + least.min(self.backoff.cap)),
            _ => None,
        };
        let limited = std::mem::take(&mut work.limited_again).then_some(LIMITED_PAUSE);
        if limited.is_some() {
            work.limited = Some(now + 2 * LIMITED_PAUSE);
        }
        entry.failures = if matches!(next, Action::Retry(_)) { entry.failures + 1 } else { 0 };
        let delay = match next {
            Action::Retry(least) => {
                self.metrics.retries.increment(1);
                Some(self.delay(&job.key, entry.failures).max(least.min(self.backoff.cap)))
            }
            Action::RequeueAfter(delay) => Some(limited.map_or(delay, |limited| limited.min(delay))),
            Action::AwaitChange => limited,
            Action::Forget => None,
        };
        let is_at_rest = entry.rest(now);
        if let Some(priority) = again {
            inner.enqueue(job.key, priority);
        } else if let Some(delay) = delay {
            inner.delay_until(job.key, now + delay);
        } else if is_at_rest || next == Action::Forget {
            inner.entries.remove(&job.key);
        }
        self.metrics.depth.set(precise(inner.depth()));
        drop(inner);
        self.wake.notify_one();
    }

    /// Closes the queue: [`Queue::next`] returns `None`. Objects in progress can still be returned.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.wake.notify_waiters();
    }

    /// Sets the metrics of the running reconciles and of the object that has waited longest for a worker. Called when
    /// metrics are scraped.
    pub fn measure(&self) {
        let now = Instant::now();
        let inner = self.inner.lock();
        let work = || inner.entries.values().filter_map(|entry| entry.work.as_ref());
        let times = work().filter_map(|work| Some(now - work.running?));
        let (all, longest) = times
            .fold((Duration::ZERO, Duration::ZERO), |(all, longest), time| (all + time, longest.max(time)));
        let waiting = work().filter_map(|work| Some(now - work.queued?.1));
        let oldest = waiting.max().unwrap_or_default();
        drop(inner);
        self.metrics.oldest.set(oldest.as_secs_f64());
        self.metrics.unfinished.set(all.as_secs_f64());
        self.metrics.longest.set(longest.as_secs_f64());
    }

    /// Returns the backoff after `failures` failures in a row: between half and all of the doubled base.
    fn delay(&self, key: &ObjectKey, failures: u32) -> Duration {
        self.backoff.wait(failures).mul_f64(0.5 + 0.5 * spread(key, u64::from(failures)))
    }
}

impl Inner {
    fn depth(&self) -> usize {
        self.ready.iter().map(VecDeque::len).sum()
    }

    fn enqueue(&mut self, key: ObjectKey, priority: Priority) {
        let entry = self.entries.entry(key.clone()).or_default();
        if let Some(earliest) = entry.work().not_before.filter(|earliest| *earliest > Instant::now()) {
            return self.delay_until(key, earliest);
        }
        if let Some(place) = entry.due.take() {
            self.delayed.remove(&place);
        }
        let work = entry.work();
        match work.queued {
            Some((queued, _)) if queued >= priority => return,
            Some((queued, _)) => self.ready[queued as usize].retain(|other| *other != key),
            None => {}
        }
        let since = work.queued.map_or_else(Instant::now, |(_, since)| since);
        work.queued = Some((priority, since));
        self.ready[priority as usize].push_back(key);
    }

    fn delay_until(&mut self, key: ObjectKey, due: Instant) {
        self.serial += 1;
        let place = (due, self.serial);
        if let Some(entry) = self.entries.get_mut(&key) {
            if let Some(old) = entry.due.replace(place) {
                self.delayed.remove(&old);
            }
            self.delayed.insert(place, key);
        }
    }

    fn release_due(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.due = None;
            }
            self.enqueue(key, Priority::Background);
        }
    }

    fn pop(&mut self, metrics: &QueueMetrics) -> Option<Job> {
        let mut order = [Priority::Change, Priority::Background];
        if self.streak >= FAIRNESS {
            order.reverse();
        }
        let (priority, key) = order
            .into_iter()
            .find_map(|priority| Some((priority, self.ready[priority as usize].pop_front()?)))?;
        self.streak = if priority == Priority::Change { self.streak + 1 } else { 0 };
        let entry = self.entries.entry(key.clone()).or_default();
        let (now, work) = (Instant::now(), entry.work());
        if let Some((_, since)) = work.queued.take() {
            metrics.waited.record(now - since);
        }
        work.running = Some(now);
        Some(Job { key, failures: entry.failures })
    }
}

/// Returns the time of the next periodic reconcile of an object: between these bounds, depending on the object, or
/// after `sooner` if that is earlier.
pub fn resync(key: &ObjectKey, (min, max): (Duration, Duration), sooner: Option<Duration>) -> Action {
    let periodic = min + max.saturating_sub(min).mul_f64(spread(key, 0));
    Action::RequeueAfter(sooner.map_or(periodic, |sooner| sooner.min(periodic)))
}

/// Returns a number in [0, 1) that depends only on the object and `salt`: jitter without a random source.
pub fn spread(key: &ObjectKey, salt: u64) -> f64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    salt.hash(&mut hasher);
    // 32 bits are exact in an f64.
    f64::from(u32::try_from(hasher.finish() >> 32).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests;
