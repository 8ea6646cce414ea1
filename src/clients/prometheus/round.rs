//! The requests of one round.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use http::StatusCode;
use jiff::Timestamp;
use metrics::{counter, histogram};
use parking_lot::Mutex;
use reqwest::RequestBuilder;

use super::activity::SourceActivity;
use super::answer::{Sample, vector};
use super::error::{QueryError, Result};
use super::grid::{Beginning, FEWER_PARTS, Grid, MOST_PARTS};
use super::{Shared, Source, promql};
use crate::clients::http::{Answer, HttpError};
use crate::config::Signal;

/// One call of `Prometheus::activity`.
pub(super) struct Round<'a> {
    pub shared: &'a Shared,
    /// The bearer token of all requests.
    pub token: Option<String>,
    pub since: Timestamp,
    pub now: Timestamp,
    /// The results of number queries, by query and time. Sources may share an availability query.
    pub known: Mutex<HashMap<(String, i64), Number>>,
    /// Whether a query had a result.
    is_answered: AtomicBool,
    /// The first error of a query, and whether it would affect other queries, too.
    error: Mutex<Option<(QueryError, bool)>>,
}

/// The value of the first series of a response, and the warnings of Prometheus.
type Number = (Option<f64>, Vec<String>);

impl<'a> Round<'a> {
    /// A round for the uses from `since` to `now`.
    pub fn new(shared: &'a Shared, token: Option<String>, (since, now): (Timestamp, Timestamp)) -> Self {
        let (known, is_answered, error) = (Mutex::default(), AtomicBool::default(), Mutex::default());
        Self { shared, token, since, now, known, is_answered, error }
    }

    /// Returns whether Prometheus works: `Ok` if a query had a result, and an error if every query failed.
    /// `None` if this is not certain: there are no sources, or the server failed during the round.
    pub fn result(self) -> Option<Result<()>> {
        match (self.is_answered.into_inner(), self.error.into_inner()) {
            (true, None | Some((_, false))) => Some(Ok(())),
            (true, Some((_, true))) | (false, None) => None,
            (false, Some((error, _))) => Some(Err(error)),
        }
    }

    /// Checks whether Prometheus can answer queries.
    pub async fn health(&self) -> Result<()> {
        let Shared { http, base, .. } = self.shared;
        let answer = self.send("health", http.client.get(format!("{base}/-/healthy"))).await?;
        match answer.status {
            StatusCode::OK => Ok(()),
            status => Err(QueryError::Unhealthy(status)),
        }
    }

