//! The metrics of requests to Keycloak.

use crate::runtime::metric::{REQUEST_BUCKETS, declare_metrics};

declare_metrics! {
    /// All metrics.
    METRICS;
    Counter => "keycloak_requests_total" by {
        method: "the HTTP method",
        operation: "the operation, such as `find_user`",
        code: "the HTTP status, or `<error>`"
    }
        "Number of requests to Keycloak by status code, method and operation"
        "`401` and `403`: the client or its permissions. `<error>`: Keycloak does not respond.";
    Histogram(&REQUEST_BUCKETS) => "keycloak_request_duration_seconds" by {operation: "the operation"}
        "Latency in seconds of requests to Keycloak by operation"
        "Above a second, reconciles no longer wait for Keycloak, and roles are updated later.";
}
