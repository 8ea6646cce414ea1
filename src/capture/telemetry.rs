//! The metrics of packets and connections.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// Those of the packets.
    TRACKER;
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
}

#[cfg(test)]
declare_metrics! {
    /// What is written as text.
    CONNECTIONS;
    Counter => "bastion_ssh_connections" by {destination_ip: "the address", destination_port: "the port"}
        "SSH connections detected from bastion to a target"
        "The use of Instances by SSH. See [queries](../prometheus-queries.md).";
    Counter => "bastion_ssh_connections_evicted_total" by {}
        "Number of destinations whose counter gave way to that of another one"
        "It rises: somebody connects to thousands of addresses that are no Instances.";
    Counter => "bastion_instance_ssh_connections" by {namespace: "the namespace", instance: "the Instance"}
        "SSH connections detected from bastion to a target, by Instance"
        "The same by Instance, unless `controllers.sshTracker.byInstance` is off.";
    Gauge => "bastion_ssh_open_connections" by {destination_ip: "the address", destination_port: "the port"}
        "SSH connections from bastion to a target that are open"
        "Sessions that are open now, also those of terminals in the browser: there is a series for each machine that has one.";
    Counter => "bastion_web_ssh_connections" by {destination_ip: "the address", destination_port: "the port"}
        "SSH connections established through the WebSocket bridge"
        "The use of Instances by terminals in the browser.";
    Counter => "bastion_web_ssh_connections_evicted_total" by {}
        "Number of destinations whose counter gave way to that of another one"
        "Terminals reach Instances only, so it stays 0.";
}