    /// Checks whether Prometheus answers the query that a round of these sources begins with.
    pub async fn answers_queries(&self, sources: &[Source]) -> Result<()> {
        let mut refusal = None;
        for source in sources {
            let answer = self.query("available", &source.available, self.now.as_millisecond()).await?;
            match vector(&answer, &mut Vec::new()) {
                Ok(_) => return Ok(()),
                Err(error) if error.is_of_the_server() => return Err(error),
                // The query of another source may be valid.
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Adds the uses that a source has recorded.
    pub async fn source(&self, source: &Source, grid: &Grid, activity: &mut SourceActivity) {
        let result = async {
            let beginnings = self.availability(source, grid, activity).await?;
            // Uses are also queried if the source is missing now, because earlier uses count.
            self.uses(source, grid, &beginnings, activity).await
        };
        if let Err(error) = result.await {
            self.failed(error, activity);
        }
    }

    /// Records that a query of a source failed.
    fn failed(&self, error: QueryError, activity: &mut SourceActivity) {
        activity.fails(&self.shared.base, &error);
        // A timeout of one query does not affect other queries.
        let is_timeout = matches!(error, QueryError::Http(HttpError::Timeout(_)));
        let is_of_the_server = error.is_of_the_server() && !is_timeout;
        let mut known = self.error.lock();
        if known.as_ref().is_none_or(|(_, is_of_the_server)| !is_of_the_server) {
            *known = Some((error, is_of_the_server));
        }
    }

    /// Checks whether the source exists, and since when. Returns the ranges of points where series begin that existed
    /// before. Fails if further queries are pointless.
    async fn availability(
        &self,
        source: &Source,
        grid: &Grid,
        activity: &mut SourceActivity,
    ) -> Result<Vec<Beginning>> {
        let available = &source.available;
        let now = self.now.as_millisecond();
        match self.number("available", available, now, activity).await {
            Ok(Some(count)) if count >= 1.0 => {}
            Ok(_) => activity.is_missing(available),
            Err(error) if error.is_of_the_server() => return Err(error),
            Err(error) => self.failed(error, activity),
        }
        // If Prometheus rejects this query, it rejects the queries that are made from it, too.
        let (mut first, end) = (None, grid.last_past * 1_000);
        if activity.failures.is_empty() {
            let missing = promql::last_missing(available, grid);
            let missing = self.number("history", &missing, end, activity).await?;
            activity.observed(self.since, missing, grid.step);
            if missing.is_none() {
                return Ok(Vec::new());
            }
            let query = promql::first_available(available, grid);
            first = self.number("history", &query, end, activity).await?;
        }
        Ok(grid.beginnings(first))
    }

    /// Adds the uses that the source has recorded. If a part fails, the uses of the newer parts are kept.
    async fn uses(
        &self,
        source: &Source,
        grid: &Grid,
        beginnings: &[Beginning],
        activity: &mut SourceActivity,
    ) -> Result<()> {
        let parts = match source.signal {
            Signal::Change => grid.parts(MOST_PARTS),
            Signal::Positive => grid.parts(FEWER_PARTS),
        };
        for part in parts {
            let query = match source.signal {
                Signal::Change => promql::last_change(&source.template, grid, part, beginnings),
                Signal::Positive => promql::last_positive(&source.template, grid, part),
            };
            let answer = self.query("uses", &query, part.last * 1_000).await?;
            let mut warnings = Vec::new();
            for sample in self.series(&answer, &mut warnings)? {
                activity.uses.add(&sample, &source.labels);
            }
            activity.warned(&warnings);
        }
        Ok(())
    }

    /// Returns the value of the first series of a result; `None` for an empty result.
    async fn number(
        &self,
        operation: &'static str,
        query: &str,
        millisecond: i64,
        activity: &mut SourceActivity,
    ) -> Result<Option<f64>> {
        let key = (query.to_owned(), millisecond);
        let known = self.known.lock().get(&key).cloned();
        let (number, warnings) = if let Some(known) = known {
            known
        } else {
            let answer = self.query(operation, query, millisecond).await?;
            let mut warnings = Vec::new();
            let number = self.series(&answer, &mut warnings)?.first().map(Sample::value);
            self.known.lock().insert(key, (number, warnings.clone()));
            (number, warnings)
        };
        activity.warned(&warnings);
        Ok(number)
    }

    /// Parses the series in the response to a query. Records that Prometheus has answered it.
    fn series<'b>(&self, answer: &'b Answer, warnings: &mut Vec<String>) -> Result<Vec<Sample<'b>>> {
        let series = vector(answer, warnings)?;
        self.is_answered.store(true, Ordering::Relaxed);
        Ok(series)
    }

    /// Returns the response to an instant query, whatever it contains.
    async fn query(&self, operation: &'static str, query: &str, millisecond: i64) -> Result<Answer> {
        let Shared { http, base, timeout, use_get, .. } = self.shared;
        let url = format!("{base}/api/v1/query");
        let time = format!("{}.{:03}", millisecond / 1_000, millisecond % 1_000);
        // Prometheus aborts the query at the same time as this client.
        let timeout = format!("{}ms", timeout.as_millis().max(1));
        let parameters = [("query", query), ("time", &time), ("timeout", &timeout)];
        if !use_get.load(Ordering::Relaxed) {
            let answer = self.send(operation, http.client.post(&url).form(&parameters)).await?;
            if !matches!(answer.status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) {
                return Ok(answer);
            }
            // Old servers, and read-only proxies, support only GET.
            use_get.store(true, Ordering::Relaxed);
        }
        Ok(self.send(operation, http.client.get(&url).query(&parameters)).await?)
    }

    /// Sends a request and counts it.
    async fn send(&self, operation: &'static str, request: RequestBuilder) -> Result<Answer, HttpError> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let begin = Instant::now();
        let answer = self.shared.http.send(request).await;
        let took = begin.elapsed();
        histogram!("prometheus_client_request_duration_seconds", "operation" => operation).record(took);
        // Without a response, the label `code` is `<error>`, as in `rest_client_requests_total`.
        let code = answer.as_ref().map_or("<error>", |answer| answer.status.as_str()).to_owned();
        counter!("prometheus_client_requests_total", "operation" => operation, "code" => code).increment(1);
        answer
    }
}
