//! Address ranges for pods.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use derive_more::Deref;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::api::ip_range::{gateway, overlap};

/// The longest prefixes (IPv4, IPv6) that leave an address for the bridge and one for a pod.
const LONGEST: (u8, u8) = (30, 126);

/// Ranges that cannot be used on an interface or have a special meaning, each with its name.
const SPECIAL: [(IpNet, &str); 7] = [
    (v4(127, 0, 8), "loopback"),
    (v4(169, 254, 16), "link-local"),
    (v4(224, 0, 4), "multicast"),
    (v6(1, 128), "loopback"),
    (v6(0xfe80 << 112, 10), "link-local"),
    (v6(0xff00 << 112, 8), "multicast"),
    (v6(0xffff << 32, 96), "IPv4-mapped"),
];

const fn v4(first: u8, second: u8, prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(first, second, 0, 0), prefix))
}

const fn v6(address: u128, prefix: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from_bits(address), prefix))
}

/// A range without host bits, with an address for the bridge and at least one for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deref)]
pub struct Range(IpNet);

impl Range {
    /// Parses a range; its host bits are cleared.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let net = network(text).ok_or_else(|| "is not an address range".to_owned())?;
        let (net, longest) = (net.trunc(), if text.contains(':') { LONGEST.1 } else { LONGEST.0 });
        if !(1..=longest).contains(&net.prefix_len()) {
            return Err(format!("has a prefix length outside of 1 to {longest}"));
        }
        let special = SPECIAL.iter().find(|(special, _)| overlap(special, &net));
        special.map_or(Ok(Self(net)), |(special, name)| Err(format!("has {name} addresses ({special})")))
    }

    /// The first usable address, which is assigned to the bridge.
    pub fn gateway(&self) -> IpAddr {
        gateway(&self.0)
    }

    /// Whether a pod can have this address: it is in the range, and it is not the network, bridge or broadcast address.
    pub fn is_for_pods(&self, address: IpAddr) -> bool {
        let (first, last) = self.for_pods();
        self.0.contains(&address) && (first..=last).contains(&number(address))
    }

    /// The number of addresses for pods.
    pub fn capacity(&self) -> u128 {
        let (first, last) = self.for_pods();
        last - first + 1
    }

    /// Whether the two networks have an address in common.
    pub fn overlaps(&self, other: &IpNet) -> bool {
        overlap(&self.0, other)
    }

    /// Whether the range is IPv6, and its first and last address as numbers.
    pub fn bounds(&self) -> (bool, u128, u128) {
        (self.0.network().is_ipv6(), number(self.0.network()), number(self.0.broadcast()))
    }

    /// The free addresses for pods, in ascending order.
    pub fn free<'a>(&self, taken: &'a BTreeSet<IpAddr>) -> impl Iterator<Item = IpAddr> + use<'a> {
        let (range, (first, last)) = (*self, self.for_pods());
        (first..=last).map(move |number| range.address(number)).filter(|address| !taken.contains(address))
    }

    /// The first and the last address for pods. The limits on the prefix length rule out overflow.
    fn for_pods(&self) -> (u128, u128) {
        let (is_v6, first, last) = self.bounds();
        (first + 2, if is_v6 { last } else { last - 1 })
    }

    fn address(&self, number: u128) -> IpAddr {
        match self.0 {
            // The number lies between two IPv4 addresses, so it fits into 32 bits.
            IpNet::V4(_) => Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX)).into(),
            IpNet::V6(_) => Ipv6Addr::from_bits(number).into(),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Parses a network. Leading zeros are rejected, because some programs read them as octal.
fn network(text: &str) -> Option<IpNet> {
    let (address, prefix) = text.split_once('/')?;
    let is_number =
        prefix.bytes().all(|byte| byte.is_ascii_digit()) && (prefix == "0" || !prefix.starts_with('0'));
    IpNet::new(address.parse().ok()?, prefix.parse().ok().filter(|_| is_number)?).ok()
}

