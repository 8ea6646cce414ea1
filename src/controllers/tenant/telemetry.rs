//! The metrics of the tenant loop.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// The metrics of quotas.
    QUOTAS;
    Gauge => "crownlabs_workspace_quota_used" by {workspace: "the Workspace", resource: "`cpu`, `memory` or `instances`"}
        "Amount that Instances of a Workspace use in personal namespaces: cores and bytes of running Instances, and the number of all"
        "Near the granted amount: most of the course works at the same time.";
    Gauge => "crownlabs_workspace_quota_granted" by {workspace: "the Workspace", resource: "`cpu`, `memory` or `instances`"}
        "Amount that the quota of a Workspace grants to all of its users together: cores, bytes, and a number"
        "More than the capacity of the nodes: not all users can work at the same time.";
    Gauge => "crownlabs_tenants_near_quota" by {resource: "`cpu`, `memory` or `instances`"}
        "Number of Tenants that use at least 90 % of their quota by resource"
        "Many: the quota of a Workspace is too small for its Templates.";
}
