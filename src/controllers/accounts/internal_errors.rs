//! The metric `tenant_operator_internal_errors_total`: failures of Tenants and Workspaces, with the reasons of the Go
//! operator and further ones.

use crate::runtime::reconciler::Counter;

/// A counter of the metric for one loop and reason.
pub fn internal_error(controller: &'static str, reason: &'static str) -> Counter {
    let labels = vec![("controller", controller.to_owned()), ("reason", reason.to_owned())];
    Counter { name: "tenant_operator_internal_errors_total", labels }
}

/// Starts the series of a loop at 0, so that Prometheus sees the first increment.
pub fn start_series(controller: &'static str, reasons: &[&'static str]) {
    for reason in reasons {
        internal_error(controller, reason).start();
    }
}
