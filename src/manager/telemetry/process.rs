//! The metrics of the process and of its installation.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// The metrics of the process and its lease.
    PROCESS;
    Gauge => "crownlabs_build_info" by {version: "the version", revision: "the commit of its source; `unknown` where it was not built by `make build`"}
        "The version of the program; always 1"
        "Nothing: join it with other metrics to see the version.";
    Gauge => "process_start_time_seconds" by {}
        "Start time of the process in seconds since 1970"
        "An unexpected restart.";
    Gauge => "process_resident_memory_bytes" by {}
        "Resident memory size in bytes"
        "It grows with the number of objects. Raise the limit of the pod before the value reaches it.";
    Gauge => "process_open_fds" by {}
        "Number of open file descriptors"
        "It follows the number of connections. If it only grows, report a bug.";
    Gauge => "leader_election_master_status" by {name: "the Lease"}
        "Whether this replica holds the lease: 1 for the leader, 0 for a standby"
        "The sum over the replicas is 1; any other sum lasts at most 20 s. See [Operating](../operating.md#failover).";
}

declare_metrics! {
    /// The metrics of the CRDs, and of the objects of former selectors.
    INSTALLATION;
    Gauge => "crownlabs_crd_mismatch" by {crd: "the CRD"}
        "Whether a CRD drops fields that the daemon writes, or has objects in a version that this release does not have: 1, or 0"
        "1: the log names the fields or versions. Apply `manifests/crds` of this release. See [Operating](../operating.md#upgrade).";
    Gauge => "crownlabs_objects_of_former_selectors" by {kind: "`Tenants`, `Workspaces` or `SharedVolumes`"}
        "Number of objects with the finalizer of this installation that its selector no longer matches"
        "Above 0: the selector was changed, perhaps by mistake; /readyz names the former one.";
}

#[cfg(test)]
declare_metrics! {
    /// The metrics that are rendered as text.
    CPU_TIME;
    Counter => "process_cpu_seconds_total" by {}
        "Total user and system CPU time spent in seconds"
        "Its rate at rest is a few thousandths of a core.";
}
