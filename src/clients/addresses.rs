//! The addresses that URLs of users may lead to.
//!
//! The daemon sends these requests from its own pod, which can reach more than the users who choose the URLs. So this
//! module resolves names itself, and the client connects to an address that was checked. A name that resolves to a
//! different address later is no way around the check.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::config::Network;

/// The rules for addresses. Loopback, link-local, unspecified and multicast addresses and addresses in the forbidden
/// networks are rejected, except addresses in the allowed networks.
#[derive(Debug, Clone, Default)]
pub struct AddressRules {
    forbidden: Vec<Network>,
    allowed: Vec<Network>,
}

/// The error that the rules allow no address of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("none of its addresses is allowed for URLs of users")]
pub struct Refused;

impl AddressRules {
    /// Rules that reject special addresses and the `forbidden` networks, except the `allowed` networks.
    pub fn new(forbidden: &[Network], allowed: &[Network]) -> Self {
        Self { forbidden: forbidden.to_vec(), allowed: allowed.to_vec() }
    }

    /// Whether the rules allow a connection to an address. If it contains an IPv4 address, the rules must allow both.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        !self.refuses(address) && !embedded(address).is_some_and(|inner| self.refuses(inner.into()))
    }

    /// Checks a URL whose host is an IP address. Host names are checked when they are resolved.
    ///
    /// # Errors
    /// When the rules do not allow the address.
    pub fn check(&self, url: &Url) -> Result<(), Refused> {
        // The URL parser normalizes every notation of an address: `127.1`, `0x7f000001` and `017700000001` are
        // 127.0.0.1.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let address: Option<IpAddr> = host.parse().ok();
        if address.is_none_or(|address| self.allows(address)) { Ok(()) } else { Err(Refused) }
    }

    fn refuses(&self, address: IpAddr) -> bool {
        let is_in = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        (is_special(address) || is_in(&self.forbidden)) && !is_in(&self.allowed)
    }
}

impl Resolve for AddressRules {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|found| rules.allows(found.ip())).collect();
            if allowed.is_empty() {
                return Err(io::Error::other(Refused).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether an address belongs to this machine, is link-local or is a multicast group.
fn is_special(address: IpAddr) -> bool {
    match address {
        // Linux treats 0.0.0.0 as the local host. The rest of 0.0.0.0/8 is not assigned to hosts (RFC 1122).
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.octets()[0] == 0
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local() || v6.is_multicast()
        }
    }
}

/// The IPv4 address that packets to an IPv6 address may end at: behind NAT64 (RFC 6052, and RFC 8215 with 96 bits),
/// 6to4 (RFC 3056), and in the deprecated form `::10.0.0.1`. Mapped addresses have been converted to IPv4 before.
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    match v6.segments() {
        // `::` and `::1` do not contain an IPv4 address, but they are special anyway.
        [0x64, 0xff9b, 0 | 1, .., high, low] | [0, 0, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(forbidden: &[&str], allowed: &[&str]) -> AddressRules {
        let parsed = |texts: &[&str]| -> Vec<Network> {
            texts.iter().map(|text| text.parse().expect("a network")).collect()
        };
        AddressRules::new(&parsed(forbidden), &parsed(allowed))
    }

    /// Whether a URL is allowed. Host names are not resolved and pass.
    fn allows(rules: &AddressRules, url: &str) -> bool {
        rules.check(&Url::parse(url).expect("a URL")).is_ok()
    }

    #[test]
    fn local_link_local_and_multicast_addresses_are_rejected_in_every_notation() {
        let rules = rules(&[], &[]);
        for host in [
            "127.0.0.1",
            "127.255.255.254",
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "017700000001",
            "2130706433",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "0.0.0.0",
            "0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::]",
            "[fe80::1]",
            "[ff02::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::169.254.169.254]",
            "[2002:7f00:1::]",
            "[2002:a9fe:a9fe::1]",
        ] {
            assert!(!allows(&rules, &format!("http://{host}:8080/a")), "{host}");
        }
        for host in
            ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.2.1", "[fd00::1]", "[2001:db8::1]"]
        {
            assert!(allows(&rules, &format!("http://{host}/")), "{host}");
        }
        assert!(allows(&rules, "http://localhost/"), "a name is checked when it is resolved");
    }

    #[test]
    fn forbidden_networks_are_rejected_except_allowed_ones() {
        let rules = rules(&["10.0.0.0/8", "fd00::/8"], &["10.1.0.0/16", "127.0.0.0/8"]);
        for (host, expected) in [
            ("10.0.0.1", false),
            ("[::ffff:10.0.0.1]", false),
            ("[64:ff9b::10.0.0.1]", false),
            ("[2002:a00:1::]", false),
            ("[fd00::1]", false),
            ("10.1.2.3", true),
            ("[64:ff9b::10.1.2.3]", true),
            ("127.0.0.1", true),
            ("[::ffff:127.0.0.1]", true),
            ("[::1]", false),
            ("11.0.0.1", true),
        ] {
            assert_eq!(allows(&rules, &format!("http://{host}/")), expected, "{host}");
        }
    }

    #[tokio::test]
    async fn resolving_a_name_keeps_only_allowed_addresses() {
        let resolve = async |rules: AddressRules| {
            let found = rules.resolve("localhost".parse().expect("a name")).await;
            found.map(|found| found.map(|address| address.ip()).collect::<Vec<_>>())
        };
        let refused = resolve(rules(&[], &[])).await.expect_err("both of its addresses are loopback");
        assert_eq!(refused.to_string(), Refused.to_string());
        let allowed = resolve(rules(&[], &["127.0.0.0/8"])).await.expect("one is allowed");
        assert!(!allowed.is_empty() && allowed.iter().all(IpAddr::is_ipv4), "{allowed:?}");
    }
}
