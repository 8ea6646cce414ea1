//! Networks of IP addresses, written as CIDR.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::keys::text;

/// A network: all addresses whose first bits are the same. `10.1.2.3/8` is the same network as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

/// The error for a text that is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid CIDR: {0:?}; a network is written 10.0.0.0/8 or 2001:db8::/32, a single address 10.0.0.1/32"
)]
pub struct NoNetwork(String);

impl Network {
    /// Whether an address is in the network. An IPv4 address written as an IPv6 address (`::ffff:10.0.0.1`) counts as
    /// IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// The same network, written with its first address.
    pub fn truncated(&self) -> Self {
        Self(self.0.trunc())
    }

    /// Whether the network contains `other`.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.contains(&other.0)
    }

    /// Whether the network has more than sixteen addresses. Networks that are trusted by address should be small: the
    /// pod addresses of a node are usually a `/24` or a `/64`.
    pub fn is_wide(&self) -> bool {
        self.0.max_prefix_len() - self.0.prefix_len() > 4
    }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let network = || {
            let (address, prefix) = text.split_once('/')?;
            let is_number = prefix.bytes().all(|byte| byte.is_ascii_digit());
            let prefix = prefix.parse().ok().filter(|_| is_number)?;
            IpNet::new(address.parse().ok()?, prefix).ok().map(Self)
        };
        network().ok_or_else(|| NoNetwork(text.to_owned()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

text!(
    Network,
    NETWORK = "crownlabs-network",
    "a network such as 10.0.0.0/8 or 2001:db8::/32; a single address is written 10.0.0.1/32",
    concat!(
        "^(",
        pattern!(ipv4),
        "/0*([12]?[0-9]|3[0-2])|",
        pattern!(ipv6),
        "/0*([1-9]?[0-9]|1[01][0-9]|12[0-8]))$"
    )
);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        let network: Network = network.parse().expect("a network");
        network.contains(address.parse().expect("an address"))
    }

    #[test]
    fn a_network_contains_the_addresses_with_its_first_bits() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.1.2.3/8", "10.9.9.9", true),
            ("192.0.2.7/32", "192.0.2.7", true),
            ("192.0.2.7/32", "192.0.2.6", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("::/0", "10.0.0.1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("::1/128", "::1", true),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
        ] {
            assert_eq!(contains(network, address), expected, "{address} in {network}");
        }
    }

    #[test]
    fn a_network_covers_the_networks_with_its_first_bits() {
        for (network, other, expected) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/8", "10.0.0.0/8", true),
            ("10.1.0.0/16", "10.0.0.0/8", false),
            ("0.0.0.0/0", "::/0", false),
            ("::/0", "fd00::/8", true),
        ] {
            let [network, other] = [network, other].map(|text| text.parse::<Network>().expect("a network"));
            assert_eq!(network.covers(&other), expected, "{network} {other}");
        }
        let network: Network = "10.1.2.3/8".parse().expect("a network");
        assert_eq!(network.truncated().to_string(), "10.0.0.0/8");
    }

    #[test]
    fn a_network_of_more_than_sixteen_addresses_is_wide() {
        for (text, is_wide) in [
            ("10.0.0.1/32", false),
            ("10.0.0.0/28", false),
            ("10.0.0.0/27", true),
            ("10.244.0.0/16", true),
            ("0.0.0.0/0", true),
            ("fd00::1/128", false),
            ("fd00::/124", false),
            ("fd00::/123", true),
            ("fd00::/64", true),
        ] {
            assert_eq!(text.parse::<Network>().expect("a network").is_wide(), is_wide, "{text}");
        }
    }

    #[test]
    fn invalid_networks_are_rejected() {
        for text in [
            "",
            "10.0.0.1",
            "10.0.0.0/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "a/8",
            "10.0.0.0/8 ",
            "*",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text:?}");
        }
        assert_eq!("10.1.2.3/8".parse::<Network>().expect("a network").to_string(), "10.1.2.3/8");
    }

    proptest! {
        #[test]
        fn a_network_contains_its_own_address_and_every_one_that_differs_behind_the_prefix(
            own in any::<u32>(), other in any::<u32>(), prefix in 0u32..=32
        ) {
            let network: Network = format!("{}/{prefix}", Ipv4Addr::from_bits(own)).parse().expect("a network");
            let same = (0..prefix).all(|bit| (own ^ other) & (1 << (31 - bit)) == 0);
            prop_assert_eq!(network.contains(Ipv4Addr::from_bits(other).into()), same);
            prop_assert!(network.contains(Ipv4Addr::from_bits(own).into()));
        }
    }
}
