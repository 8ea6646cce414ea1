//! The metrics of pod networks.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// The metrics that are written as text.
    ADDRESSES;
    Gauge => "crownlabs_pod_network_addresses" by {namespace: "the namespace", range: "the range", state: "`free` or `used`"}
        "Addresses for pods in the range of a namespace that are used, and that are free"
        "`free` near 0: new pods get no interface. See [pod networks](../pod-networks.md).";
}
