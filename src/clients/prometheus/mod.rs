//! Prometheus' query API, as far as the last use of Instances needs it. `docs/prometheus-queries.md` describes
//! the queries for administrators.
//!
//! There are four sources: the requests of browsers, SSH through the bastion, SSH in the browser, and which connections of
//! the last two are open. Each has a query that tells whether its metric is recorded, and one for the metric of one Instance,
//! from which a query for all Instances is made ([`QueryTemplate`]). One round asks
//!
//! - whether Prometheus is healthy;
//! - of each source: is it there now, since when, and was it missing for longer than a gap;
//! - the last use of every machine, in parts of the window ([`grid`]), the newest first ([`promql`]).
//!
//! These are at most 60 requests, however many Instances there are: 11 for a window of some hours, and three more where open
//! connections have a query of availability of their own. One is sent
//! after the other, because those for long windows keep a processor of Prometheus busy for seconds. What fails
//! is in the result: it says nothing of the other sources, and takes no use back that was found.

mod activity;
mod answer;
mod error;
mod grid;
mod promql;
mod round;
pub mod telemetry;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::anyhow;
use http::Uri;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::clients::http::HttpClient;
use crate::config::{PrometheusConfig, QueryTemplate, Signal};
use crate::runtime::clock;
use activity::SourceActivity;
use error::QueryError;
use grid::Grid;
use round::Round;

pub use activity::{Activity, Target};

/// The longest answer that is read, in bytes: a hundred thousand series have 20 MiB.
const LONGEST_ANSWER: usize = 64 << 20;

/// A client of one server. Clones share its connections.
#[derive(Clone, derive_more::Debug)]
#[debug("Prometheus({})", shared.base)]
pub struct Prometheus {
    shared: Arc<Shared>,
}

struct Shared {
    /// The URL before `/api/v1`.
    base: String,
    http: HttpClient,
    timeout: Duration,
    token_file: Option<PathBuf>,
    /// The configured step, in seconds.
    step: i64,
    sources: Vec<Source>,
    /// Whether queries are sent with GET, because the server, or one in front of it, refuses POST.
    use_get: AtomicBool,
}

/// A source that is on.
struct Source {
    name: &'static str,
    available: String,
    template: QueryTemplate,
    /// The labels with the values that identify a machine.
    labels: Vec<String>,
    /// Which values say that a machine is used.
    signal: Signal,
}

impl Prometheus {
    /// A client of the configured server. Checks the queries and sends nothing.
    ///
    /// # Errors
    /// When a query of data is not one that can be made for all Instances, the URL is not one, or the
    /// certificates of the authorities cannot be used.
    pub fn new(config: &PrometheusConfig) -> anyhow::Result<Self> {
        let base = config.url.trim_end_matches('/').to_owned();
        let url: Uri = base.parse().map_err(|error| anyhow!("integrations.prometheus.url: {error}"))?;
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        let timeout = config.timeout.get();
        let http = HttpClient::new(&url, path(&config.ca_file), timeout)
            .map_err(|error| anyhow!("integrations.prometheus: {error}"))?
            .with_longest_answer(LONGEST_ANSWER);
        let mut sources = Vec::new();
        for source in config.queries.sources().into_iter().filter(|source| !source.data.is_empty()) {
            let key = source.data_key;
            let template = QueryTemplate::parse(source.data, source.subject)
                .map_err(|error| anyhow!("integrations.prometheus.queries.{key}: {error}"))?;
            let labels = template.value_labels();
            let available = source.available.to_owned();
            let (name, signal) = (source.name, source.signal);
            sources.push(Source { name, available, template, labels, signal });
        }
        let shared = Shared {
            base,
            http,
            timeout,
            token_file: path(&config.bearer_token_file),
            step: i64::try_from(config.query_step.get().as_secs()).unwrap_or(i64::MAX),
            sources,
            use_get: AtomicBool::new(false),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The last use of every machine that any source has seen from `since` to `now`, and which sources could
    /// not be asked. It takes at most 60 requests, or 63, whatever the number of machines; none is repeated, and a
    /// source that fails is not asked any further.
    pub async fn activity(&self, since: Timestamp, now: Timestamp) -> Activity {
        let round = match self.token() {
            Ok(token) => Round { shared: &self.shared, token, now, since, known: Mutex::default() },
            Err(error) => return self.shared.unknown(since, now, &error),
        };
        if let Err(error) = round.health().await {
            return self.shared.unknown(since, now, &error);
        }
        let grid = Grid::new(since, now, self.shared.step);
        let mut sources = Vec::new();
        for source in &self.shared.sources {
            sources.push(round.source(source, &grid).await);
        }
        Activity { since, until: now, answered: clock::now(), sources }
    }

    /// The bearer token, read from its file.
    fn token(&self) -> Result<Option<String>, QueryError> {
        let Some(path) = &self.shared.token_file else { return Ok(None) };
        let unusable = |problem: &str| QueryError::Token { path: path.clone(), problem: problem.to_owned() };
        // A small local file: reading it takes less time than another thread would.
        let content = std::fs::read_to_string(path).map_err(|error| unusable(&error.to_string()))?;
        match content.trim() {
            "" => Err(unusable("it is empty")),
            token => Ok(Some(token.to_owned())),
        }
    }
}

impl Shared {
    /// The activity when no source can be asked.
    fn unknown(&self, since: Timestamp, now: Timestamp, error: &QueryError) -> Activity {
        let sources = self.sources.iter().map(|source| {
            let mut activity = SourceActivity::new(source.name, source.labels.len());
            activity.fails(&self.base, error);
            activity
        });
        Activity { since, until: now, answered: clock::now(), sources: sources.collect() }
    }
}
