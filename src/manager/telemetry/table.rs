//! The table of all metrics: what is registered, and what the reference says about it.

/// controller-runtime's buckets for the duration of a reconciliation, in seconds.
const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// The default buckets of Prometheus' client for Go, which controller-runtime uses for reviews, in seconds.
const REVIEW_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// client-go's buckets for times in a workqueue, in seconds.
const QUEUE_BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];
/// client-go's buckets for the duration of requests, in seconds.
const REQUEST_BUCKETS: [f64; 14] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 45.0, 60.0, 120.0];

/// The Go operators' buckets for the time until an Instance is ready, in seconds.
const READY_BUCKETS: [f64; 30] = [
    5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 90.0, 120.0, 150.0, 180.0, 210.0,
    240.0, 270.0, 300.0, 330.0, 360.0, 390.0, 420.0, 450.0, 480.0, 510.0, 540.0, 570.0, 600.0,
];

/// A metric of the recorder.
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
    /// What to look at.
    #[cfg(test)]
    pub look: &'static str,
}

/// The type of a metric.
pub enum Kind {
    /// A number that only rises.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// Durations in seconds, by these upper bounds.
    Histogram(&'static [f64]),
}
use Kind::{Counter, Gauge, Histogram};

/// Declares metrics: type, name, labels with their values, help text, and what to look at. Labels and the last text are for
/// the reference (`docs/reference/metrics.md`) and not in the program.
macro_rules! metrics {
    ($($kind:expr_2021 => $name:literal by {$($label:ident: $values:literal),*} $help:literal $look:literal;)+) => {
        /// All metrics but those of [`RENDERED`].
        pub const METRICS: &[Metric] = &[$(Metric {
            name: $name,
            help: $help,
            kind: $kind,
            #[cfg(test)]
            labels: &[$((stringify!($label), $values)),*],
            #[cfg(test)]
            look: $look,
        }),+];
    };
}

metrics! {
    Gauge => "crownlabs_build_info" by {version: "the version"}
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
    Counter => "controller_runtime_reconcile_total" by {
        controller: "the loop",
        result: "`success`, `error`, or `requeue_after`: it is looked at again after a time"
    }
        "Total number of reconciliations per controller and result"
        "`error` that rises all the time: the log names objects and errors.";
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
        "At the maximum for minutes: raise `concurrency`, or see what the workers wait for.";
    Counter => "controller_runtime_webhook_requests_total" by {webhook: "the path", code: "the HTTP status"}
        "Total number of admission requests per webhook and code"
        "Other codes than 200: a review was not answered. The log says why.";
    Histogram(&REVIEW_BUCKETS) => "controller_runtime_webhook_latency_seconds" by {webhook: "the path"}
        "Latency in seconds of admission requests per webhook"
        "Near 5 s (`timeoutSeconds`) the API server gives up, and refuses the request of the user.";
    Gauge => "workqueue_depth" by {name: "the loop", controller: "the loop"}
        "Current depth of workqueue"
        "It falls to 0 between changes. If not, see `workqueue_oldest_item_seconds`.";
    Counter => "workqueue_adds_total" by {name: "the loop", controller: "the loop"}
        "Total number of adds handled by workqueue"
        "Its rate at rest is that of `resync`. More: something changes objects all the time.";
    Counter => "workqueue_retries_total" by {name: "the loop", controller: "the loop"}
        "Total number of retries handled by workqueue"
        "It rises with errors.";
    Histogram(&QUEUE_BUCKETS) => "workqueue_queue_duration_seconds" by {name: "the loop", controller: "the loop"}
        "Time in seconds that an item stays in workqueue before it is processed"
        "The 99th percentile above some seconds: raise `concurrency`.";
    Histogram(&QUEUE_BUCKETS) => "workqueue_work_duration_seconds" by {name: "the loop", controller: "the loop"}
        "Time in seconds that processing an item from workqueue takes"
        "As `controller_runtime_reconcile_time_seconds`.";
    Gauge => "workqueue_unfinished_work_seconds" by {name: "the loop", controller: "the loop"}
        "Seconds of work that is in progress and not yet observed by workqueue_work_duration_seconds"
        "It grows: workers hang.";
    Gauge => "workqueue_longest_running_processor_seconds" by {name: "the loop", controller: "the loop"}
        "Seconds for which the longest running processor of workqueue has been running"
        "Above 600: a worker hangs. The log names the object.";
    Gauge => "workqueue_oldest_item_seconds" by {name: "the loop", controller: "the loop"}
        "Seconds for which the object that waits longest in workqueue has been waiting for a worker"
        "It grows: workers hang or fail.";
    Counter => "rest_client_requests_total" by {
        code: "the HTTP status, or `<error>` without an answer",
        method: "the HTTP method",
        host: "the API server"
    }
        "Number of requests to the API server by status code, method and host"
        "`5..`, `429` or `<error>` that rise: the API server is overloaded or away.";
    Histogram(&REQUEST_BUCKETS) => "rest_client_request_duration_seconds" by {
        verb: "the HTTP method",
        host: "the API server"
    }
        "Latency in seconds of requests to the API server by verb and host"
        "The 99th percentile above a second: the API server is slow. Watches count until their first answer.";
    Gauge => "store_staleness_seconds" by {kind: "the plural name of the kind"}
        "Seconds for which the watch of a kind has been broken; 0 while it follows the cluster"
        "Above 60: the watch is broken. The log says why, `/readyz` which loops need it.";
    Counter => "crownlabs_objects_skipped_total" by {kind: "the plural name of the kind"}
        "Number of objects that were listed or watched and left out, because they are too large or cannot be read"
        "It rises: the log names the object. It is shortened or deleted by whoever made it.";
    Gauge => "crownlabs_crd_mismatch" by {crd: "the CRD"}
        "Whether a CRD drops fields that are written, or has objects in a version that ours does not have: 1, or 0"
        "1: the log says which fields or versions. Apply `manifests/crds` of this release. See [Operating](../operating.md#upgrade).";
    Gauge => "crownlabs_instances" by {phase: "`status.phase`", type: "`environmentType`"}
        "Number of Instances by their phase and by the type of their first environment"
        "`Failed` and `CreationLoopBackoff` that rise: `crownlabs why` of one of them.";
    Gauge => "crownlabs_workspace_quota_used" by {workspace: "the Workspace", resource: "`cpu`, `memory` or `instances`"}
        "Amount that Instances of a Workspace use in personal namespaces: cores and bytes of those that run, and a number"
        "Near what is granted: most of the course works at once.";
    Gauge => "crownlabs_workspace_quota_granted" by {workspace: "the Workspace", resource: "`cpu`, `memory` or `instances`"}
        "Amount that the quota of a Workspace grants to all of its users together: cores, bytes, and a number"
        "More than the nodes have: not everybody can work at once.";
    Gauge => "crownlabs_tenants_near_quota" by {resource: "`cpu`, `memory` or `instances`"}
        "Number of Tenants that use at least 90 % of their quota by resource"
        "Many: the quota of a Workspace is too small for its Templates.";
    Histogram(&READY_BUCKETS) => "instance_initial_ready_time_second" by {
        workspace: "the Workspace",
        template: "the Template",
        environment: "the environment",
        type: "`environmentType`",
        persistent: "`true` or `false`"
    }
        "Time in seconds from the creation of an Instance until an environment is ready for the first time"
        "What students wait. Longer than 30 minutes is not recorded.";
    Gauge => "public_exposure_pool_addresses" by {}
        "Number of public addresses that may be given to Instances"
        "0: `controllers.publicExposure.ipPool` is empty.";
    Gauge => "public_exposure_used_addresses" by {}
        "Number of public addresses on which Instances have ports"
        "Near `public_exposure_pool_addresses`: enlarge the pool.";
    Gauge => "public_exposure_used_ports" by {}
        "Number of public ports that Instances have; TCP and UDP count apart"
        "How much the exposure is used.";
    Gauge => "crownlabs_webhook_certificate_expiration_timestamp_seconds" by {}
        "Time at which the certificate of the webhooks expires, in seconds since 1970"
        "Less than a week ahead: the certificate is not renewed. The log says why.";
    Gauge => "next_deadline_seconds" by {controller: "`inactivity` or `expiration`"}
        "Time of the next promised stop or deletion of an Instance per controller, in seconds since 1970; 0 for none"
        "In the past for an hour: the loop does not act. The log, and the conditions of Instances.";
    Gauge => "automation_instances" by {
        controller: "`inactivity`",
        witness: "`ingress`, `ssh`, `webSsh`: the source of metrics; `start`, `annotation`, `other`"
    }
        "Number of running Instances whose use is watched per controller, by what their last use is known from"
        "`start` for nearly all: no source counts uses. See [queries](../prometheus-queries.md).";
    Gauge => "automation_mails_waiting" by {controller: "`inactivity` or `expiration`"}
        "Number of mails to tenants that no server has accepted yet per controller"
        "Above 0 for an hour: the mail server refuses. The conditions `Inactive`, `Abandoned` and `Expiring` say why.";
    Gauge => "automation_mails_undeliverable" by {controller: "`inactivity` or `expiration`"}
        "Number of Instances per controller whose mails the server refuses for good, also without any text of the user"
        "Above 0: correct the address of the Tenant. The condition with the reason `MailUndeliverable` has the server's words.";
    Counter => "instance_status_checks_total" by {result: "`kept`, `terminated`, `failed`"}
        "Number of queries of the status URLs of Instances by result"
        "`failed` that rises during an exam: the condition `StatusChecked` of the Instances says why.";
    Counter => "image_list_queries_total" by {image_list: "the ImageList", result: "`succeeded`, `failed`"}
        "Number of queries of the registries of image lists by list and result"
        "`failed` that rises: the condition `Stale` of the list says why. See [Image lists](../image-lists.md).";
    Gauge => "image_list_last_success_timestamp_seconds" by {image_list: "the ImageList"}
        "Time at which the registry of an image list was last read, in seconds since 1970; absent before"
        "Long ago: the list is old. On a standby replica it is absent.";
    Gauge => "pod_network_links" by {}
        "Number of links of pods that this node has made and verified"
        "Lower than expected: the condition `Ready` of the PodConfigs says why.";
    Counter => "pod_network_links_made_total" by {}
        "Number of links of pods that this node has made, also again after damage"
        "It rises while no pod starts: something removes links; the log names them.";
    Counter => "pod_network_links_removed_total" by {}
        "Number of links of pods that this node has removed, also to make them again"
        "It rises with `pod_network_links_made_total` at rest: links are damaged again and again.";
    Counter => "pod_network_failures_total" by {reason: "the [reason](reasons.md)"}
        "Number of failures of this node with links of pods by reason"
        "It rises: the log, and the condition `Ready` of the PodConfigs.";
    Gauge => "keycloak_up" by {}
        "Whether Keycloak answers: 1, or 0 while it does not"
        "0: accounts and roles wait; everything else goes on.";
    Counter => "keycloak_requests_total" by {
        method: "the HTTP method",
        operation: "what was asked for, such as `find_user`",
        code: "the HTTP status, or `<error>`"
    }
        "Number of requests to Keycloak by status code, method and operation"
        "`401` and `403`: the client or its rights. `<error>`: Keycloak is away.";
    Histogram(&REQUEST_BUCKETS) => "keycloak_request_duration_seconds" by {operation: "what was asked for"}
        "Latency in seconds of requests to Keycloak by operation"
        "Above a second, reconciles no longer wait for Keycloak, and roles come later.";
    Counter => "crownlabs_mails_total" by {
        kind: "the mail, such as `inactivity_warning`; `undeliverable`: to a manager, about one that is refused",
        result: "`success`, or the [reason](reasons.md)"
    }
        "Number of mails to Tenants, and of attempts that failed, by kind and result"
        "Other results than `success`.";
    Histogram(&REQUEST_BUCKETS) => "crownlabs_mail_duration_seconds" by {}
        "Time in seconds until a mail is accepted or has failed"
        "Near `integrations.mail.timeout`: the mail server is slow.";
    Counter => "prometheus_client_requests_total" by {
        operation: "`health`, `available`, `history`, `uses`",
        code: "the HTTP status, or `<error>`"
    }
        "Number of requests to Prometheus by status code and operation"
        "Other codes than 200: Instances are left running, because it is not known whether they are used.";
    Histogram(&REQUEST_BUCKETS) => "prometheus_client_request_duration_seconds" by {
        operation: "`health`, `available`, `history`, `uses`"
    }
        "Latency in seconds of requests to Prometheus by operation"
        "Near `integrations.prometheus.timeout`: raise `checkInterval` or `queryStep`.";
    Counter => "cri_client_requests_total" by {
        operation: "the method, such as `ListContainerStats`",
        code: "the status of gRPC, such as `Ok` or `DeadlineExceeded`"
    }
        "Number of calls of the container runtime of the node by status code and method"
        "Other codes than `Ok`: the runtime is away or refuses; `/readyz` says why.";
    Histogram(&REQUEST_BUCKETS) => "cri_client_request_duration_seconds" by {operation: "the method"}
        "Latency in seconds of calls of the container runtime of the node by method"
        "Near the deadline: the runtime is overloaded.";
    Counter => "tenant_operator_internal_errors" by {
        controller: "`tenant` or `workspace`",
        reason: "the part that failed, such as `mydrive`"
    }
        "Number of failures in what Tenants and Workspaces need by controller and reason"
        "It rises: the conditions of Tenants and Workspaces say why.";
    Gauge => "bastion_ssh_tracker_running" by {}
        "Whether the SSH tracker captures packets"
        "0: nothing is captured, so use by SSH is not seen. `/readyz/sshTracker` says why.";
    Counter => "bastion_ssh_tracker_packets_total" by {}
        "Number of packets that passed the filter of the SSH tracker"
        "It rises with each connection. If not, see `controllers.sshTracker.interface`.";
    Counter => "bastion_ssh_tracker_drops_total" by {}
        "Number of these packets that were lost because the ring was full"
        "It rises: connections may be missed. Give the pod more processor time.";
    Counter => "bastion_ssh_tracker_freezes_total" by {}
        "Number of times that the ring of the SSH tracker was full"
        "As `bastion_ssh_tracker_drops_total`.";
    Gauge => "bastion_web_ssh_sessions" by {}
        "Number of terminals that are open in browsers"
        "Near `controllers.webSsh.maxConnections`: raise that, or run more replicas.";
    Counter => "exam_agent_requests_total" by {
        route: "`templates`, `instances`, `instance`, `health`, `description`, `other`",
        method: "`GET`, `PUT`, `DELETE`, `other`",
        code: "the HTTP status"
    }
        "Number of requests to the exam agent by route, method and status code"
        "`403`: the client is not in `controllers.examAgent.allowedIps`. `429`: raise `clientQps`. `500`: the log says why.";
    Histogram(&REQUEST_BUCKETS) => "exam_agent_request_duration_seconds" by {
        route: "`templates`, `instances`, `instance`, `health`, `description`, `other`"
    }
        "Latency in seconds of the answers of the exam agent by route"
        "Seconds: the API server is slow, or requests wait for `controllers.examAgent.clientQps`.";
    Gauge => "exam_agent_certificate_expiration_timestamp_seconds" by {}
        "Time at which the certificate of the exam agent expires, in seconds since 1970"
        "Less than a week ahead: the files in `controllers.examAgent.certificateDir` are not renewed.";
    Gauge => "bastion_keys" by {}
        "Number of public keys of Tenants that the SSH bastion accepts"
        "0 with Tenants who have keys: the file is not written. The log says why.";
    Gauge => "bastion_keys_skipped" by {}
        "Number of public keys of Tenants that the SSH bastion cannot use"
        "The condition `InvalidPublicKeys` of the Tenants names them.";
}

/// A row of the metrics that are not of the recorder: name, labels with their values, meaning, what to look at.
#[cfg(test)]
type Rendered = (&'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);

/// The metrics that are not of the recorder but written as text: name, labels with their values, meaning, what to look at.
/// All are counters.
#[cfg(test)]
pub const RENDERED: &[Rendered] = &[
    (
        "process_cpu_seconds_total",
        &[],
        "Total user and system CPU time spent in seconds",
        "Its rate at rest is a few thousandths of a core.",
    ),
    (
        "crownlabs_pod_network_addresses",
        &[("namespace", "the namespace"), ("range", "the range"), ("state", "`free` or `used`")],
        "Addresses for pods in the range of a namespace that are used, and that are free",
        "`free` near 0: new pods get no interface. See [pod networks](../pod-networks.md).",
    ),
    (
        "bastion_ssh_connections",
        &[("destination_ip", "the address"), ("destination_port", "the port")],
        "SSH connections detected from bastion to a target",
        "The use of Instances by SSH. See [queries](../prometheus-queries.md).",
    ),
    (
        "bastion_ssh_connections_evicted_total",
        &[],
        "Number of destinations whose counter gave way to that of another one",
        "It rises: somebody connects to thousands of addresses that are no Instances.",
    ),
    (
        "bastion_instance_ssh_connections",
        &[("namespace", "the namespace"), ("instance", "the Instance")],
        "SSH connections detected from bastion to a target, by Instance",
        "The same by Instance, unless `controllers.sshTracker.byInstance` is off.",
    ),
    (
        "bastion_web_ssh_connections",
        &[("destination_ip", "the address"), ("destination_port", "the port")],
        "SSH connections established through the WebSocket bridge",
        "The use of Instances by terminals in the browser.",
    ),
    (
        "bastion_web_ssh_connections_evicted_total",
        &[],
        "Number of destinations whose counter gave way to that of another one",
        "Terminals reach Instances only, so it stays 0.",
    ),
];

/// The labels of what a pod of an Instance uses.
#[cfg(test)]
const OF_POD: &[(&str, &str)] =
    &[("namespace", "the namespace"), ("pod", "the pod"), ("instance", "the Instance")];

/// As [`RENDERED`]. All are gauges.
#[cfg(test)]
pub const RENDERED_GAUGES: &[Rendered] = &[
    (
        "crownlabs_instance_cpu_percent",
        OF_POD,
        "Use of processors by the application of an Instance in a container, in percent of one",
        "Near the limit of its Template all the time: students wait. See [Instance metrics](../instance-metrics.md).",
    ),
    (
        "crownlabs_instance_memory_working_set_bytes",
        OF_POD,
        "Memory in bytes that the application of an Instance in a container cannot do without",
        "Near the limit of its Template: the application is killed there.",
    ),
    (
        "crownlabs_instance_disk_bytes",
        OF_POD,
        "Size in bytes of the files that the application of an Instance in a container has written beside its volumes",
        "It grows without end: the node has to evict pods when its disk is full.",
    ),
];
