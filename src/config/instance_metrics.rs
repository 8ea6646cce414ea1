//! The keys of the loop that measures what Instances use; see `docs/instance-metrics.md`.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats::Format;
use super::rules::Rule;
use super::runtime_endpoint::RUNTIME_ENDPOINT;
use super::types::ListenAddress;
use crate::api::names::check_dns_label;

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
    /// The namespaces with Instances: names, or beginnings of names with `*` at the end. Pods in others are not measured,
    /// whatever labels they have, so nobody but the daemon should make pods in these.
    #[schemars(extend("items" = {"type": "string", "format": NAMESPACES.name}))]
    pub namespaces: Vec<String>,
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
            namespaces: ["tenant-*", "workspace-*"].map(str::to_owned).to_vec(),
            connection_timeout: ConfigDuration::from_secs(5),
            update_period: ConfigDuration::from_secs(1),
        }
    }
}

const NAMESPACES: Format = Format::new(
    "crownlabs-namespaces",
    "the name of a namespace, or the beginning of names with * at the end, such as tenant-*",
    |text| {
        let begin = text.strip_suffix('*').map(|begin| format!("{begin}x"));
        check_dns_label(begin.as_deref().unwrap_or(text)).is_ok()
    },
);

/// The format of these keys.
pub(super) const FORMATS: [&Format; 1] = [&NAMESPACES];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_names_or_their_beginnings() {
        for text in ["exams", "tenant-*", "a*", "*"] {
            assert!((NAMESPACES.accepts)(text), "{text:?}");
        }
        for text in ["", "A", "-a*", "a**", "*-a", "a b", "a.b"] {
            assert!(!(NAMESPACES.accepts)(text), "{text:?}");
        }
    }
}
