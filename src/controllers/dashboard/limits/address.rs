//! The address of a client, as trusted proxies report it.

use std::net::{IpAddr, Ipv6Addr};

use http::HeaderMap;

use crate::config::Network;

/// The header to which each proxy appends the address of its peer.
const FORWARDED: &str = "x-forwarded-for";

/// Returns the address of a client; `None` if it is unknown. A client can write entries into the header, but proxies
/// append to them. So the last address that is not a trusted proxy is the client. Without trusted proxies, the peer may
/// be a proxy of all clients.
///
/// Of an IPv6 address, the network of 64 bits counts: its client can use any address in it.
pub fn client(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> Option<IpAddr> {
    let is_proxy = |address: &IpAddr| proxies.iter().any(|network| network.contains(*address));
    if proxies.is_empty() {
        return None;
    }
    let values = headers.get_all(FORWARDED).iter().map(|value| value.to_str().unwrap_or_default());
    let entries: Vec<&str> = values.flat_map(|value| value.split(',')).collect();
    let forwarded = entries.into_iter().rev().map(|entry| entry.trim().parse::<IpAddr>().ok());
    let mut hops = std::iter::once(Some(peer)).chain(forwarded);
    hops.find(|hop| hop.as_ref().is_none_or(|address| !is_proxy(address))).flatten().map(network)
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The client of a request from `peer`; empty if it is unknown.
    fn found(peer: &str, values: &[&'static str], proxies: &[&str]) -> String {
        let proxies: Vec<Network> = proxies.iter().map(|text| text.parse().expect("a network")).collect();
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(FORWARDED, HeaderValue::from_static(value));
        }
        let client = client(peer.parse().expect("an address"), &headers, &proxies);
        client.map(|address| address.to_string()).unwrap_or_default()
    }

    #[test]
    fn without_trusted_proxies_the_client_is_unknown() {
        for values in [&[][..], &["192.0.2.1"], &["10.0.0.1, 192.0.2.1"]] {
            assert_eq!(found("203.0.113.1", values, &[]), "", "{values:?}");
        }
    }

    #[test]
    fn the_last_address_that_is_not_a_trusted_proxy_is_the_client() {
        let proxies = ["10.0.0.0/8", "192.0.2.80/32"];
        for (peer, values, expected) in [
            // A client that connects without a proxy.
            ("203.0.113.1", &["10.1.1.1"][..], "203.0.113.1"),
            ("203.0.113.1", &[], "203.0.113.1"),
            ("10.1.1.1", &["203.0.113.1"], "203.0.113.1"),
            ("::ffff:10.1.1.1", &["203.0.113.1, 192.0.2.80"], "203.0.113.1"),
            ("10.1.1.1", &["203.0.113.1", "192.0.2.80"], "203.0.113.1"),
            // Entries that the client has written.
            ("10.1.1.1", &["198.51.100.1, 203.0.113.1"], "203.0.113.1"),
            ("10.1.1.1", &["10.2.2.2, garbage,203.0.113.1 ,192.0.2.80"], "203.0.113.1"),
            ("10.1.1.1", &["garbage", "203.0.113.1"], "203.0.113.1"),
            // A proxy that reports no address.
            ("10.1.1.1", &[], ""),
            ("10.1.1.1", &["unknown"], ""),
            ("10.1.1.1", &["203.0.113.1, unknown"], ""),
            ("10.1.1.1", &["10.2.2.2"], ""),
            ("10.1.1.1", &["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::"),
        ] {
            assert_eq!(found(peer, values, &proxies), expected, "{peer} {values:?}");
        }
    }
}
