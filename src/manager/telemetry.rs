//! The metrics recorder: buckets of histograms and help texts, as in controller-runtime and client-go.

use std::time::Duration;

use anyhow::Context;
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// The content type of `/metrics`: the text format of Prometheus.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// controller-runtime's buckets for the duration of a reconciliation, in seconds.
const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// The default buckets of Prometheus' client for Go, which controller-runtime uses for reviews, in seconds.
const REVIEW_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// client-go's buckets for times in a workqueue, in seconds.
const QUEUE_BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];
/// client-go's buckets for the duration of requests, in seconds.
const REQUEST_BUCKETS: [f64; 14] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 45.0, 60.0, 120.0];

/// The Go operators' buckets for the time until an Instance is ready, in seconds.
const READY_BUCKETS: [f64; 30] = [
    5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 90.0, 120.0, 150.0, 180.0, 210.0,
    240.0, 270.0, 300.0, 330.0, 360.0, 390.0, 420.0, 450.0, 480.0, 510.0, 540.0, 570.0, 600.0,
];

/// Counters and their help texts.
const COUNTERS: [(&str, &str); 15] = [
    ("controller_runtime_reconcile_total", "Total number of reconciliations per controller and result"),
    ("controller_runtime_reconcile_errors_total", "Total number of reconciliation errors per controller"),
    ("controller_runtime_reconcile_panics_total", "Total number of reconciliation panics per controller"),
    ("controller_runtime_webhook_requests_total", "Total number of admission requests per webhook and code"),
    ("workqueue_adds_total", "Total number of adds handled by workqueue"),
    ("workqueue_retries_total", "Total number of retries handled by workqueue"),
    ("rest_client_requests_total", "Number of requests to the API server by status code, method and host"),
    ("instance_status_checks_total", "Number of queries of the status URLs of Instances by result"),
    ("keycloak_requests_total", "Number of requests to Keycloak by status code, method and operation"),
    ("crownlabs_mails_total", "Number of mails to Tenants, and of attempts that failed, by kind and result"),
    ("prometheus_client_requests_total", "Number of requests to Prometheus by status code and operation"),
    (
        "tenant_operator_internal_errors",
        "Number of failures in what Tenants and Workspaces need by controller and reason",
    ),
    ("bastion_ssh_tracker_packets_total", "Number of packets that passed the filter of the SSH tracker"),
    ("bastion_ssh_tracker_drops_total", "Number of these packets that were lost because the ring was full"),
    ("bastion_ssh_tracker_freezes_total", "Number of times that the ring of the SSH tracker was full"),
];
/// Gauges and their help texts.
const GAUGES: [(&str, &str); 25] = [
    ("crownlabs_build_info", "The version of the program; always 1"),
    ("process_start_time_seconds", "Start time of the process in seconds since 1970"),
    (
        "controller_runtime_max_concurrent_reconciles",
        "Maximum number of concurrent reconciles per controller",
    ),
    ("controller_runtime_active_workers", "Number of currently used workers per controller"),
    ("workqueue_depth", "Current depth of workqueue"),
    (
        "workqueue_unfinished_work_seconds",
        "Seconds of work that is in progress and not yet observed by workqueue_work_duration_seconds",
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "Seconds for which the longest running processor of workqueue has been running",
    ),
    (
        "workqueue_oldest_item_seconds",
        "Seconds for which the object that waits longest in workqueue has been waiting for a worker",
    ),
    ("crownlabs_instances", "Number of Instances by their phase and by the type of their first environment"),
    ("public_exposure_pool_addresses", "Number of public addresses that may be given to Instances"),
    ("public_exposure_used_addresses", "Number of public addresses on which Instances have ports"),
    ("public_exposure_used_ports", "Number of public ports that Instances have; TCP and UDP count apart"),
    (
        "crownlabs_webhook_certificate_expiration_timestamp_seconds",
        "Time at which the certificate of the webhooks expires, in seconds since 1970",
    ),
    (
        "leader_election_master_status",
        "Whether this replica holds the lease: 1 for the leader, 0 for a standby",
    ),
    (
        "next_deadline_seconds",
        "Time of the next promised stop or deletion of an Instance per controller, in seconds since 1970; 0 for none",
    ),
    (
        "automation_instances",
        "Number of running Instances whose use is watched per controller, by what their last use is known from",
    ),
    (
        "store_staleness_seconds",
        "Seconds for which the watch of a kind has been broken; 0 while it follows the cluster",
    ),
    ("keycloak_up", "Whether Keycloak answers: 1, or 0 while it does not"),
    ("bastion_web_ssh_sessions", "Number of terminals that are open in browsers"),
    ("automation_mails_waiting", "Number of mails to tenants that no server has accepted yet per controller"),
    ("bastion_ssh_tracker_running", "Whether the SSH tracker captures packets"),
    ("bastion_keys", "Number of public keys of Tenants that the SSH bastion accepts"),
    ("bastion_keys_skipped", "Number of public keys of Tenants that the SSH bastion cannot use"),
    ("process_resident_memory_bytes", "Resident memory size in bytes"),
    ("process_open_fds", "Number of open file descriptors"),
];
/// Histograms with their help texts and buckets. All are in seconds.
const HISTOGRAMS: [(&str, &str, &[f64]); 9] = [
    (
        "controller_runtime_reconcile_time_seconds",
        "Length of time in seconds per reconciliation per controller",
        &RECONCILE_BUCKETS,
    ),
    (
        "controller_runtime_webhook_latency_seconds",
        "Latency in seconds of admission requests per webhook",
        &REVIEW_BUCKETS,
    ),
    (
        "workqueue_queue_duration_seconds",
        "Time in seconds that an item stays in workqueue before it is processed",
        &QUEUE_BUCKETS,
    ),
    (
        "workqueue_work_duration_seconds",
        "Time in seconds that processing an item from workqueue takes",
        &QUEUE_BUCKETS,
    ),
    (
        "rest_client_request_duration_seconds",
        "Latency in seconds of requests to the API server by verb and host",
        &REQUEST_BUCKETS,
    ),
    (
        "keycloak_request_duration_seconds",
        "Latency in seconds of requests to Keycloak by operation",
        &REQUEST_BUCKETS,
    ),
    (
        "crownlabs_mail_duration_seconds",
        "Time in seconds until a mail is accepted or has failed",
        &REQUEST_BUCKETS,
    ),
    (
        "prometheus_client_request_duration_seconds",
        "Latency in seconds of requests to Prometheus by operation",
        &REQUEST_BUCKETS,
    ),
    (
        "instance_initial_ready_time_second",
        "Time in seconds from the creation of an Instance until an environment is ready for the first time",
        &READY_BUCKETS,
    ),
];

/// Installs the metrics recorder of the process.
///
/// # Errors
/// If a recorder is installed already.
pub fn install() -> anyhow::Result<PrometheusHandle> {
    let mut builder = PrometheusBuilder::new();
    for (name, _, buckets) in HISTOGRAMS {
        let metric = Matcher::Full(name.to_owned());
        builder = builder.set_buckets_for_metric(metric, buckets).context("a metric has no buckets")?;
    }
    let handle = builder.install_recorder().context("the metrics recorder cannot be installed")?;
    // The recorder keeps help texts; before it is installed, they would be lost.
    for (name, help) in COUNTERS {
        describe_counter!(name, help);
    }
    for (name, help) in GAUGES {
        describe_gauge!(name, help);
    }
    for (name, help, _) in HISTOGRAMS {
        describe_histogram!(name, Unit::Seconds, help);
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
