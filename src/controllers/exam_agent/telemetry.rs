//! The metrics of the exam agent.

use crate::runtime::metric::{REQUEST_BUCKETS, declare_metrics};

declare_metrics! {
    /// All metrics of the exam agent.
    METRICS;
    Counter => "exam_agent_requests_total" by {
        route: "`templates`, `instances`, `instance`, `health`, `description`, `other`",
        method: "`GET`, `PUT`, `DELETE`, `other`",
        code: "the HTTP status"
    }
        "Number of requests to the exam agent by route, method and status code"
        "`403`: the client is not in `controllers.examAgent.allowedIps`. `429`: raise `clientQps`. `500`: the log says why.";
    Histogram(&REQUEST_BUCKETS) => "exam_agent_request_duration_seconds" by {
        route: "`templates`, `instances`, `instance`, `health`, `description`, `other`"
    }
        "Response latency of the exam agent in seconds by route"
        "Seconds: the API server is slow, or requests wait for `controllers.examAgent.clientQps`.";
    Gauge => "exam_agent_certificate_expiration_timestamp_seconds" by {}
        "Expiration time of the certificate of the exam agent, in seconds since 1970"
        "Less than a week ahead: the files in `controllers.examAgent.certificateDir` are not renewed.";
}
