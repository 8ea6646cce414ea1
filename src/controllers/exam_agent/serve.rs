//! The loop of the exam agent: the HTTP server, its limits and metrics, the graceful shutdown.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Bytes;
use kube::Client;
use metrics::{counter, histogram};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::answer::Agent;
use super::cluster::Cluster;
use super::pace::Pace;
use super::page;
use super::route::Target;
use super::stores::Stores;
use crate::config::{ExamAccess, ExamAgentConfig, read};
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::controllers::shared::listener::{awaited, listen};
use crate::runtime::certificate::folder;
use crate::runtime::certificate::resolver::{CertificateResolver, Served};
use crate::runtime::http_server::{Body, Handler, Limits, Server};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;

/// The limits for clients. A body fits into one read buffer, so no request waits for another one's body. An Ingress
/// that keeps connections open for a minute closes them before this server does.
const LIMITS: Limits = Limits {
    connections: 512,
    long_bodies: 64 << 10,
    answers: 4 << 20,
    body: 64 << 10,
    receive_timeout: Duration::from_secs(5),
    idle_timeout: Duration::from_secs(75),
    send_timeout: Duration::from_secs(30),
};
/// The time limit of a response, including all requests to the API server that it needs.
const ANSWER: Duration = Duration::from_secs(45);
/// The time limit for open requests after the daemon was asked to stop.
const STOP_LIMIT: Duration = Duration::from_secs(8);
/// The configuration key of the folder with the certificate.
const CERTIFICATE_DIR: &str = "controllers.examAgent.certificateDir";
/// The purpose of the certificate, for messages and metrics.
const SERVED: Served =
    Served { what: "the exam agent", gauge: "exam_agent_certificate_expiration_timestamp_seconds" };

/// The loop that serves the exam agent.
pub struct ExamAgentLoop {
    config: ExamAgentConfig,
    /// A client that sends writes without the lease; `None` only in `crownlabs plan`, where the loop does not run.
    client: Option<Client>,
    stores: Stores,
    /// The certificate; `None` to serve without TLS.
    certificate: Option<Arc<CertificateResolver>>,
}

impl ReplicaDefinition for ExamAgentLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let mut config = read!(setup.config, controllers.exam_agent).clone();
        // A login guards the desktops, so browsers need no token.
        config.require_token &= *read!(setup.config, controllers.instance.access.exams) == ExamAccess::None;
        let stores = Stores::declare(set, &config.namespace);
        let certificate = (!config.certificate_dir.is_empty()).then(|| {
            let resolver = Arc::new(CertificateResolver::new(SERVED));
            let directory = Path::new(&config.certificate_dir);
            setup.files.push(folder::watched(CERTIFICATE_DIR, directory, &resolver));
            resolver
        });
        Ok(Self { config, client: setup.ungated.clone(), stores, certificate })
    }
}

impl ReplicaLoop for ExamAgentLoop {
    const NAME: &'static str = "examAgent";

    async fn run(self, health: Health, stop: Stop) {
        let Self { config, client, stores, certificate } = self;
        let (Some(address), Some(client)) = (config.listen.address(), client) else {
            return stop.asked().await;
        };
        if let Some(certificate) = &certificate
            && !awaited(certificate.watch(), &health, &stop).await
        {
            return;
        }
        let Some(listener) = listen("controllers.examAgent.listen", address, &health, &stop).await else {
            return;
        };
        let pace = Pace::new(config.client_qps, config.client_max_burst, Instant::now());
        let cluster = Cluster::new(client, &config.namespace, pace);
        let agent = Agent::new(config.clone(), cluster, stores);
        let server = Server { limits: LIMITS, ..Server::new(handler(Arc::new(agent))) };
        let server = match certificate {
            None => Ok(server),
            Some(certificate) => server.with_certificate(certificate, None),
        };
        let server = match server {
            Ok(server) => server,
            Err(error) => {
                health.failing(format!("cannot serve the exam agent over TLS: {error}"));
                return stop.asked().await;
            }
        };
        info!(address = %listener.local_addr().unwrap_or(address), namespace = config.namespace, "serving exams");
        warn_of_keys(&config);
        health.ready();
        tokio::select! {
            () = server.serve(listener, stop.asked()) => {}
            () = async { stop.asked().await; sleep(STOP_LIMIT).await } => warn!("some requests to the exam agent did not finish in time"),
        }
    }
}

/// Warns about settings that give clients more, or fewer, rights than one would expect.
fn warn_of_keys(config: &ExamAgentConfig) {
    if config.allow_anyone {
        warn!(
            "every client of the exam agent may create and delete Instances: list the exam servers in \
             controllers.examAgent.allowedIps instead of setting controllers.examAgent.allowAnyone"
        );
    } else if config.allowed_ips.is_empty() {
        warn!(
            "no client may create or delete Instances through the exam agent: list the exam servers in \
             controllers.examAgent.allowedIps"
        );
    } else if config.trusted_proxies.is_empty() {
        warn!(
            "the exam agent trusts the header X-Forwarded-For of every peer: let only the Ingress controller connect, \
             or list its addresses in controllers.examAgent.trustedProxies"
        );
    }
    for network in config.trusted_proxies.iter().filter(|network| network.is_wide()) {
        warn!(
            %network,
            "controllers.examAgent.trustedProxies has a network of more than 16 addresses: every host in it can claim to be an \
             exam server, and in a pod network that includes the pods of students. List only the addresses of the Ingress \
             controller"
        );
    }
}

/// Answers and counts requests.
fn handler(agent: Arc<Agent>) -> Handler {
    Arc::new(move |request| {
        let agent = Arc::clone(&agent);
        async move {
            let begin = Instant::now();
            let target = agent.target(&request);
            let answer = timeout(ANSWER, agent.answer(&target, &request)).await;
            let answer = answer.unwrap_or_else(|_| late(&target));
            count(&target, &request, &answer, begin.elapsed());
            answer.map(Body::from)
        }
        .boxed()
    })
}

/// The response to a request that has timed out.
fn late(target: &Target) -> Response<Bytes> {
    warn!(route = target.name(), "the API server did not answer a request of the exam agent in time");
    page::plain(StatusCode::INTERNAL_SERVER_ERROR, "The API server did not answer in time")
}

/// Counts a response. The labels have few values, whatever clients send.
fn count(target: &Target, request: &Request<Bytes>, answer: &Response<Bytes>, took: Duration) {
    let (route, code) = (target.name(), answer.status().as_u16().to_string());
    let method = match *request.method() {
        Method::GET => "GET",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    counter!("exam_agent_requests_total", "route" => route, "method" => method, "code" => code).increment(1);
    histogram!("exam_agent_request_duration_seconds", "route" => route).record(took);
}
