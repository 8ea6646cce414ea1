//! The metrics of the webhooks.

use crate::runtime::metric::declare_metrics;

/// The default buckets of the Prometheus client for Go, in seconds. controller-runtime uses them for reviews.
const REVIEW_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

declare_metrics! {
    /// The metrics of reviews, as in controller-runtime.
    REVIEWS;
    Counter => "controller_runtime_webhook_requests_total" by {webhook: "the path", code: "the HTTP status"}
        "Total number of admission requests per webhook and code"
        "Other codes than 200: a review was not answered. The log says why.";
    Histogram(&REVIEW_BUCKETS) => "controller_runtime_webhook_latency_seconds" by {webhook: "the path"}
        "Latency in seconds of admission requests per webhook"
        "Near 5 s (`timeoutSeconds`), reviews time out, and the API server rejects the user's request.";
}

declare_metrics! {
    /// The metrics of the certificate.
    CERTIFICATE;
    Gauge => "crownlabs_webhook_certificate_expiration_timestamp_seconds" by {}
        "Expiry time of the webhooks' certificate, in seconds since 1970"
        "Less than a week ahead: the certificate is not renewed. The log says why.";
}
