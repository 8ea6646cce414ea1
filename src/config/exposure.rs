//! The keys of the public exposure loop; see `docs/public-exposure.md`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::formats;

/// The public exposure loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PublicExposureConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of Instances that are reconciled at the same time, from 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The IP addresses to assign, as single addresses, ranges `first-last` or networks; the load balancer
    /// must announce them, and nothing else may use them.
    #[schemars(extend("items" = {"type": "string", "format": formats::ADDRESSES.name}))]
    pub ip_pool: Vec<String>,
    /// The ports to assign if an Instance requests port 0; the lowest free one is taken.
    pub automatic_port_range: PortRange,
    /// The annotations of every Service, such as the one that makes the load balancer assign one address to
    /// several Services.
    #[schemars(extend("propertyNames" = {"format": formats::LABEL_KEY.name}))]
    pub common_annotations: BTreeMap<String, String>,
    /// The labels of every Service, in addition to those that the loop sets.
    #[schemars(extend(
        "propertyNames" = {"format": formats::LABEL_KEY.name},
        "additionalProperties" = {"type": "string", "format": formats::LABEL_VALUE.name},
    ))]
    pub common_labels: BTreeMap<String, String>,
    /// The annotation by which a Service requests its address from the load balancer.
    #[serde(rename = "loadBalancerIpsKey")]
    #[schemars(extend("format" = formats::LABEL_KEY.name))]
    pub load_balancer_ips_key: String,
    /// Whether an exposure is only ready once the load balancer has assigned the requested address.
    pub wait_for_address: bool,
}

impl Default for PublicExposureConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            concurrency: 4,
            ip_pool: Vec::new(),
            automatic_port_range: PortRange::default(),
            common_annotations: BTreeMap::new(),
            common_labels: BTreeMap::new(),
            load_balancer_ips_key: "metallb.universe.tf/loadBalancerIPs".to_owned(),
            wait_for_address: true,
        }
    }
}

/// A range of ports, written as `first-last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

/// The error for a text that is not a range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", formats::PORT_RANGE.expected)]
pub struct PortRangeError;

impl PortRange {
    /// All ports of the range.
    pub const fn ports(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }
}

impl Default for PortRange {
    /// The dynamic ports of RFC 6335, section 6, which are not registered for any service.
    fn default() -> Self {
        Self { first: 49_152, last: 65_535 }
    }
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        let (first, last) = text.split_once('-').ok_or(PortRangeError)?;
        let (first, last) = port(first).zip(port(last)).ok_or(PortRangeError)?;
        if first <= last { Ok(Self { first, last }) } else { Err(PortRangeError) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.first, self.last)
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for PortRange {
    fn schema_name() -> Cow<'static, str> {
        "PortRange".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": formats::PORT_RANGE.name})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ports_has_two_ends_in_order() {
        let range: PortRange = "30000-30010".parse().expect("a range");
        assert_eq!((range.ports(), range.to_string().as_str()), (30_000..=30_010, "30000-30010"));
        assert_eq!("80-80".parse::<PortRange>().expect("one port").ports(), 80..=80);
        for text in ["", "80", "80-", "-80", "81-80", "0-80", "1-65536", "a-b", "1-2-3"] {
            assert_eq!(text.parse::<PortRange>(), Err(PortRangeError), "{text}");
        }
    }
}
