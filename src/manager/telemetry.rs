//! The metrics recorder and its buckets.

use std::time::Duration;

use anyhow::Context;
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// The exposition format that `/metrics` answers in.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// controller-runtime's buckets for the time of a pass, in seconds.
const RECONCILE_BUCKETS: [f64; 35] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 20.0, 30.0,
];
/// client-go's buckets for queue times, in seconds.
const QUEUE_BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];
/// client-go's buckets for requests, in seconds.
const REQUEST_BUCKETS: [f64; 14] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 45.0, 60.0, 120.0];

/// 5, 10, …, 55, then 60, 90, …, 600 seconds (02 §10).
fn ready_time_buckets() -> Vec<f64> {
    let fine = (1..=11).map(|step| f64::from(step) * 5.0);
    fine.chain((0..=18).map(|step| 60.0 + f64::from(step) * 30.0)).collect()
}

/// Installs the recorder of the process.
///
/// # Errors
/// When there is one already.
pub fn install() -> anyhow::Result<PrometheusHandle> {
    let name = |name: &str| Matcher::Full(name.to_owned());
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(name("controller_runtime_reconcile_time_seconds"), &RECONCILE_BUCKETS)
        .and_then(|b| b.set_buckets_for_metric(name("workqueue_queue_duration_seconds"), &QUEUE_BUCKETS))
        .and_then(|b| b.set_buckets_for_metric(name("workqueue_work_duration_seconds"), &QUEUE_BUCKETS))
        .and_then(|b| {
            b.set_buckets_for_metric(name("rest_client_request_duration_seconds"), &REQUEST_BUCKETS)
        })
        .and_then(|b| b.set_buckets_for_metric(name("keycloak_request_duration_seconds"), &REQUEST_BUCKETS))
        .and_then(|b| {
            b.set_buckets_for_metric(name("instance_initial_ready_time_second"), &ready_time_buckets())
        })
        .and_then(|b| {
            b.set_buckets_for_metric(name("controller_runtime_webhook_latency_seconds"), &REQUEST_BUCKETS)
        })
        .context("a metric has no buckets")?
        .install_recorder()
        .context("the metrics recorder cannot be installed")?;
    describe();
    Ok(handle)
}

fn describe() {
    describe_counter!("controller_runtime_reconcile_total", "Passes by loop and result");
    describe_counter!("controller_runtime_reconcile_errors_total", "Passes that failed, by loop");
    describe_histogram!(
        "controller_runtime_reconcile_time_seconds",
        Unit::Seconds,
        "Time of a pass, by loop"
    );
    describe_gauge!("controller_runtime_max_concurrent_reconciles", "Passes at once at most, by loop");
    describe_gauge!("controller_runtime_active_workers", "Passes at once now, by loop");
    describe_gauge!("workqueue_depth", "Objects that wait for a pass");
    describe_counter!("controller_runtime_reconcile_panics_total", "Passes that panicked, by loop");
    describe_gauge!("workqueue_unfinished_work_seconds", "Time of all passes that are under way");
    describe_gauge!(
        "workqueue_longest_running_processor_seconds",
        "Time of the longest pass that is under way"
    );
    describe_counter!("workqueue_adds_total", "Objects asked for");
    describe_counter!("workqueue_retries_total", "Objects asked for again after a failure");
    describe_histogram!("workqueue_queue_duration_seconds", Unit::Seconds, "Time that an object waited");
    describe_histogram!("workqueue_work_duration_seconds", Unit::Seconds, "Time that an object was in work");
    describe_counter!("rest_client_requests_total", "Requests to the API server by code, method and host");
    describe_histogram!(
        "rest_client_request_duration_seconds",
        Unit::Seconds,
        "Time until the API server answers"
    );
    describe_counter!("controller_runtime_webhook_requests_total", "Admission reviews by webhook and code");
    describe_histogram!(
        "controller_runtime_webhook_latency_seconds",
        Unit::Seconds,
        "Time until an admission review is answered"
    );
    describe_gauge!(
        "crownlabs_webhook_certificate_expiration_timestamp_seconds",
        "When the certificate of the webhooks ends, in seconds since 1970"
    );
    describe_counter!("keycloak_requests_total", "Requests to Keycloak by code, method and operation");
    describe_histogram!(
        "keycloak_request_duration_seconds",
        Unit::Seconds,
        "Time until Keycloak answers, by operation"
    );
    describe_gauge!("leader_election_master_status", "1 while this replica leads");
    describe_histogram!(
        "instance_initial_ready_time_second",
        Unit::Seconds,
        "Time until an Instance is ready"
    );
}

/// Bounds the memory of the histograms, for ever.
pub async fn upkeep(handle: PrometheusHandle) {
    let mut tick = tokio::time::interval(Duration::from_secs(30));
    loop {
        tick.tick().await;
        handle.run_upkeep();
    }
}
