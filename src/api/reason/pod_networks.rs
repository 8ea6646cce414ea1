//! Reasons of pod networks: of `PodConfig`s, and of the pods that they cannot serve.

use super::{Reason, reasons};

reasons! { POD_NETWORKS, POD_NETWORKS_ROWS;
    /// Every pod has its interfaces. As an event: this pod has them now.
    CONFIGURED = "Configured" on [PodConfig] in [Ready, Event] by Nobody: "Nothing.";
    /// No pod has the label `podconfig` with the name of the object, so there is nothing to do.
    NO_PODS = "NoPods" on [PodConfig] in [Ready] by Nobody:
        "Nothing; or give pods of the namespace the label, if they are to have interfaces.";
    /// A pod does not have all its interfaces yet: it does not run, or its node has not made them.
    CONFIGURING = "Configuring" on [PodConfig] in [Ready] by Nobody:
        "Wait. If it lasts, see whether the pod runs, and `crownlabs` on its node.";
    /// The interfaces of a pod were removed: it is gone, has lost its label, or the object is being deleted.
    RELEASED = "Released" on [PodConfig] in [Event] by Nobody: "Nothing.";
    /// The range of an attachment is none, or none from which pods can have addresses.
    INVALID_CIDR = "InvalidCIDR" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Write a range such as `10.77.0.0/24` into the attachment that the message names.";
    /// The name or the bridge of an attachment cannot be that of a link, or the name is there twice.
    INVALID_ATTACHMENT = "InvalidAttachment" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Correct `name` or `master` of the attachment that the message names. The others are made.";
    /// The type of the link is not `veth`.
    UNSUPPORTED_LINK_TYPE = "UnsupportedLinkType" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Write `linkType: veth`, or leave it empty.";
    /// The range is in use: by another attachment, by the cluster (`reservedCidrs`), or by a route or address of a node.
    NETWORK_OVERLAP = "NetworkOverlap" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "The message names what has the range. Choose another one, or wait while that is being removed.";
    /// The bridge is in use: by a `PodConfig` of another namespace, or a link of the node has its name.
    BRIDGE_CONFLICT = "BridgeConflict" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Choose another name for the bridge (`master`), or have the node's own bridge allowed by the configuration.";
    /// No address of the range is free, or the range has as many addresses in use as can be recorded.
    POOL_EXHAUSTED = "PoolExhausted" on [PodConfig] in [Ready, Reconciled, Event] by Administrator:
        "Choose a larger range, or run fewer pods. Pods that have an address keep it.";
    /// The name of a link would have more than the 15 bytes that the kernel allows.
    NAME_TOO_LONG = "NameTooLong" on [PodConfig] in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Give the attachment a name of at most 7 characters.";
    /// No container runtime answers on a node, so its pods get no interfaces. Those that are there stay.
    RUNTIME_UNAVAILABLE = "RuntimeUnavailable" on [PodConfig] in [Ready, Reconciled, Event] by Administrator:
        "See whether containerd or CRI-O runs on the node, and whether its socket is the configured one.";
    /// A node could not make, verify or remove an interface.
    LINK_FAILED = "LinkFailed" on [PodConfig] in [Ready, Reconciled, Event] by Administrator:
        "The message has the error of the node, which tries again.";
    /// A former interface of the pod is still being removed; it gets its new one after that.
    LINK_LEAVING = "LinkLeaving" on [PodConfig] in [Ready, Reconciled, Event] by Nobody: "Wait.";
    /// The object is being deleted, and nodes still remove interfaces. On a Node: it has come back with interfaces of an object
    /// that is gone.
    LINKS_LEFT = "LinksLeft" on [PodConfig] in [DeletionBlocked, Event] on [Node] in [Event] by Administrator:
        "Wait. If a node never answers, see whether podConfigNode runs there, or delete its Node object; one that is not ready is waited for `lostNodeGrace`.";
    /// Another Deployment has the name of the sample. It is left alone, and the attachments work.
    SAMPLE_DEPLOYMENT_CONFLICT = "SampleDeploymentConflict" on [PodConfig]
        in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Choose another `sampleDeployment.name`, or delete the other Deployment.";
    /// The sample Deployment has no name, or one that no Deployment can have. The attachments work.
    INVALID_SAMPLE_DEPLOYMENT = "InvalidSampleDeployment" on [PodConfig]
        in [Ready, Reconciled, Stalled, Event] by Administrator:
        "Correct `sampleDeployment.name`, or the name of the object, as the message says.";
    /// `spec.vlans` is accepted and ignored.
    VLANS_NOT_IMPLEMENTED = "VlansNotImplemented" on [PodConfig] in [Event] by Administrator: "Remove `spec.vlans`.";
    /// A pod with the label uses the network of its node, and is left alone: an interface would be the node's.
    HOST_NETWORK_POD = "HostNetworkPod" on [PodConfig, Pod] in [Event] by Teacher:
        "Take the label `podconfig` from the pod, or `hostNetwork`.";
}
