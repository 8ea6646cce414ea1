//! The clients of the API server: `kube`'s client for reads and watches, [`Writer`] for the writes of the loops, and
//! [`UserClient`] for requests on behalf of a user. All of them send our `User-Agent` and count their requests in the
//! metrics. The first two reject writes while the lease is not held.
//!
//! `kube`'s client (lists, watches, the lease, events, look-ups) honours `Retry-After`: it does not repeat a rejected
//! request earlier. For the writes of the loops, the queue delays the whole object instead.

mod list;
mod pages;
mod pauses;
mod unreachable;
mod user_client;

pub use pages::{each_listed, first_listed, page_of_pod};
pub use unreachable::why;
pub use user_client::{
    Call, Credential, Page, PassedIdentity, Patch, Preconditions, Right, Rules, Silence, Upgrade, UserClient,
};

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, Either, Ready, ready};
use http::header::DATE;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::core::Status;
use kube::{Client, Config};
use metrics::{Counter, Histogram, counter, histogram};
use parking_lot::RwLock;
use tower::layer::layer_fn;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use self::pauses::{Pauses, asked};
use self::unreachable::Unreachable;
use super::clock;
use super::error::{ApiError, NotLeader, with_sources};
use super::gate::Gate;
use super::pieces::LARGEST_OBJECT;

/// The `User-Agent` of all requests, as shown in the audit log.
pub const USER_AGENT: &str = concat!("crownlabs/", env!("CARGO_PKG_VERSION"));

/// The time limit of a request; for a watch, of the time until its response begins.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The message for a request that timed out.
const LATE: &str = "the API server did not answer in time";

/// The error of a response that does not continue within [`REQUEST_TIMEOUT`].
#[derive(Debug, thiserror::Error)]
#[error("the API server did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
pub struct NoAnswer;

impl From<NoAnswer> for kube::Error {
    fn from(error: NoAnswer) -> Self {
        Self::Service(Box::new(error))
    }
}

/// The configuration of all clients, with our `User-Agent` and without retries.
fn prepared(mut config: Config) -> Config {
    config.headers.push((HeaderName::from_static("user-agent"), HeaderValue::from_static(USER_AGENT)));
    // The queue retries, and checks the gate again; a retry below the gate would bypass it.
    config.default_retry = false;
    config
}

/// The URL of the API server, for messages.
fn url(config: &Config) -> Arc<str> {
    config.cluster_url.to_string().into()
}

/// Builds `kube`'s client, which sends writes only while `gate` is open.
///
/// # Errors
/// When the configuration is invalid, for example because of an unreadable certificate.
#[inline(never)] // much code, in several commands
pub fn build(config: Config, gate: Gate) -> kube::Result<Client> {
    let config = prepared(config);
    let (url, metrics) = (url(&config), RequestMetrics::new(&config));
    let gated = layer_fn(move |inner| {
        let (url, gate, metrics) = (Arc::clone(&url), gate.clone(), metrics.clone());
        Gated { inner, url, gate, metrics, pauses: Pauses::default() }
    });
    Ok(ClientBuilder::try_from(config)?.with_layer(&gated).build())
}

/// Sends the writes of the loops, with the same authentication, HTTP and TLS as `kube`'s client, but without its
/// request queue and tracing, which take more CPU time than the request itself.
#[derive(Clone)]
pub struct Writer {
    sender: Sender,
    gate: Gate,
}

impl Writer {
    /// Creates a writer that sends writes only while `gate` is open.
    ///
    /// # Errors
    /// When the configuration is invalid, for example because of an unreadable certificate.
    pub fn new(config: Config, gate: Gate) -> kube::Result<Self> {
        Ok(Self { sender: Sender::new(config)?, gate })
    }

    /// Sends a request and returns the body of the response.
    ///
    /// # Errors
    /// The error in the API server's response, with its message; [`ApiError::NotLeader`] when the lease is not held, so
    /// that the request was not sent.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Bytes, ApiError> {
        if request.method() != Method::GET && !self.gate.is_open() {
            return Err(ApiError::NotLeader);
        }
        self.sender.send(request, REQUEST_TIMEOUT).await
    }
}

/// A connection pool, with the layers that complete a request.
#[derive(Clone)]
struct Sender {
    service: BoxCloneSyncService<Request<Full<Bytes>>, Response<Incoming>, BoxError>,
    url: Arc<str>,
    metrics: RequestMetrics,
}

impl Sender {
    #[inline(never)] // much code, in several commands
    fn new(config: Config) -> kube::Result<Self> {
        let config = prepared(config);
        let pool = legacy::Client::builder(TokioExecutor::new()).build(config.rustls_https_connector()?);
        Self::through(&config, ServiceBuilder::new().map_err(BoxError::from).service(pool))
    }

