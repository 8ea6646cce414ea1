//! The queries of status URLs: how many there may be at the same time, and how soon one may follow another.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use jiff::Timestamp;
use metrics::counter;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::observe::{Check, was_ready};
use super::plan::SHORTEST;
use crate::api::instance::Instance;
use crate::clients::status_check::{StatusClient, Verdict};
use crate::controllers::shared::queries::Queries;
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::queue::Queue;

/// How many URLs are queried at the same time, each over a connection of its own.
const MOST_AT_ONCE: usize = 256;

/// The metric that counts queries by their result.
const METRIC: &str = "instance_status_checks_total";

/// Queries status URLs.
pub struct Checks {
    client: StatusClient,
    /// The last query of each Instance.
    pub queries: Queries<Check>,
    /// When the queries of the last seconds began, also of Instances that are forgotten: neither a label that is set again
    /// nor an Instance that is created again is queried sooner.
    begun: Mutex<HashMap<ObjectKey, Timestamp>>,
    slots: Arc<Semaphore>,
}

impl Checks {
    /// Without any query yet. Results add their Instances to `queue`.
    pub fn new(client: StatusClient, queue: Arc<Queue>) -> Self {
        for result in ["kept", "terminated", "failed"] {
            counter!(METRIC, "result" => result).increment(0);
        }
        let slots = Arc::new(Semaphore::new(MOST_AT_ONCE));
        Self { client, queries: Queries::new(queue), begun: Mutex::default(), slots }
    }

    /// When a query for an Instance of this name last began, if that was not long ago.
    pub fn begun(&self, key: &ObjectKey) -> Option<Timestamp> {
        self.begun.lock().get(key).copied()
    }

    /// Begins a query of the status URL of an Instance; another one of the same Instance ends.
    pub fn begin(&self, instance: &Instance, url: &str) {
        let (key, now) = (ObjectKey::of(instance), clock::now());
        let mut begun = self.begun.lock();
        begun.retain(|_, begun| now.duration_since(*begun).unsigned_abs() < SHORTEST);
        begun.insert(key.clone(), now);
        drop(begun);
        let query = |last: Option<&Check>| {
            let same = last.filter(|last| last.url == url && last.uid == instance.uid());
            Check {
                uid: instance.uid().to_owned(),
                url: url.to_owned(),
                generation: instance.metadata.generation,
                was_ready: was_ready(instance),
                failures: same.map_or(0, |last| last.failures),
                gone_since: same.and_then(|last| last.gone_since),
                result: None,
            }
        };
        let answer = check(self.client.clone(), Arc::clone(&self.slots), url.to_owned());
        self.queries.begin(key, query, answer);
    }
}

/// Queries a URL when it is its turn, and counts the result.
async fn check(client: StatusClient, slots: Arc<Semaphore>, url: String) -> Verdict {
    // The semaphore is never closed.
    let _slot = slots.acquire().await;
    let checked = AssertUnwindSafe(client.check(&url)).catch_unwind().await;
    let verdict = checked.unwrap_or_else(|_| Verdict::Failed {
        reason: "the query panicked; this is a defect of the daemon".to_owned(),
        has_answered: false,
    });
    let result = match &verdict {
        Verdict::Keep { .. } => "kept",
        Verdict::Gone { .. } => "terminated",
        Verdict::Failed { .. } => "failed",
    };
    counter!(METRIC, "result" => result).increment(1);
    verdict
}
