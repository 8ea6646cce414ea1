//! The HTTPS server that the API server sends admission reviews to.
//!
//! The metrics have the names and labels of controller-runtime. An answered review counts with code 200, whether the
//! request is admitted or refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Response, StatusCode};
use hyper::body::Bytes;
use metrics::{Counter, counter, histogram};
use rustls::server::ResolvesServerCert;
use rustls::server::danger::ClientCertVerifier;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::{debug, warn};

use super::decision::{Decision, Denial};
use super::review::{self, Request};
use crate::runtime::http_server::{Body, Handler, Limits, Observer, Server, response, text};

/// The limits of admission reviews.
pub const LIMITS: Limits = Limits {
    // An API server opens another connection for each review that it sends while others are unanswered.
    connections: 128,
    // One body of the maximum size at a time: the parsed body takes the same amount again.
    long_bodies: 8 << 20,
    answers: 16 << 20,
    // The object before and after the change, each of at most the 3 MiB that the API server accepts, and
    // the other members of the review.
    body: 7 << 20,
    receive_timeout: Duration::from_secs(10),
    // The API server closes idle connections after 90 s. A longer timeout here ensures that it never sends a review to
    // a connection that the daemon is closing.
    idle_timeout: Duration::from_mins(2),
    send_timeout: Duration::from_secs(30),
};

/// Decides on one request for admission.
pub type Rule = Arc<dyn Fn(Request) -> BoxFuture<'static, Decision> + Send + Sync>;
/// The rules by the path of their webhook.
pub type Rules = HashMap<&'static str, Rule>;

/// Serves until `stop` becomes true, and then until the requests in progress are answered. With `clients`, only clients
/// with an accepted certificate are served.
///
/// # Errors
/// When the TLS library does not accept its own default versions.
pub async fn serve(
    listener: TcpListener,
    certificate: Arc<dyn ResolvesServerCert>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    rules: Rules,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) -> Result<(), rustls::Error> {
    // Expected series start at zero.
    for path in rules.keys() {
        total(path, StatusCode::OK).increment(0);
        total(path, StatusCode::INTERNAL_SERVER_ERROR).increment(0);
    }
    let rules = Arc::new(rules);
    let known = Arc::clone(&rules);
    let observer: Observer = Arc::new(move |path, response, duration| {
        if let Some((path, _)) = known.get_key_value(path) {
            observe(path, response, duration);
        }
    });
    let handler: Handler = Arc::new(move |request| {
        let answer = answer(rules.get(request.uri().path()).cloned(), request);
        answer.map(|response| response.map(Body::from)).boxed()
    });
    let server = Server { limits, observer: Some(observer), ..Server::new(handler) };
    let stopped = async { drop(stop.wait_for(|stop| *stop).await) };
    server.with_certificate(certificate, clients)?.serve(listener, stopped).await;
    Ok(())
}

/// Answers a review with the rule of its path, if there is one.
async fn answer(rule: Option<Rule>, request: http::Request<Bytes>) -> Response<Bytes> {
    let Some(rule) = rule else { return text(StatusCode::NOT_FOUND, "no such webhook\n") };
    if request.method() != Method::POST {
        return text(StatusCode::METHOD_NOT_ALLOWED, "reviews are sent by POST\n");
    }
    let review = match review::read(request.body()) {
        Ok(review) => review,
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let uid = review.uid.clone();
    let decision = rule(review).await;
    if let Err(Denial { reason, message, .. }) = &decision.outcome {
        debug!(uid, reason, message, "refused");
    }
    response(StatusCode::OK, "application/json", review::response(&uid, &decision).to_string())
}

/// Counts and logs the response of a webhook.
fn observe(path: &'static str, response: &Response<Body>, duration: Duration) {
    let status = response.status();
    if !status.is_success() {
        let reason = String::from_utf8_lossy(response.body().whole());
        warn!(webhook = path, %status, reason = reason.trim_end(), "an admission review was not answered");
    }
    total(path, status).increment(1);
    histogram!("controller_runtime_webhook_latency_seconds", "webhook" => path).record(duration);
}

/// The number of responses of a webhook with that status.
fn total(path: &'static str, status: StatusCode) -> Counter {
    counter!("controller_runtime_webhook_requests_total", "webhook" => path, "code" => status.as_u16().to_string())
}

#[cfg(test)]
mod tests;
