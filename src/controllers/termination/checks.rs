//! The queries of status URLs, their maximum number at the same time, and the minimum time between them.

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
use crate::runtime::queue::Queue;
use crate::runtime::{ObjectKey, clock};

/// The maximum number of URLs that are queried at the same time, each over its own connection.
const MOST_AT_ONCE: usize = 256;

/// The metric with the number of queries by result.
const METRIC: &str = "instance_status_checks_total";

/// Queries status URLs.
pub struct Checks {
    client: StatusClient,
    /// The last query of each Instance.
    pub queries: Queries<Check>,
    /// The start times of recent queries, including queries for forgotten Instances. So a label that is set again, or
    /// an Instance that is created again, does not cause an earlier query.
    begun: Mutex<HashMap<ObjectKey, Timestamp>>,
    slots: Arc<Semaphore>,
}

impl Checks {
    /// Starts without any query. Results add their Instances to `queue`.
    pub fn new(client: StatusClient, queue: Arc<Queue>) -> Self {
        for result in ["kept", "terminated", "failed"] {
            counter!(METRIC, "result" => result).increment(0);
        }
        let slots = Arc::new(Semaphore::new(MOST_AT_ONCE));
        Self { client, queries: Queries::new(queue), begun: Mutex::default(), slots }
    }

    /// The start of the last query for an Instance with this name, if it was recent.
    pub fn begun(&self, key: &ObjectKey) -> Option<Timestamp> {
        self.begun.lock().get(key).copied()
    }

    /// Starts a query of an Instance's status URL and cancels an earlier one.
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

/// Waits for a free slot, queries a URL, and counts the result.
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
