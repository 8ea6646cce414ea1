//! The keys of pod networks; see `docs/pod-networks.md`.

use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;
use super::network::NETWORK;

keys! {
    /// The leader side of pod networks.
    pub struct PodConfigConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool,
        /// The number of `PodConfig`s that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 4,
        /// The namespaces whose `PodConfig`s are reconciled; empty for all.
        pub namespaces: Vec<String> as [formats::DNS_LABEL],
        /// The ranges that attachments must not overlap: the ranges of pods, Services and nodes of the cluster.
        pub reserved_cidrs: Vec<String> as [NETWORK],
        /// How long the removal of links waits for a node that is not ready.
        pub lost_node_grace: ConfigDuration = ConfigDuration::from_secs(300),
        /// The image of the sample Deployment; it must contain `bash`.
        pub sample_image: String as formats::IMAGE = "nicolaka/netshoot:latest".to_owned(),
    }
}