/// An address as a number.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_without_usable_pod_addresses_is_rejected() {
        for (text, expected) in [
            ("10.77.0.0/24", "10.77.0.0/24 10.77.0.1 10.77.0.2 253"),
            ("10.0.0.9/24", "10.0.0.0/24 10.0.0.1 10.0.0.2 253"),
            ("10.0.0.4/30", "10.0.0.4/30 10.0.0.5 10.0.0.6 1"),
            ("1.2.3.4/8", "1.0.0.0/8 1.0.0.1 1.0.0.2 16777213"),
            ("fd00::5/64", "fd00::/64 fd00::1 fd00::2 18446744073709551614"),
            ("fd00::4/126", "fd00::4/126 fd00::5 fd00::6 2"),
        ] {
            let range = Range::parse(text).expect(text);
            let first = range.free(&BTreeSet::new()).next().expect("one");
            let said = format!("{range} {} {first} {}", range.gateway(), range.capacity());
            assert_eq!(said, expected, "{text}");
        }
        for (text, why) in [
            ("", "is not an address range"),
            ("10.0.0.1", "is not an address range"),
            ("10.0.0.0/", "is not an address range"),
            ("10.0.0.0/33", "is not an address range"),
            ("010.0.0.0/24", "is not an address range"),
            ("10.0.0/24", "is not an address range"),
            ("10.0.0.0/024", "is not an address range"),
            ("10.0.0.0/+24", "is not an address range"),
            (" 10.0.0.0/24", "is not an address range"),
            ("fd00::%1/64", "is not an address range"),
            ("10.0.0.0/0", "1 to 30"),
            ("10.0.0.0/31", "1 to 30"),
            ("10.0.0.0/32", "1 to 30"),
            ("::/0", "1 to 126"),
            ("fd00::/127", "1 to 126"),
            ("fd00::/128", "1 to 126"),
            ("127.1.0.0/16", "loopback"),
            ("64.0.0.0/2", "loopback"),
            ("169.254.7.0/24", "link-local"),
            ("239.0.0.0/24", "multicast"),
            ("128.0.0.0/1", "link-local"),
            ("::/64", "loopback"),
            ("fe80::/64", "link-local"),
            ("fea0::/64", "link-local"),
            ("ff02::/64", "multicast"),
            ("::ffff:10.0.0.0/120", "IPv4-mapped"),
        ] {
            let found = Range::parse(text).expect_err(text);
            assert!(found.contains(why), "{text}: {found}");
        }
    }

    fn range() -> impl Strategy<Value = String> {
        let v4 = (any::<[u8; 4]>(), 0..=31u8)
            .prop_map(|(address, prefix)| format!("{}/{prefix}", Ipv4Addr::from(address)));
        let v6 = (any::<[u8; 16]>(), 0..=128u8)
            .prop_map(|(address, prefix)| format!("{}/{prefix}", Ipv6Addr::from(address)));
        prop_oneof![v4, v6]
    }

    proptest! {
        /// With every prefix, no pod gets the network, bridge or broadcast address.
        #[test]
        fn pods_do_not_get_special_addresses(text in range(), count in 1..40usize) {
            let Ok(range) = Range::parse(&text) else { return Ok(()) };
            let net = *range;
            prop_assert_eq!(Range::parse(&range.to_string()), Ok(range), "it is canonical");
            let none = BTreeSet::new();
            let given: Vec<IpAddr> = range.free(&none).take(count).collect();
            prop_assert_eq!(given.len() as u128, range.capacity().min(count as u128));
            for address in given.iter().copied().chain(range.free(&given.iter().copied().collect()).take(1)) {
                prop_assert!(net.contains(&address) && range.is_for_pods(address));
                prop_assert!(address != net.network() && address != range.gateway());
                prop_assert!(address.is_ipv6() || address != net.broadcast());
            }
            for special in [net.network(), range.gateway()] {
                prop_assert!(!range.is_for_pods(special));
            }
            prop_assert_eq!(range.is_for_pods(net.broadcast()), net.broadcast().is_ipv6());
        }

        /// Two ranges overlap if and only if one of them contains the first address of the other.
        #[test]
        fn overlap_is_symmetric(one in range(), other in range()) {
            let (Ok(one), Ok(other)) = (Range::parse(&one), Range::parse(&other)) else { return Ok(()) };
            let expected = one.contains(&other.network()) || other.contains(&one.network());
            prop_assert_eq!(one.overlaps(&other), expected);
            prop_assert_eq!(other.overlaps(&one), expected);
        }
    }
}
