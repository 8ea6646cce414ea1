//! The keys of the loop that measures what Instances use; see `docs/instance-metrics.md`.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::rules::Rule;
use super::runtime_endpoint::RUNTIME_ENDPOINT;
use super::types::ListenAddress;

/// What Instances in containers use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InstanceMetricsConfig {
    /// Whether this process measures what the Instances on its node use.
    pub enabled: bool,
    /// The address and port of the gRPC service `instmetrics.InstanceMetrics`; empty to turn it off.
    pub listen: ListenAddress,
    /// The socket of the container runtime; empty for the first that answers of those of containerd, CRI-O and k3s.
    #[schemars(extend("format" = RUNTIME_ENDPOINT.name))]
    pub runtime_endpoint: String,
    /// The time in which the container runtime has to answer a request, from `100ms` to `30s`.
    pub connection_timeout: ConfigDuration,
    /// The time between two measurements, from `100ms` to `15s`.
    pub update_period: ConfigDuration,
}

impl Default for InstanceMetricsConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            listen: ListenAddress(Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9090)))),
            runtime_endpoint: String::new(),
            connection_timeout: ConfigDuration::from_secs(5),
            update_period: ConfigDuration::from_secs(1),
        }
    }
}

/// The rules about these keys.
pub(super) const RULES: &[Rule] = &[
    Rule {
        keys: &["controllers.instanceMetrics.connectionTimeout"],
        broken: |config| {
            outside(config.controllers.instance_metrics.connection_timeout, Duration::from_secs(30))
        },
        expected: "expected from 100ms to 30s",
    },
    Rule {
        keys: &["controllers.instanceMetrics.updatePeriod"],
        broken: |config| outside(config.controllers.instance_metrics.update_period, Duration::from_secs(15)),
        expected: "expected from 100ms to 15s",
    },
];

/// The problem that a time is below 100 ms or above `most`.
fn outside(time: ConfigDuration, most: Duration) -> Option<String> {
    let range = Duration::from_millis(100)..=most;
    (!range.contains(&time.get())).then(|| format!("{time} is out of range"))
}
