//! The HTTPS server that the API server sends its reviews to.
//!
//! The metrics have the names and labels of controller-runtime; a review that is answered counts
//! with code 200, whatever the answer.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::{counter, histogram};
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, error, warn};

use super::certificate::bundle::provider;
use super::decision::Decision;
use super::review::{self, Request};

/// What clients are held to.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The bytes of the largest review.
    pub body: usize,
    /// A client that has not agreed on a key, or not sent its review, after this long has gone.
    pub patience: Duration,
    /// A connection without requests is closed after this long.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // An object before and after, each of the 3 MiB that the API server takes, and what stands
            // around them.
            body: 7 << 20,
            patience: Duration::from_secs(10),
            // By then the API server has closed it itself (90 s), so that it never sends a review into
            // a connection that is being closed.
            idle: Duration::from_mins(2),
        }
    }
}

/// Judges a request.
pub type Rule = Arc<dyn Fn(Request) -> BoxFuture<'static, Decision> + Send + Sync>;
/// The rules by the path that they are asked at.
pub type Rules = HashMap<&'static str, Rule>;

/// Serves until `stop` becomes true, and then until the requests that are under way are answered.
///
/// # Errors
/// When the TLS library refuses its own defaults.
pub async fn serve(
    listener: TcpListener,
    certificate: Arc<dyn ResolvesServerCert>,
    rules: Rules,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) -> Result<(), rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let rules = Arc::new(rules);
    rules.keys().for_each(|path| count(path, None));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // A connection that has ended is forgotten.
            Some(_) = connections.join_next() => continue,
            () = stopped(&mut stop) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection =
                    connection(stream, acceptor.clone(), Arc::clone(&rules), limits, stop.clone());
                connections.spawn(connection);
            }
            Err(error) => {
                // Out of file descriptors, or a connection that was gone before we took it.
                debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// Ends when `stop` becomes true, or nobody can say so any more.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    rules: Arc<Rules>,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let stream = match timeout(limits.patience, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return warn!(%error, "an admission client could not be agreed with on TLS"),
        Err(_) => return debug!("an admission client did not finish the TLS handshake in time"),
    };
    let service = service_fn(move |request| {
        let rules = Arc::clone(&rules);
        async move { Ok::<_, Infallible>(respond(&rules, limits, request).await) }
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.idle)
            .serve_connection(TokioIo::new(stream), service)
    );
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = stopped(&mut stop) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        debug!(%error, "an admission connection ended early");
    }
}

/// A text instead of an answer.
type Refusal = (StatusCode, String);

async fn respond(
    rules: &Rules,
    limits: Limits,
    request: http::Request<Incoming>,
) -> http::Response<Full<Bytes>> {
    let begin = Instant::now();
    let Some((path, rule)) = rules.get_key_value(request.uri().path()) else {
        return response(StatusCode::NOT_FOUND, "text/plain", "no such webhook\n".to_owned());
    };
    let response = match answer(rule, limits, request).await {
        Ok(answer) => response(StatusCode::OK, "application/json", answer),
        Err((status, reason)) => {
            warn!(webhook = path, %status, reason, "an admission review was not answered");
            response(status, "text/plain", format!("{reason}\n"))
        }
    };
    count(path, Some(response.status()));
    histogram!("controller_runtime_webhook_latency_seconds", "webhook" => *path).record(begin.elapsed());
    response
}

async fn answer(rule: &Rule, limits: Limits, request: http::Request<Incoming>) -> Result<String, Refusal> {
    if request.method() != Method::POST {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "reviews are sent by POST".to_owned()));
    }
    let body = body(limits, request).await?;
    let review = review::read(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let uid = review.uid.clone();
    // A defect that shows with one object must not stop the review of all others.
    let decision = AssertUnwindSafe(async { rule(review).await }).catch_unwind().await.map_err(|_| {
        error!(uid, "the rule panicked; this is a defect of the daemon");
        (StatusCode::INTERNAL_SERVER_ERROR, "the rule panicked; this is a defect of the daemon".to_owned())
    })?;
    if let Err(denial) = &decision.outcome {
        debug!(uid, reason = denial.reason(), message = denial.message(), "refused");
    }
    Ok(review::answer(&uid, &decision).to_string())
}

async fn body(limits: Limits, request: http::Request<Incoming>) -> Result<Bytes, Refusal> {
    let collected = timeout(limits.patience, Limited::new(request.into_body(), limits.body).collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if is_too_long(&*error) => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, format!("a review has at most {} bytes", limits.body)))
        }
        Ok(Err(error)) => Err((StatusCode::BAD_REQUEST, format!("the review broke off: {error}"))),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the review did not arrive in time".to_owned())),
    }
}

fn is_too_long(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.is::<LengthLimitError>()
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> http::Response<Full<Bytes>> {
    let mut response = http::Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Counts an answer; without one, starts the series of those that are expected at zero.
fn count(path: &'static str, status: Option<StatusCode>) {
    let total = |code: StatusCode| counter!("controller_runtime_webhook_requests_total", "webhook" => path, "code" => code.as_u16().to_string());
    match status {
        Some(status) => total(status).increment(1),
        None => {
            [StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR]
                .map(total)
                .iter()
                .for_each(|c| c.increment(0));
        }
    }
}

#[cfg(test)]
mod tests;
