//! The servers of probes and metrics.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use http::{Response, StatusCode};
use hyper::body::Bytes;
use metrics_exporter_prometheus::PrometheusHandle;
use tracing::info;

use super::{process, telemetry};
use crate::config::Config;
use crate::controllers::setup::{Exposition, Measure};
use crate::runtime::http_server::{self, Handler, Server, response, text};
use crate::runtime::plan::to_value;
use crate::runtime::queue::Queue;
use crate::runtime::readiness::{Readiness, state};
use crate::runtime::task::Task;

/// The additional content of `/metrics`, available once the loops are built.
pub struct Exposed {
    /// The work queues, which are measured for each response.
    pub queues: Vec<Arc<Queue>>,
    /// The families that loops render themselves.
    pub expositions: Vec<Exposition>,
    /// Functions that set gauges of loops for each response.
    pub gauges: Vec<Measure>,
}

/// The response of a probe.
fn probe((ready, report): (bool, String)) -> Response<Bytes> {
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    text(status, report)
}

/// Starts the servers of `/healthz`, `/readyz`, `/readyz/<loop>`, `/status` and `/metrics` that are enabled. Without webhooks,
/// `/readyz/webhook` reports the readiness of the whole replica.
///
/// # Errors
/// When an address cannot be bound.
pub async fn servers(
    config: &Config,
    readiness: &Readiness,
    metrics: &PrometheusHandle,
    exposed: Arc<OnceLock<Exposed>>,
) -> anyhow::Result<Vec<Task>> {
    let (readiness, metrics, upkeep) = (readiness.clone(), metrics.clone(), metrics.clone());
    let outages = readiness.outages.clone();
    let health = http_server::read_only(move |path| match path {
        "/healthz" | "/livez" => Some(text(StatusCode::OK, "ok\n")),
        "/readyz" | "/ready" => Some(probe(readiness.report())),
        state::PATH => {
            let state = to_value(&readiness.state()).to_string();
            Some(response(StatusCode::OK, "application/json", state))
        }
        // The readiness probe of the pod: a loop with missing dependencies does not stop admission reviews.
        "/readyz/webhook" => {
            Some(probe(readiness.report_of("webhook").unwrap_or_else(|| readiness.report())))
        }
        _ => path.strip_prefix("/readyz/").and_then(|name| readiness.report_of(name)).map(probe),
    });
    let exposition = http_server::read_only(move |path| {
        (path == "/metrics").then(|| {
            process::record();
            outages.measure();
            let exposed = exposed.get();
            exposed.iter().flat_map(|exposed| &exposed.queues).for_each(|queue| queue.measure());
            exposed.iter().flat_map(|exposed| &exposed.gauges).for_each(|measure| measure());
            let mut body = metrics.render() + &process::exposition();
            exposed.iter().flat_map(|exposed| &exposed.expositions).for_each(|append| append(&mut body));
            telemetry::former::append(&mut body);
            response(StatusCode::OK, telemetry::CONTENT_TYPE, body)
        })
    });
    let mut tasks = Vec::new();
    tasks.extend(serve("health", config.server.health.address(), health).await?);
    tasks.extend(serve("metrics", config.server.metrics.address(), exposition).await?);
    tasks.push(Task::new("metrics upkeep", telemetry::upkeep(upkeep)));
    Ok(tasks)
}

/// Starts a server, unless it is off.
///
/// # Errors
/// When its address cannot be bound.
pub async fn serve(
    name: &'static str,
    address: Option<SocketAddr>,
    handler: Handler,
) -> anyhow::Result<Option<Task>> {
    let Some(address) = address else { return Ok(None) };
    let listener = http_server::bind(&format!("server.{name}"), address).await?;
    // If the configuration has port 0, this is the port that the system has chosen.
    let address = listener.local_addr().unwrap_or(address);
    info!(%address, "serving {name}");
    Ok(Some(Task::new(name, Server::new(handler).serve(listener, std::future::pending()))))
}
