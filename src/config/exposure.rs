//! The keys of the public exposure loop; see `docs/public-exposure.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::Deserialize;

use super::bound::Bound;
use super::formats;
use super::keys::{keys, text};
use super::pool::{ADDRESSES, Pool};

const LIMITED: Bound = Bound::Other(
    |value| Pool::parse(&Vec::<String>::deserialize(value).ok()?).err().map(|error| error.to_string()),
    "at most 65536 addresses in all",
);

keys! {
    /// The public exposure loop.
    pub struct PublicExposureConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Instances that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 4,
        /// The IP addresses to assign, as single addresses, ranges `first-last` or networks. The load balancer must
        /// announce them, and they must not be used for anything else.
        pub ip_pool: Vec<String> as [ADDRESSES] where LIMITED,
        /// The ports to assign if an Instance requests port 0; the lowest free one is taken.
        pub automatic_port_range: PortRange,
        /// The annotations of every Service, such as the annotation that lets the load balancer assign one address to
        /// several Services.
        #[schemars(extend("propertyNames" = {"format": formats::LABEL_KEY.name}))]
        pub common_annotations: BTreeMap<String, String>,
        /// The labels of every Service, in addition to the labels that the loop sets.
        #[schemars(transform = formats::labels)]
        pub common_labels: BTreeMap<String, String>,
        /// The annotation of a Service that requests its address from the load balancer. The default is the annotation
        /// of `MetalLB` 0.14.9 and later.
        pub load_balancer_ips_key: String as formats::LABEL_KEY = "metallb.io/loadBalancerIPs".to_owned(),
        /// Whether an exposure becomes ready only when the load balancer has assigned the requested address.
        pub wait_for_address: bool = true,
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
#[error("expected {}", PORT_RANGE.expected)]
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

text!(
    PortRange,
    PORT_RANGE = "crownlabs-port-range",
    "two ports from 1 to 65535, the lower one first, such as 49152-65535",
    "^ *[0-9]{1,5} *- *[0-9]{1,5} *$"
);

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
