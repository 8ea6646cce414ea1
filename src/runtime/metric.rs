//! Declares metrics: the macro, and the metrics of reconciles, queues, requests and watches.

/// A metric of the daemon.
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its labels, each with its values.
    #[cfg(test)]
    pub labels: &'static [(&'static str, &'static str)],
    /// Advice for administrators.
    #[cfg(test)]
    pub look: &'static str,
}

/// The type of a metric.
pub enum Kind {
    /// A number that only increases.
    Counter,
    /// A number that can increase and decrease.
    Gauge,
    /// Durations in seconds, with these upper bounds of the buckets.
    Histogram(&'static [f64]),
}

/// Declares a list of metrics: type, name, labels with their values, help text, and advice for administrators. Labels
/// and advice are only for the reference (`docs/reference/metrics.md`) and are not compiled into the program.
macro_rules! declare_metrics {
    ($(#[$about:meta])* $list:ident;
     $($kind:ident $(($buckets:expr))? => $name:literal by {$($label:ident: $values:literal),*} $help:literal $look:literal;)+) => {
        $(#[$about])*
        pub const $list: &[$crate::runtime::metric::Metric] = &[$($crate::runtime::metric::Metric {
            name: $name,
            help: $help,
            kind: $crate::runtime::metric::Kind::$kind $(($buckets))?,
            #[cfg(test)]
            labels: &[$((stringify!($label), $values)),*],
            #[cfg(test)]
            look: $look,
        }),+];
    };
}
pub(crate) use declare_metrics;

/// client-go's buckets for times in a workqueue, in seconds.
const QUEUE_BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];

/// controller-runtime's buckets for the duration of a reconciliation, in seconds.
const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// client-go's buckets for the duration of requests, in seconds.
pub const REQUEST_BUCKETS: [f64; 14] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 45.0, 60.0, 120.0];

declare_metrics! {
    /// The metrics of reconciles, as in controller-runtime.
    RECONCILES;
    Counter => "controller_runtime_reconcile_total" by {
        controller: "the loop",
        result: "`success`, `error`, or `requeue_after`: it is reconciled again after some time"
    }
        "Total number of reconciliations per controller and result"
        "`error` rises all the time: see the log for objects and errors.";
    Counter => "controller_runtime_reconcile_errors_total" by {controller: "the loop"}
        "Total number of reconciliation errors per controller"
        "The same as `controller_runtime_reconcile_total{result=\"error\"}`.";
    Counter => "controller_runtime_reconcile_panics_total" by {controller: "the loop"}
        "Total number of reconciliation panics per controller"
        "Above 0: a defect. Report it with the log; other objects are not affected.";
    Histogram(&RECONCILE_BUCKETS) => "controller_runtime_reconcile_time_seconds" by {controller: "the loop"}
        "Length of time in seconds per reconciliation per controller"
        "The 99th percentile above a second: the API server is slow.";
    Gauge => "controller_runtime_max_concurrent_reconciles" by {controller: "the loop"}
        "Maximum number of concurrent reconciles per controller"
        "The key `concurrency` of the loop.";
    Gauge => "controller_runtime_active_workers" by {controller: "the loop"}
        "Number of currently used workers per controller"
        "At the maximum for minutes: raise `concurrency`, or find out why the workers wait.";
}

declare_metrics! {
    /// The metrics of systems outside the cluster.
    OUTAGES;
    Gauge => "outside_systems_down" by {
        system: "`keycloak`, `prometheus`, `issuer`, `mail`, `registry`, `exam_server`"
    }
        "Number of failing servers outside the cluster by system"
        "Above 0 for minutes: `/readyz` shows URL, error and duration of each outage, and the log its start and end.";
}

declare_metrics! {
    /// The metrics of queues and requests, as in client-go, and of watches.
    QUEUES_AND_REQUESTS;
    Gauge => "workqueue_depth" by {name: "the loop", controller: "the loop"}
        "Current depth of workqueue"
        "It falls to 0 between changes. If not, see `workqueue_oldest_item_seconds`.";
    Counter => "workqueue_adds_total" by {name: "the loop", controller: "the loop"}
        "Total number of adds handled by workqueue"
        "At rest, its rate is determined by `resync`. If it is higher, objects change all the time.";
    Counter => "workqueue_retries_total" by {name: "the loop", controller: "the loop"}
        "Total number of retries handled by workqueue"
        "It rises with errors.";
    Histogram(&QUEUE_BUCKETS) => "workqueue_queue_duration_seconds" by {name: "the loop", controller: "the loop"}
        "Time in seconds that an item stays in workqueue before it is processed"
        "The 99th percentile above some seconds: raise `concurrency`.";
    Histogram(&QUEUE_BUCKETS) => "workqueue_work_duration_seconds" by {name: "the loop", controller: "the loop"}
        "Time in seconds that processing an item from workqueue takes"
        "See `controller_runtime_reconcile_time_seconds`.";
    Gauge => "workqueue_unfinished_work_seconds" by {name: "the loop", controller: "the loop"}
        "Seconds of work that is in progress and not yet observed by workqueue_work_duration_seconds"
        "It grows: workers hang.";
    Gauge => "workqueue_longest_running_processor_seconds" by {name: "the loop", controller: "the loop"}
        "Seconds that the longest running processor of workqueue has been running"
        "Above 600: a worker hangs. The log names the object.";
    Gauge => "workqueue_oldest_item_seconds" by {name: "the loop", controller: "the loop"}
        "Seconds that the longest waiting object of workqueue has been waiting for a worker"
        "It grows: workers hang or fail.";
    Counter => "rest_client_requests_total" by {
        code: "the HTTP status, or `<error>` without a response",
        method: "the HTTP method",
        host: "the API server"
    }
        "Number of requests to the API server by status code, method and host"
        "`5..`, `429` or `<error>` rises: the API server is overloaded or unreachable.";
    Histogram(&REQUEST_BUCKETS) => "rest_client_request_duration_seconds" by {
        verb: "the HTTP method",
        host: "the API server"
    }
        "Latency in seconds of requests to the API server by verb and host"
        "The 99th percentile above a second: the API server is slow. The time of a watch ends with the first response.";
    Gauge => "store_staleness_seconds" by {kind: "the plural name of the kind"}
        "Seconds that the watch of a kind has been broken; 0 while it works"
        "Above 60: the watch is broken. The log shows the reason, `/readyz` the affected loops.";
    Counter => "crownlabs_objects_skipped_total" by {kind: "the plural name of the kind"}
        "Number of listed or watched objects that were skipped because they are too large or cannot be parsed"
        "It rises: the log names the object. Ask its owner to shorten or delete it.";
}
