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
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 4,
        /// The namespaces whose `PodConfig`s are reconciled; none for all.
        #[schemars(extend("items" = {"type": "string", "format": formats::DNS_LABEL.name}))]
        pub namespaces: Vec<String>,
        /// The ranges that no attachment may overlap: those of pods, Services and nodes of the cluster.
        #[schemars(extend("items" = {"type": "string", "format": NETWORK.name}))]
        pub reserved_cidrs: Vec<String>,
        /// The time after which a node that is not ready is not waited for any more when links are to be removed.
        pub lost_node_grace: ConfigDuration = ConfigDuration::from_secs(300),
        /// The image of the sample Deployment; it must contain `bash`.
        pub sample_image: String as formats::IMAGE = "nicolaka/netshoot:latest".to_owned(),
    }
}
