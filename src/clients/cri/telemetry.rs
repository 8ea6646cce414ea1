//! The metrics of calls of the container runtime.

use crate::runtime::metric::{REQUEST_BUCKETS, declare_metrics};

declare_metrics! {
    /// All metrics.
    METRICS;
    Counter => "cri_client_requests_total" by {
        operation: "the method, such as `ListContainerStats`",
        code: "the gRPC status code, such as `Ok` or `DeadlineExceeded`"
    }
        "Number of calls of the container runtime of the node by status code and method"
        "Codes other than `Ok`: the runtime does not answer or returns errors; `/readyz` has the cause.";
    Histogram(&REQUEST_BUCKETS) => "cri_client_request_duration_seconds" by {operation: "the method"}
        "Latency in seconds of calls of the container runtime of the node by method"
        "Near the deadline: the runtime is overloaded.";
}
