//! The queries of status URLs that are under way, and the result of the last one of each Instance.
//!
//! A query is a task of its own, so that a URL that hangs occupies no worker. Its result is kept in memory until the
//! next query, and adds the Instance to the queue.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use jiff::Timestamp;
use metrics::counter;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::observe::{Check, was_ready};
use super::plan::SHORTEST;
use crate::api::instance::Instance;
use crate::clients::status_check::{StatusClient, Verdict};
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::queue::{Priority, Queue};

/// How many URLs are queried at the same time, each over a connection of its own.
const MOST_AT_ONCE: usize = 256;

/// The metric that counts queries by their result.
const METRIC: &str = "instance_status_checks_total";

/// The last query of each Instance.
#[derive(Clone)]
pub struct Checks {
    client: StatusClient,
    queue: Arc<Queue>,
    known: Arc<Mutex<Known>>,
    slots: Arc<Semaphore>,
}

#[derive(Default)]
struct Known {
    entries: HashMap<ObjectKey, Entry>,
    /// When the queries of the last seconds began, also of Instances that are forgotten: neither a label that is set again
    /// nor an Instance that is created again is queried sooner.
    begun: HashMap<ObjectKey, Timestamp>,
    /// The number of the last query, of any Instance.
    serial: u64,
}

struct Entry {
    check: Check,
    serial: u64,
    task: AbortHandle,
}

impl Drop for Entry {
    /// Ends the query if it is still under way.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Checks {
    /// Without any query yet. Results add their Instances to `queue`.
    pub fn new(client: StatusClient, queue: Arc<Queue>) -> Self {
        for result in ["kept", "terminated", "failed"] {
            counter!(METRIC, "result" => result).increment(0);
        }
        Self { client, queue, known: Arc::default(), slots: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }

    /// The last query of an Instance.
    pub fn last(&self, key: &ObjectKey) -> Option<Check> {
        self.lock().entries.get(key).map(|entry| entry.check.clone())
    }

    /// When a query for an Instance of this name last began, if that was not long ago.
    pub fn begun(&self, key: &ObjectKey) -> Option<Timestamp> {
        self.lock().begun.get(key).copied()
    }

    /// Drops what is known about an Instance, and ends its query if one is under way.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().entries.remove(key);
    }

    /// Begins a query of the status URL of an Instance; another one of the same Instance ends.
    pub fn begin(&self, instance: &Instance, url: &str) {
        let key = ObjectKey::of(instance);
        // Locked until the task is in the entry: the task cannot record its result before.
        let mut known = self.lock();
        let now = clock::now();
        known.begun.retain(|_, begun| now.duration_since(*begun).unsigned_abs() < SHORTEST);
        known.begun.insert(key.clone(), now);
        known.serial += 1;
        let serial = known.serial;
        let last = known.entries.get(&key).map(|entry| &entry.check);
        let same = last.filter(|last| last.url == url && last.uid == instance.uid());
        let check = Check {
            uid: instance.uid().to_owned(),
            url: url.to_owned(),
            generation: instance.metadata.generation,
            was_ready: was_ready(instance),
            failures: same.map_or(0, |last| last.failures),
            gone_since: same.and_then(|last| last.gone_since),
            result: None,
        };
        let (checks, at, url) = (self.clone(), key.clone(), url.to_owned());
        let task = tokio::spawn(async move {
            let checked = AssertUnwindSafe(checks.check(&url)).catch_unwind().await;
            let verdict = checked.unwrap_or_else(|_| Verdict::Failed {
                reason: "the query panicked; this is a defect of the daemon".to_owned(),
                has_answered: false,
            });
            checks.record(at, serial, verdict);
        });
        known.entries.insert(key, Entry { check, serial, task: task.abort_handle() });
    }

    async fn check(&self, url: &str) -> Verdict {
        // The semaphore is never closed.
        let _slot = self.slots.acquire().await;
        self.client.check(url).await
    }

    /// Keeps the result of a query, unless another one has begun since.
    fn record(&self, key: ObjectKey, serial: u64, verdict: Verdict) {
        let result = match verdict {
            Verdict::Keep { .. } => "kept",
            Verdict::Gone { .. } => "terminated",
            Verdict::Failed { .. } => "failed",
        };
        counter!(METRIC, "result" => result).increment(1);
        let mut known = self.lock();
        let Some(entry) = known.entries.get_mut(&key).filter(|entry| entry.serial == serial) else { return };
        entry.check.end(clock::now(), verdict);
        drop(known);
        self.queue.add(key, Priority::Change);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // No code that can panic runs while the data is inconsistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
