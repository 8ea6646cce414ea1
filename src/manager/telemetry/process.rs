//! The metrics of the process.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// Those of the process and its lease.
    PROCESS;
    Gauge => "crownlabs_build_info" by {version: "the version", revision: "the commit of its source; `unknown` where it was not built by `make build`"}
        "The version of the program; always 1"
        "Nothing: join it to others to see the version.";
    Gauge => "process_start_time_seconds" by {}
        "Start time of the process in seconds since 1970"
        "A restart that nobody asked for.";
    Gauge => "process_resident_memory_bytes" by {}
        "Resident memory size in bytes"
        "It grows with the number of objects; near the limit of the pod, raise that.";
    Gauge => "process_open_fds" by {}
        "Number of open file descriptors"
        "It follows the connections. If it only grows, report a defect.";
    Gauge => "leader_election_master_status" by {name: "the Lease"}
        "Whether this replica holds the lease: 1 for the leader, 0 for a standby"
        "The sum over the replicas is 1; not for longer than 20 s otherwise. See [Operating](../operating.md#failover).";
}

declare_metrics! {
    /// Those of the CRDs.
    DEFINITIONS;
    Gauge => "crownlabs_crd_mismatch" by {crd: "the CRD"}
        "Whether a CRD drops fields that are written, or has objects in a version that ours does not have: 1, or 0"
        "1: the log says which fields or versions. Apply `manifests/crds` of this release. See [Operating](../operating.md#upgrade).";
}

#[cfg(test)]
declare_metrics! {
    /// What is written as text.
    CPU_TIME;
    Counter => "process_cpu_seconds_total" by {}
        "Total user and system CPU time spent in seconds"
        "Its rate at rest is a few thousandths of a core.";
}
