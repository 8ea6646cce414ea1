//! The metrics of what Instances use.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// The families that are written as text.
    FAMILIES;
    Gauge => "crownlabs_instance_cpu_percent" by {namespace: "the namespace", pod: "the pod", instance: "the Instance"}
        "Processor use of the application of an Instance in a container, in percent of one core"
        "Near the limit of its Template all the time: students wait. See [Instance metrics](../instance-metrics.md).";
    Gauge => "crownlabs_instance_memory_working_set_bytes" by {namespace: "the namespace", pod: "the pod", instance: "the Instance"}
        "Working set of the application of an Instance in a container, in bytes"
        "Near the limit of its Template: the application is killed there.";
    Gauge => "crownlabs_instance_disk_bytes" by {namespace: "the namespace", pod: "the pod", instance: "the Instance"}
        "Size in bytes of the files that the application of an Instance in a container has written outside its volumes"
        "It grows without end: the node has to evict pods when its disk is full.";
}
