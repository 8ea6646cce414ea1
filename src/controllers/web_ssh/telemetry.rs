//! The metrics of web SSH.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All metrics of web SSH.
    METRICS;
    Gauge => "bastion_web_ssh_sessions" by {}
        "Number of terminals that are open in browsers"
        "Near `controllers.webSsh.maxConnections`: raise that, or run more replicas.";
}
