//! The metrics of packets and connections.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// The metrics of the packets.
    TRACKER;
    Gauge => "bastion_ssh_tracker_running" by {}
        "Whether the SSH tracker captures packets"
        "0: no packets are captured, so SSH use is not detected. `/readyz/sshTracker` says why.";
    Counter => "bastion_ssh_tracker_packets_total" by {}
        "Number of packets that passed the filter of the SSH tracker"
        "It rises with each connection. If not, see `controllers.sshTracker.interface`.";
    Counter => "bastion_ssh_tracker_drops_total" by {}
        "Number of packets of the SSH tracker that were lost because the ring was full"
        "It rises: connections may be missed. Give the pod more CPU time.";
    Counter => "bastion_ssh_tracker_freezes_total" by {}
        "Number of times the ring of the SSH tracker was full"
        "See `bastion_ssh_tracker_drops_total`.";
}

#[cfg(test)]
declare_metrics! {
    /// The metrics that are rendered as text.
    CONNECTIONS;
    Counter => "bastion_ssh_connections_total" by {destination_ip: "the address", destination_port: "the port"}
        "SSH connections detected from bastion to a target"
        "SSH use of Instances. See [queries](../prometheus-queries.md).";
    Counter => "bastion_ssh_connections_evicted_total" by {}
        "Number of destinations whose counter was evicted in favour of another"
        "It rises: a user connects to thousands of addresses that are not Instances.";
    Counter => "bastion_instance_ssh_connections_total" by {namespace: "the namespace", instance: "the Instance"}
        "SSH connections detected from bastion to a target, by Instance"
        "The same counts by Instance, unless `controllers.sshTracker.byInstance` is off.";
    Gauge => "bastion_ssh_open_connections" by {destination_ip: "the address", destination_port: "the port"}
        "SSH connections from bastion to a target that are open"
        "Sessions that are open now, including browser terminals. Each machine with an open session has a series.";
    Counter => "bastion_web_ssh_connections_total" by {destination_ip: "the address", destination_port: "the port"}
        "SSH connections established through the WebSocket bridge"
        "Use of Instances through browser terminals.";
    Counter => "bastion_web_ssh_connections_evicted_total" by {}
        "Number of destinations whose counter was evicted in favour of another"
        "Terminals connect only to Instances, so it stays 0.";
}
