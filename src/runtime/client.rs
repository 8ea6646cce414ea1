//! The client: `kube`'s, with our name on every request, counted, and gated by the lease.

use std::task::{Context, Poll};
use std::time::Instant;

use futures::future::{BoxFuture, Either, Ready, ready};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use metrics::{counter, histogram};
use tower::{BoxError, Layer, Service};

use super::error::NotLeader;
use super::gate::Gate;

/// The name under which our requests stand in the audit log and our fields in `managedFields`.
pub const USER_AGENT: &str = concat!("crownlabs/", env!("CARGO_PKG_VERSION"));

/// A client whose writes pass only through `gate`.
///
/// # Errors
/// When the configuration cannot be used, for example an unreadable certificate.
pub fn build(mut config: Config, gate: Gate) -> kube::Result<Client> {
    config.headers.push((HeaderName::from_static("user-agent"), HeaderValue::from_static(USER_AGENT)));
    // The queue retries, with the gate asked again; a retry below the gate would bypass it.
    config.default_retry = false;
    let host = config.cluster_url.authority().map_or_else(String::new, ToString::to_string);
    Ok(ClientBuilder::try_from(config)?.with_layer(&Gated { gate, host }).build())
}

#[derive(Debug, Clone)]
struct Gated {
    gate: Gate,
    host: String,
}

impl<S> Layer<S> for Gated {
    type Service = GatedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GatedService { inner, gate: self.gate.clone(), host: self.host.clone() }
    }
}

#[derive(Debug, Clone)]
struct GatedService<S> {
    inner: S,
    gate: Gate,
    host: String,
}

impl<S, B> Service<Request<Body>> for GatedService<S>
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
        let method = request.method().clone();
        if method != Method::GET && !self.gate.is_open() {
            return Either::Left(ready(Err(Box::new(NotLeader))));
        }
        let host = self.host.clone();
        let begin = Instant::now();
        let answer = self.inner.call(request);
        Either::Right(Box::pin(async move {
            let answer = answer.await;
            let code =
                answer.as_ref().map_or_else(|_| "<error>".to_owned(), |r| r.status().as_u16().to_string());
            let method = method.to_string();
            histogram!("rest_client_request_duration_seconds", "verb" => method.clone(), "host" => host.clone())
                .record(begin.elapsed());
            counter!("rest_client_requests_total", "code" => code, "method" => method, "host" => host)
                .increment(1);
            answer
        }))
    }
}
