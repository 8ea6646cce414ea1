//! Reasons of pod networks: of `PodConfig`s, and of pods that cannot get interfaces.

use super::{Reason, reasons};

reasons! { POD_NETWORKS, POD_NETWORKS_ROWS;
    /// Every pod has its interfaces. As an event: this pod has its interfaces now.
    CONFIGURED = "Configured" on [PodConfig] in [Ready, Event] by Nobody: "Nothing.";
    /// No pod has the label `podconfig` with the name of the object, so there is nothing to do.
    NO_PODS = "NoPods" on [PodConfig] in [Ready] by Nobody:
        "Nothing; or add the label to the pods of the namespace that need interfaces.";
    /// A pod does not have all its interfaces yet: it does not run, or its node has not made them.
    CONFIGURING = "Configuring" on [PodConfig] in [Ready] by Nobody:
        "Wait. If it lasts, check whether the pod runs, and whether `crownlabs` runs on its node.";
    /// The interfaces of a pod were removed: the pod was deleted or has lost its label, or the object is being
    /// deleted.
    RELEASED = "Released" on [PodConfig] in [Event] by Nobody: "Nothing.";
    /// The range of an attachment is invalid, or pods cannot get addresses from it.
    INVALID_CIDR = "InvalidCIDR" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Write a range such as `10.77.0.0/24` into the attachment that the message names.";
    /// The name or the bridge of an attachment is not a valid name of a link, or the name is used twice.
    INVALID_ATTACHMENT = "InvalidAttachment" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Correct `name` or `master` of the attachment that the message names. The other attachments work.";
    /// The type of the link is not `veth`.
    UNSUPPORTED_LINK_TYPE = "UnsupportedLinkType" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Write `linkType: veth`, or leave it empty.";
    /// The range is in use by another attachment, by the cluster (`reservedCidrs`), or by a route or address of a
    /// node.
    NETWORK_OVERLAP = "NetworkOverlap" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "The message names the user of the range. Choose another range, or wait until the other use is removed.";
    /// The bridge is in use by a `PodConfig` of another namespace, or a link of the node has its name.
    BRIDGE_CONFLICT = "BridgeConflict" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Choose another name for the bridge (`master`), or allow the node's own bridge in the configuration.";
    /// No address of the range is free, or the number of addresses in use has reached the limit that can be recorded.
    POOL_EXHAUSTED = "PoolExhausted" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Choose a larger range, or run fewer pods. Pods that have an address keep it.";
    /// The name of a link would be longer than 15 bytes, the limit of the kernel.
    NAME_TOO_LONG = "NameTooLong" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Give the attachment a name of at most 7 characters.";
    /// No container runtime answers on a node, so its pods get no new interfaces. Existing interfaces stay.
    RUNTIME_UNAVAILABLE = "RuntimeUnavailable" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Check whether containerd or CRI-O runs on the node, and whether the configuration has the path of its socket.";
    /// A node could not make, verify or remove an interface.
    LINK_FAILED = "LinkFailed" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "The message has the error of the node. The node retries.";
    /// An old interface of the pod is still being removed. The pod gets its new one after that.
    LINK_LEAVING = "LinkLeaving" on [PodConfig] in [Ready, Reconciled, Event] by Nobody: "Wait.";
    /// The object is being deleted, and nodes have not removed all its interfaces yet. On a Node: the node is back
    /// with interfaces of an object that was deleted.
    LINKS_LEFT = "LinksLeft" on [PodConfig] in [DeletionBlocked, Event] on [Node] in [Event] by Administrator:
        "Wait. If a node never answers, check whether podConfigNode runs on it, or delete its Node object. For a node that is not ready, the wait ends after `lostNodeGrace`.";
    /// Another Deployment has the name of the sample Deployment. It is not changed, and the attachments work.
    SAMPLE_DEPLOYMENT_CONFLICT = "SampleDeploymentConflict" on [PodConfig]
        in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Choose another `sampleDeployment.name`, or delete the other Deployment.";
    /// The sample Deployment has no name, or a name that is not valid for a Deployment. The attachments work.
    INVALID_SAMPLE_DEPLOYMENT = "InvalidSampleDeployment" on [PodConfig]
        in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Correct `sampleDeployment.name` or the name of the object, as the message says.";
    /// `spec.vlans` is accepted and ignored.
    VLANS_NOT_IMPLEMENTED = "VlansNotImplemented" on [PodConfig] in [Event] by Administrator: "Remove `spec.vlans`.";
    /// A pod with the label uses the network of its node. It gets no interfaces, because they would belong to the
    /// node.
    HOST_NETWORK_POD = "HostNetworkPod" on [PodConfig, Pod] in [Event] by Teacher:
        "Remove the label `podconfig` from the pod, or remove `hostNetwork`.";
}