    /// Creates a sender of a prepared configuration whose requests this service sends.
    fn through<S>(config: &Config, service: S) -> kube::Result<Self>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<Incoming>, Error = BoxError>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .service(service);
        let (url, metrics) = (url(config), RequestMetrics::new(config));
        Ok(Self { service: BoxCloneSyncService::new(service), url, metrics })
    }

    /// Sends a request and returns the body of the response. Both together take at most `limit`.
    async fn send(&self, request: Request<Full<Bytes>>, limit: Duration) -> Result<Bytes, ApiError> {
        let answered = self.exchange(request, limit).await?;
        if answered.code.as_u16() < 400 { Ok(answered.body) } else { Err(refusal(&answered)) }
    }

    /// Sends a request and returns the response, whatever its status code is.
    async fn exchange(&self, request: Request<Full<Bytes>>, limit: Duration) -> Result<Answered, ApiError> {
        let method = request.method().clone();
        let begin = Instant::now();
        let exchange = async { self.read(self.begin(request).await?).await };
        let answer = tokio::time::timeout(limit, exchange).await.unwrap_or_else(|_| Err(LATE.into()));
        let code = answer.as_ref().ok().map(|answered| answered.code.as_u16());
        self.metrics.count(&method, code, begin.elapsed());
        answer.map_err(|error| ApiError::transient(with_sources(&*error)))
    }

    /// Sends a request and returns the beginning of the response.
    async fn begin(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, BoxError> {
        let answer = self.service.clone().oneshot(request).await;
        answer.map_err(|error| Unreachable::named(&self.url, error))
    }

    /// Reads a response about one object.
    async fn read(&self, answer: Response<Incoming>) -> Result<Answered, BoxError> {
        let code = answer.status();
        if let Some(date) = answer.headers().get(DATE).and_then(|date| date.to_str().ok()) {
            clock::state(date);
        }
        let retry_after = asked(answer.headers());
        let body = Limited::new(answer.into_body(), LARGEST_OBJECT).collect().await?.to_bytes();
        Ok(Answered { code, retry_after, body })
    }
}

/// A response.
struct Answered {
    code: StatusCode,
    /// The value of the header `Retry-After`.
    retry_after: Option<Duration>,
    body: Bytes,
}

/// Returns the error of a response with a status code of 400 or above. A proxy in front of the API server, and the API
/// server itself when it is overloaded, send a body that is not a `Status`.
fn refusal(answered: &Answered) -> ApiError {
    let status = status_of(answered);
    if let Some(denied) = ApiError::denied(&status) {
        return denied;
    }
    match ApiError::from_status(&status) {
        ApiError::Transient { message, retry_after: asked } => {
            ApiError::Transient { message, retry_after: asked.max(answered.retry_after) }
        }
        other => other,
    }
}

fn status_of(Answered { code, body, .. }: &Answered) -> Status {
    let mut status: Status = serde_json::from_slice(body).unwrap_or_default();
    if status.code == 0 {
        status.code = code.as_u16();
        status.message = format!("HTTP {}: {}", code.as_u16(), String::from_utf8_lossy(body).trim());
    }
    status
}

/// The metrics `rest_client_*`. Each counter and histogram is registered once and then reused.
#[derive(Clone)]
struct RequestMetrics {
    host: Arc<str>,
    durations: MetricHandles<Method, Histogram>,
    totals: MetricHandles<(Method, Option<u16>), Counter>,
}

/// The registered metrics, by their labels.
type MetricHandles<K, V> = Arc<RwLock<HashMap<K, V>>>;

impl RequestMetrics {
    fn new(config: &Config) -> Self {
        let host = config.cluster_url.authority().map_or("", |authority| authority.as_str());
        Self { host: host.into(), durations: Arc::default(), totals: Arc::default() }
    }

    /// Counts a request. `code` is the HTTP status of the response; `None` if there was no response.
    fn count(&self, method: &Method, code: Option<u16>, took: Duration) {
        let host = || self.host.to_string();
        known(&self.durations, method.clone(), || {
            histogram!("rest_client_request_duration_seconds", "verb" => method.to_string(), "host" => host())
        })
        .record(took);
        known(&self.totals, (method.clone(), code), || {
            let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
            counter!("rest_client_requests_total", "code" => code, "method" => method.to_string(), "host" => host())
        })
        .increment(1);
    }
}

/// Returns the entry with this key; `make` creates it on the first call.
fn known<K: Eq + std::hash::Hash, V: Clone>(
    map: &RwLock<HashMap<K, V>>,
    key: K,
    make: impl FnOnce() -> V,
) -> V {
    if let Some(found) = map.read().get(&key) {
        return found.clone();
    }
    map.write().entry(key).or_insert_with(make).clone()
}

/// The outermost service of `kube`'s client: checks the gate, waits for pauses, limits the time, and counts requests.
struct Gated<S> {
    inner: S,
    url: Arc<str>,
    gate: Gate,
    metrics: RequestMetrics,
    pauses: Pauses,
}

impl<S, B> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future =
        Either<Ready<Result<Self::Response, BoxError>>, BoxFuture<'static, Result<Self::Response, BoxError>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let (gate, metrics, pauses) = (self.gate.clone(), self.metrics.clone(), self.pauses.clone());
        let url = Arc::clone(&self.url);
        if method != Method::GET && !gate.is_open() {
            return Either::Left(ready(Err(Box::new(NotLeader))));
        }
        // The future sends nothing before it is awaited.
        let answer = self.inner.call(request);
        Either::Right(Box::pin(async move {
            pauses.wait(&method, &path).await;
            if method != Method::GET && !gate.is_open() {
                return Err(Box::new(NotLeader) as BoxError);
            }
            let begin = Instant::now();
            // `kube` itself has no timeout: a hanging connection must fail only one attempt.
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await;
            let answer = answer.unwrap_or_else(|_| Err(Unreachable::late(&url)));
            let answer = answer.map_err(|error| Unreachable::named(&url, error));
            let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            metrics.count(&method, code, begin.elapsed());
            if let Ok(answer) = &answer {
                pauses.note(&method, &path, answer.status(), answer.headers());
            }
            answer
        }))
    }
}

#[cfg(test)]
mod tests;
