//! The keys of pod networks; see `docs/pod-networks.md`.

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats::{self, Format};

/// The formats of these keys alone.
pub(super) const FORMATS: [&Format; 1] = [&NETWORK];
const NETWORK: Format =
    Format::new("crownlabs-network", "a network such as 10.96.0.0/12 or fd00:10::/64", |text| {
        text.parse::<IpNet>().is_ok()
    });

/// The leader side of pod networks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodConfigConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of `PodConfig`s that are reconciled at the same time, from 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The namespaces whose `PodConfig`s are reconciled; none for all.
    #[schemars(extend("items" = {"type": "string", "format": formats::DNS_LABEL.name}))]
    pub namespaces: Vec<String>,
    /// The ranges that no attachment may overlap: those of pods, Services and nodes of the cluster.
    #[schemars(extend("items" = {"type": "string", "format": NETWORK.name}))]
    pub reserved_cidrs: Vec<String>,
    /// The time after which a node that is not ready is not waited for any more when links are to be removed.
    pub lost_node_grace: ConfigDuration,
    /// The image of the sample Deployment; it must contain `bash`.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub sample_image: String,
}

impl Default for PodConfigConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            concurrency: 4,
            namespaces: Vec::new(),
            reserved_cidrs: Vec::new(),
            lost_node_grace: ConfigDuration::from_secs(300),
            sample_image: "nicolaka/netshoot:latest".to_owned(),
        }
    }
}
