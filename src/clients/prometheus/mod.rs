//! The client of Prometheus' query API, as far as the last use of Instances needs it. `docs/prometheus-queries.md`
//! describes the queries for administrators.
//!
//! There are four sources: the requests of browsers, SSH through the bastion, SSH in the browser, and the open
//! connections of the last two. Each source has a query for the availability of its metric, and a query for the
//! metric of one Instance. The query for all Instances is made from the latter ([`QueryTemplate`]). One round
//! requests
//!
//! - the health of Prometheus;
//! - for each source: whether it exists now, since when, and whether it was missing for longer than a gap;
//! - the last use of every machine, in parts of the window ([`grid`]), the newest first ([`promql`]).
//!
//! A round has at most 60 requests, independent of the number of Instances: 11 for a window of some hours, and three
//! more if open connections have their own availability query. Requests are sent one after the other, because
//! requests for long windows keep a CPU of Prometheus busy for seconds. Errors are part of the result. They do not
//! affect other sources, and do not remove uses that were found.

mod activity;
mod answer;
mod error;
mod grid;
mod promql;
mod round;
pub mod telemetry;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::anyhow;
use http::Uri;
use jiff::Timestamp;

use crate::clients::http::HttpClient;
use crate::config::file::{self, FileError};
use crate::config::{PrometheusConfig, QueryTemplate, Signal};
use crate::runtime::clock;
use crate::runtime::outages::{Outages, System};
use activity::SourceActivity;
use error::{QueryError, Result};
use grid::Grid;
use round::Round;

pub use activity::{Activity, Target};

/// The limit for a response in bytes. A hundred thousand series have 20 MiB.
const LONGEST_ANSWER: usize = 64 << 20;

/// A client of one server. Clones share its connections.
#[derive(Clone, derive_more::Debug)]
#[debug("Prometheus({})", shared.base)]
pub struct Prometheus {
    shared: Arc<Shared>,
    outages: Outages,
}

struct Shared {
    /// The URL before `/api/v1`.
    base: String,
    http: HttpClient,
    timeout: Duration,
    token_file: String,
    /// The configured step, in seconds.
    step: i64,
    sources: Vec<Source>,
    /// Whether queries are sent with GET, because the server, or a proxy in front of it, rejects POST.
    use_get: AtomicBool,
}

/// An enabled source.
struct Source {
    name: &'static str,
    available: String,
    template: QueryTemplate,
    /// The labels whose values identify a machine.
    labels: Vec<String>,
    /// How the values show that a machine is used.
    signal: Signal,
}

impl Prometheus {
    /// Creates a client of the configured server and checks the queries. Sends nothing.
    ///
    /// # Errors
    /// When a data query cannot be made for all Instances, the URL is invalid, or the certificates of the authorities
    /// cannot be used.
    pub fn new(config: &PrometheusConfig) -> anyhow::Result<Self> {
        let base = config.url.trim_end_matches('/').to_owned();
        let url: Uri = base.parse().map_err(|error| anyhow!("integrations.prometheus.url: {error}"))?;
        let timeout = config.timeout.get();
        let http = HttpClient::new(&url, &config.ca_file, timeout, LONGEST_ANSWER)
            .map_err(|error| anyhow!("integrations.prometheus.caFile: {error}"))?;
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
            token_file: config.bearer_token_file.clone(),
            step: i64::try_from(config.query_step.get().as_secs()).unwrap_or(i64::MAX),
            sources,
            use_get: AtomicBool::new(false),
        };
        Ok(Self { shared: Arc::new(shared), outages: Outages::default() })
    }

    /// Returns the client, which then reports outages to `outages`.
    #[must_use]
    pub fn reporting_to(self, outages: &Outages) -> Self {
        Self { outages: outages.clone(), ..self }
    }

    /// The URL of the server.
    pub fn url(&self) -> &str {
        &self.shared.base
    }

    /// Checks whether Prometheus can answer queries.
    ///
    /// # Errors
    /// A sentence about the error.
    pub async fn ask(&self) -> Result<(), String> {
        let now = clock::now();
        let sources = &self.shared.sources;
        let result = async { self.healthy_round(now, now).await?.answers_queries(sources).await };
        result.await.map_err(|error: QueryError| error.to_string())
    }

    /// Returns the last use of every machine that any source has recorded from `since` to `now`, and the sources that
    /// failed. It takes at most 60 requests, or 63, independent of the number of machines. No request is repeated,
    /// and no further requests are sent for a source that fails.
    pub async fn activity(&self, since: Timestamp, now: Timestamp) -> Activity {
        let configured = &self.shared.sources;
        let mut sources: Vec<SourceActivity> =
            configured.iter().map(|source| SourceActivity::new(source.name, source.labels.len())).collect();
        let result = match self.healthy_round(since, now).await {
            Ok(round) => {
                let grid = Grid::new(since, now, self.shared.step);
                for (source, activity) in configured.iter().zip(&mut sources) {
                    round.source(source, &grid, activity).await;
                }
                round.result()
            }
            Err(error) => {
                for activity in &mut sources {
                    activity.fails(self.url(), &error);
                }
                Some(Err(error))
            }
        };
        if let Some(result) = result {
            self.outages.record(System::Prometheus, self.url(), &result);
        }
        Activity { since, until: now, answered: clock::now(), sources }
    }

    async fn healthy_round(&self, since: Timestamp, now: Timestamp) -> Result<Round<'_>> {
        let round = Round::new(&self.shared, self.token()?, (since, now));
        round.health().await?;
        Ok(round)
    }

    /// The bearer token, read from its file.
    fn token(&self) -> Result<Option<String>> {
        let path = &self.shared.token_file;
        if path.is_empty() {
            return Ok(None);
        }
        let unusable = |problem: FileError| QueryError::Token { path: path.clone(), problem };
        // The file is small and local: reading it here takes less time than a switch to another thread.
        match file::read_text(Path::new(path)).map_err(unusable)?.trim() {
            "" => Err(unusable(FileError::Empty)),
            token => Ok(Some(token.to_owned())),
        }
    }
}
