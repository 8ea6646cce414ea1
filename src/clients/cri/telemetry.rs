//! The metrics of calls of the container runtime.

use crate::runtime::metric::{REQUEST_BUCKETS, declare_metrics};

declare_metrics! {
    /// All of them.
    METRICS;
    Counter => "cri_client_requests_total" by {
        operation: "the method, such as `ListContainerStats`",
        code: "the status of gRPC, such as `Ok` or `DeadlineExceeded`"
    }
        "Number of calls of the container runtime of the node by status code and method"
        "Other codes than `Ok`: the runtime is away or refuses; `/readyz` says why.";
    Histogram(&REQUEST_BUCKETS) => "cri_client_request_duration_seconds" by {operation: "the method"}
        "Latency in seconds of calls of the container runtime of the node by method"
        "Near the deadline: the runtime is overloaded.";
}
