//! The configured registries, and their queries.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use jiff::SignedDuration;
use metrics::{counter, gauge};

use super::observe::Query;
use super::plan::is_doubted;
use crate::api::image_list::ImageList;
use crate::clients::registry::{QueryError, Registry};
use crate::config::RegistryConfig;
use crate::controllers::shared::queries::Queries;
use crate::runtime::outages::Outages;
use crate::runtime::queue::Queue;
use crate::runtime::{ObjectKey, clock};

/// The metric with the number of queries by list and result.
const QUERIES: &str = "image_list_queries_total";
/// The metric with the time of the last successful query of each list.
const LAST_SUCCESS: &str = "image_list_last_success_timestamp_seconds";

/// The registries, by the keys of their lists.
pub struct Registries {
    known: HashMap<ObjectKey, Registry>,
    /// The last query of each list.
    pub queries: Queries<Query>,
}

impl Registries {
    /// Starts without any query. Results add their lists to `queue`, and outages are reported.
    pub fn new(registries: &[RegistryConfig], queue: Arc<Queue>, outages: &Outages) -> Self {
        let mut known = HashMap::new();
        for registry in registries {
            for result in ["succeeded", "failed"] {
                let name = registry.image_list_name.clone();
                counter!(QUERIES, "image_list" => name, "result" => result).increment(0);
            }
            known.insert(key(registry), Registry::new(registry.clone()).reporting_to(outages));
        }
        Self { known, queries: Queries::new(queue) }
    }

    /// Starts a query of a list's registry and cancels an earlier one.
    pub fn begin(&self, list: &ImageList) {
        let key = ObjectKey::of(list);
        let Some(registry) = self.known.get(&key).cloned() else { return };
        let query = |last: Option<&Query>| Query {
            begun: clock::now(),
            failures: last.map_or(0, |last| last.failures),
            empty: last.map_or(0, |last| last.empty),
            last_success: last.and_then(|last| match &last.result {
                Some((ended, Ok(listing))) if !is_doubted(listing, list, last.empty) => Some(*ended),
                _ => last.last_success,
            }),
            result: None,
            is_settled: false,
        };
        let name = list.name().to_owned();
        let answer = async move {
            let listed = AssertUnwindSafe(registry.list()).catch_unwind().await;
            let listed = listed.unwrap_or(Err(QueryError::Panicked));
            let result = if listed.is_ok() { "succeeded" } else { "failed" };
            counter!(QUERIES, "image_list" => name.clone(), "result" => result).increment(1);
            if listed.is_ok() {
                let ended = SignedDuration::from_secs(clock::now().as_second());
                gauge!(LAST_SUCCESS, "image_list" => name).set(ended.as_secs_f64());
            }
            listed.map(Arc::new)
        };
        self.queries.begin(key, query, answer);
    }
}

/// The key of the list of a registry.
pub fn key(registry: &RegistryConfig) -> ObjectKey {
    ObjectKey::new("", registry.image_list_name.as_str())
}
