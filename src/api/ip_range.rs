//! Ranges of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Whether two ranges have an address in common.
pub fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

/// Returns the first host address of a range: the one after the network address. The bridge of a range has it as its
/// gateway.
pub fn gateway(range: &IpNet) -> IpAddr {
    match range {
        IpNet::V4(range) => Ipv4Addr::from_bits(range.network().to_bits().saturating_add(1)).into(),
        IpNet::V6(range) => Ipv6Addr::from_bits(range.network().to_bits().saturating_add(1)).into(),
    }
}
