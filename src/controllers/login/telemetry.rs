//! The metrics of the login of machines.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All metrics of the login of machines.
    METRICS;
    Counter => "machine_login_requests_total" by {
        result: "`allowed`, `denied`, `login`: the browser is sent to the dashboard, `exchanged`: a code became a cookie, `refused`: a code did not"
    }
        "Number of authentication requests for machines by result"
        "`refused` grows: browsers keep no cookies, the clocks of the replicas differ, or the API server does not respond; the log has the reasons.";
}
