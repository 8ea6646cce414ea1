//! The metrics of the dashboard.

use crate::runtime::metric::{REQUEST_BUCKETS, declare_metrics};

declare_metrics! {
    /// All of them.
    METRICS;
    Counter => "dashboard_requests_total" by {
        route: "`home`, `machine`, `terminal`, `terminal-socket`, `console`, `console-socket`, `new`, `courses`, `templates`, `template`, `template-form`, `account`, `help`, `action`, `events`, `login`, `machine-login`, `callback`, `logout`, `asset`, `other`",
        code: "the HTTP status"
    }
        "Number of requests to the dashboard by route and status code"
        "`403` of `action`: the API server or a webhook rejects the change, or the form comes from another origin. `503`: the API server or the issuer does not respond. `500`: the log has the reason.";
    Histogram(&REQUEST_BUCKETS) => "dashboard_request_duration_seconds" by {
        route: "as of `dashboard_requests_total`"
    }
        "Latency in seconds of the responses of the dashboard by route"
        "Seconds: the API server or the issuer is slow, or pages wait for the reads of other pages.";
    Gauge => "dashboard_open_pages" by {}
        "Number of open pages that update automatically"
        "At `controllers.dashboard.maxPages`: users have to reload further pages; add a replica.";
    Gauge => "dashboard_open_sockets" by {}
        "Number of open terminals and consoles"
        "Near 1000: further ones are refused; add a replica.";
}
