//! The metrics of the termination loop.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All metrics of the termination loop.
    METRICS;
    Counter => "instance_status_checks_total" by {result: "`kept`, `terminated`, `failed`"}
        "Number of queries of the status URLs of Instances by result"
        "`failed` that rises during an exam: the condition `StatusChecked` of the Instances says why.";
}
