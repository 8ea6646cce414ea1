//! The metrics recorder: buckets of histograms and help texts, as in controller-runtime and client-go.

pub mod former;
mod process;
#[cfg(test)]
mod reference;
mod table;

use std::time::Duration;

use anyhow::Context;
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use table::metrics;

use crate::runtime::metric::{Kind, Metric};

/// The content type of `/metrics`: the text format of Prometheus.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Installs the metrics recorder of the process.
///
/// # Errors
/// If a recorder is already installed.
pub fn install() -> anyhow::Result<PrometheusHandle> {
    let mut builder = PrometheusBuilder::new();
    for Metric { name, kind, .. } in metrics() {
        if let Kind::Histogram(buckets) = kind {
            let metric = Matcher::Full((*name).to_owned());
            builder = builder.set_buckets_for_metric(metric, buckets).context("a metric has no buckets")?;
        }
    }
    let handle = builder.install_recorder().context("the metrics recorder cannot be installed")?;
    // The recorder stores the help texts; before it is installed, they would be lost.
    for Metric { name, help, kind, .. } in metrics() {
        match kind {
            Kind::Counter => describe_counter!(*name, *help),
            Kind::Gauge => describe_gauge!(*name, *help),
            Kind::Histogram(_) => describe_histogram!(*name, Unit::Seconds, *help),
        }
    }
    Ok(handle)
}

/// Merges the samples of histograms into their buckets every 30 seconds, so that they do not accumulate in
/// memory. Never returns.
pub async fn upkeep(handle: PrometheusHandle) {
    let mut tick = tokio::time::interval(Duration::from_secs(30));
    loop {
        tick.tick().await;
        handle.run_upkeep();
    }
}
