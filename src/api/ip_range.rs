//! Ranges of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Whether some address is in both ranges.
pub fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

/// The address after that of the range itself: the first that a host can have, which the bridge of a range has as its gateway.
pub fn gateway(range: &IpNet) -> IpAddr {
    match range {
        IpNet::V4(range) => Ipv4Addr::from_bits(range.network().to_bits().saturating_add(1)).into(),
        IpNet::V6(range) => Ipv6Addr::from_bits(range.network().to_bits().saturating_add(1)).into(),
    }
}
