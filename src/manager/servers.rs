//! The servers of probes and metrics.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use http::StatusCode;
use metrics_exporter_prometheus::PrometheusHandle;
use tracing::info;

use super::{process, telemetry};
use crate::config::Config;
use crate::runtime::http_server::{self, Handler, Server, response, text};
use crate::runtime::queue::Queue;
use crate::runtime::readiness::Readiness;
use crate::runtime::task::Task;

/// The servers of `/healthz`, `/readyz` and `/metrics`, as far as they are switched on.
///
/// # Errors
/// When an address cannot be bound.
pub async fn servers(
    config: &Config,
    readiness: &Readiness,
    metrics: &PrometheusHandle,
    queues: Arc<OnceLock<Vec<Arc<Queue>>>>,
) -> anyhow::Result<Vec<Task>> {
    let (readiness, metrics, upkeep) = (readiness.clone(), metrics.clone(), metrics.clone());
    let health = http_server::read_only(move |path| match path {
        "/healthz" | "/livez" => Some(text(StatusCode::OK, "ok\n")),
        "/readyz" | "/ready" => {
            let (ready, report) = readiness.report();
            let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            Some(text(status, report))
        }
        _ => None,
    });
    let exposition = http_server::read_only(move |path| {
        (path == "/metrics").then(|| {
            process::record();
            queues.get().into_iter().flatten().for_each(|queue| queue.measure());
            let body = metrics.render() + &process::exposition();
            response(StatusCode::OK, telemetry::CONTENT_TYPE, body)
        })
    });
    let mut tasks = Vec::new();
    let wanted: [(&'static str, Option<SocketAddr>, Handler); 2] = [
        ("health", config.server.health.address(), health),
        ("metrics", config.server.metrics.address(), exposition),
    ];
    for (name, address, pages) in wanted {
        tasks.extend(serve(name, address, pages).await?);
    }
    tasks.push(Task::new("metrics upkeep", telemetry::upkeep(upkeep)));
    Ok(tasks)
}

/// A server, unless it is off.
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
    info!(%address, "serving {name}");
    Ok(Some(Task::new(name, Server::new(handler).serve(listener, std::future::pending()))))
}
