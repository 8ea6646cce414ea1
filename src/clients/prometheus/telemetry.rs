//! The metrics of requests to Prometheus.

use crate::runtime::metric::{REQUEST_BUCKETS, declare_metrics};

declare_metrics! {
    /// All metrics.
    METRICS;
    Counter => "prometheus_client_requests_total" by {
        operation: "`health`, `available`, `history`, `uses`",
        code: "the HTTP status, or `<error>`"
    }
        "Number of requests to Prometheus by status code and operation"
        "Codes other than 200: Instances are left running, because it is not known whether they are used.";
    Histogram(&REQUEST_BUCKETS) => "prometheus_client_request_duration_seconds" by {
        operation: "`health`, `available`, `history`, `uses`"
    }
        "Latency in seconds of requests to Prometheus by operation"
        "Near `integrations.prometheus.timeout`: raise `checkInterval` or `queryStep`.";
}
