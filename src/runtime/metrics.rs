//! Metrics with the names and labels of controller-runtime, so that existing dashboards and alerts work.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// The metrics of a work queue (`workqueue_*`).
pub struct QueueMetrics {
    pub(super) depth: Gauge,
    pub(super) adds: Counter,
    pub(super) waited: Histogram,
    pub(super) worked: Histogram,
    pub(super) retries: Counter,
    pub(super) unfinished: Gauge,
    pub(super) longest: Gauge,
    pub(super) oldest: Gauge,
}

impl QueueMetrics {
    /// Creates the metrics of a loop's queue.
    pub fn new(name: &'static str) -> Self {
        Self {
            depth: gauge!("workqueue_depth", "name" => name, "controller" => name),
            adds: counter!("workqueue_adds_total", "name" => name, "controller" => name),
            waited: histogram!("workqueue_queue_duration_seconds", "name" => name, "controller" => name),
            worked: histogram!("workqueue_work_duration_seconds", "name" => name, "controller" => name),
            retries: counter!("workqueue_retries_total", "name" => name, "controller" => name),
            unfinished: gauge!("workqueue_unfinished_work_seconds", "name" => name, "controller" => name),
            longest: gauge!("workqueue_longest_running_processor_seconds", "name" => name, "controller" => name),
            oldest: gauge!("workqueue_oldest_item_seconds", "name" => name, "controller" => name),
        }
    }
}

/// The values of the label `result`: the reconcile succeeded, failed and is retried with backoff, or succeeded and is
/// repeated after some time.
pub(super) const SUCCESS: &str = "success";
pub(super) const ERROR: &str = "error";
pub(super) const REQUEUE_AFTER: &str = "requeue_after";

/// The metrics of a control loop (`controller_runtime_*`).
#[derive(Clone)]
pub struct LoopMetrics {
    name: &'static str,
    active: Gauge,
    time: Histogram,
    errors: Counter,
    pub(super) panics: Counter,
}

impl LoopMetrics {
    /// Creates the metrics of a loop that runs up to `concurrency` concurrent reconciles. All series start at zero.
    pub fn new(name: &'static str, concurrency: usize) -> Self {
        gauge!("controller_runtime_max_concurrent_reconciles", "controller" => name)
            .set(precise(concurrency));
        for result in [SUCCESS, ERROR, REQUEUE_AFTER] {
            counter!("controller_runtime_reconcile_total", "controller" => name, "result" => result)
                .increment(0);
        }
        let errors = counter!("controller_runtime_reconcile_errors_total", "controller" => name);
        errors.increment(0);
        let panics = counter!("controller_runtime_reconcile_panics_total", "controller" => name);
        panics.increment(0);
        Self {
            name,
            active: gauge!("controller_runtime_active_workers", "controller" => name),
            time: histogram!("controller_runtime_reconcile_time_seconds", "controller" => name),
            errors,
            panics,
        }
    }

    pub(super) fn begin(&self) {
        self.active.increment(1.0);
    }

    pub(super) fn end(&self, result: &'static str, took: Duration) {
        self.active.decrement(1.0);
        self.time.record(took);
        if result == ERROR {
            self.errors.increment(1);
        }
        counter!("controller_runtime_reconcile_total", "controller" => self.name, "result" => result)
            .increment(1);
    }
}

/// Converts a count to a gauge value; exact up to 2^32.
pub fn precise(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconciles_are_counted_by_result() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            let metrics = LoopMetrics::new("test", 3);
            for result in [SUCCESS, ERROR, SUCCESS] {
                metrics.begin();
                metrics.end(result, Duration::from_millis(1));
            }
            metrics.begin();
        });
        let text = handle.render();
        for line in [
            "controller_runtime_max_concurrent_reconciles{controller=\"test\"} 3\n",
            "controller_runtime_active_workers{controller=\"test\"} 1\n",
            "controller_runtime_reconcile_errors_total{controller=\"test\"} 1\n",
            "controller_runtime_reconcile_total{controller=\"test\",result=\"success\"} 2\n",
            "controller_runtime_reconcile_total{controller=\"test\",result=\"error\"} 1\n",
            "controller_runtime_reconcile_total{controller=\"test\",result=\"requeue_after\"} 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
