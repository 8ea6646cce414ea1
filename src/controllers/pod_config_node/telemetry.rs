//! The metrics of pod networks on a node.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All of them.
    METRICS;
    Gauge => "pod_network_links" by {}
        "Number of links of pods that this node has made and verified"
        "Lower than expected: the condition `Ready` of the PodConfigs says why.";
    Counter => "pod_network_links_made_total" by {}
        "Number of links of pods that this node has made, including links recreated after damage"
        "It rises while no pod starts: something removes links; the log names them.";
    Counter => "pod_network_links_removed_total" by {}
        "Number of links of pods that this node has removed, including links that it recreated"
        "It rises with `pod_network_links_made_total` at rest: links are damaged repeatedly.";
    Counter => "pod_network_failures_total" by {reason: "the [reason](reasons.md)"}
        "Number of failures of this node with links of pods by reason"
        "It rises: see the log, and the condition `Ready` of the PodConfigs.";
}
