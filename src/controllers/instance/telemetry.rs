//! The metrics of the instance loop.

use crate::runtime::metric::declare_metrics;

/// The buckets of the Go operators for the time until an Instance is ready, in seconds.
const READY_BUCKETS: [f64; 30] = [
    5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 90.0, 120.0, 150.0, 180.0, 210.0,
    240.0, 270.0, 300.0, 330.0, 360.0, 390.0, 420.0, 450.0, 480.0, 510.0, 540.0, 570.0, 600.0,
];

declare_metrics! {
    /// The metrics of all Instances.
    PHASES;
    Gauge => "crownlabs_instances" by {phase: "`status.phase`", type: "`environmentType`"}
        "Number of Instances by their phase and by the type of their first environment"
        "`Failed` and `CreationLoopBackoff` that rise: `crownlabs why` of one of them.";
}

declare_metrics! {
    /// The metrics of single environments.
    READY;
    Histogram(&READY_BUCKETS) => "instance_initial_ready_time_second" by {
        workspace: "the Workspace",
        template: "the Template",
        environment: "the environment",
        type: "`environmentType`",
        persistent: "`true` or `false`"
    }
        "Time in seconds from the creation of an Instance until an environment is ready for the first time"
        "The waiting time of students. Times above 30 minutes are not recorded.";
}
