//! The keys of the loop over public exposure: the flags of 03 §1.2, and those that its tables of
//! required behaviour add.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::formats;

/// The loop over the public exposure of Instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PublicExposureConfig {
    /// Whether the loop runs; one that is off costs nothing and needs no rights.
    pub enabled: bool,
    /// How many Instances are worked on at the same time, 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// The addresses that the load balancer announces for us: single ones, ranges `first-last` and
    /// networks. They are ours alone.
    #[schemars(extend("items" = {"type": "string", "format": formats::ADDRESSES.name}))]
    pub ip_pool: Vec<String>,
    /// The ports that are given where an Instance leaves the choice, the lowest free one first.
    pub automatic_port_range: PortRange,
    /// The annotations of every Service, such as those by which the load balancer lets Services share an
    /// address.
    #[schemars(extend("propertyNames" = {"format": formats::LABEL_KEY.name}))]
    pub common_annotations: BTreeMap<String, String>,
    /// The labels of every Service, beside our own.
    #[schemars(extend(
        "propertyNames" = {"format": formats::LABEL_KEY.name},
        "additionalProperties" = {"type": "string", "format": formats::LABEL_VALUE.name},
    ))]
    pub common_labels: BTreeMap<String, String>,
    /// The annotation that tells the load balancer which address a Service is to have.
    #[serde(rename = "loadBalancerIpsKey")]
    #[schemars(extend("format" = formats::LABEL_KEY.name))]
    pub load_balancer_ips_key: String,
    /// Whether an exposure is ready only once the load balancer has given the address.
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

/// Ports from the first to the last, written as `first-last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

/// A text that is not a range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", formats::PORT_RANGE.expected)]
pub struct PortRangeError;

impl PortRange {
    /// All of them.
    #[must_use]
    pub const fn ports(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }
}

impl Default for PortRange {
    /// The ports that nobody is registered for (RFC 6335 §6).
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
