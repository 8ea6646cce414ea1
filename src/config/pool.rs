//! The pool of IP addresses for the public exposure of Instances.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;

use super::formats::formats;

formats! {
    /// The format of an entry of the pool.
    ADDRESSES = "crownlabs-addresses", |text| Pool::parse(&[text]).is_ok(),
        "an address, a range such as 172.18.0.240-172.18.0.249, or a network such as 172.18.0.248/30 or \
         2001:db8::/120, of at most 65536 addresses",
        "^[-0-9A-Fa-f:./, ]*$";
}

/// The maximum number of addresses in a pool. It is more than a load balancer announces, and small enough for the
/// allocator to check each address.
pub const LIMIT: u128 = 65_536;

/// The reason why an entry of the pool is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The entry has a slash, but is not a network.
    #[error("invalid CIDR address: {0}; a network is written 172.18.0.248/30 or 2001:db8::/120")]
    Cidr(String),
    /// The entry has a dash, but does not consist of two addresses.
    #[error("invalid IP range: {0}; a range is written 172.18.0.240-172.18.0.249")]
    Range(String),
    /// An end of a range is not an address.
    #[error("invalid IP in range: {0}")]
    RangeEnd(String),
    /// One end of a range is an IPv4 address and the other an IPv6 address.
    #[error("the range {0} mixes IPv4 and IPv6")]
    Mixed(String),
    /// The first address of a range comes after the last.
    #[error("the range {0} ends before it begins")]
    Backwards(String),
    /// The entry is not an address.
    #[error("invalid IP entry: {0}; addresses have no leading zeros, zones or ports")]
    Address(String),
    /// With this entry, the pool has more than [`LIMIT`] addresses.
    #[error(
        "{0} extends the pool beyond {LIMIT} addresses: list only the addresses that the load balancer \
         announces"
    )]
    TooLarge(String),
}

/// A range of addresses of one family, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    first: IpAddr,
    last: IpAddr,
}

/// The number of an address within its family.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns the address with this number in the address family of `like`.
fn address(number: u128, like: IpAddr) -> IpAddr {
    match like {
        // The number lies between two IPv4 addresses, so it fits into 32 bits.
        IpAddr::V4(_) => Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX)).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(number).into(),
    }
}

impl Span {
    fn len(self) -> u128 {
        (number(self.last) - number(self.first)).saturating_add(1)
    }

    fn contains(self, address: IpAddr) -> bool {
        self.first <= address && address <= self.last && self.first.is_ipv4() == address.is_ipv4()
    }

    fn overlaps(self, other: Self) -> bool {
        self.first.is_ipv4() == other.first.is_ipv4() && self.first <= other.last && other.first <= self.last
    }

    /// Parses a network such as `172.18.0.248/30`; returns `None` for anything else. Host bits are ignored. The range
    /// includes the first and the last address of the network.
    fn network(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address = parse(address)?;
        let valid = bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
        let network = IpNet::new(address, bits.parse().ok().filter(|_| valid)?).ok()?;
        Some(Self { first: network.network(), last: network.broadcast() })
    }
}

impl FromStr for Span {
    type Err = PoolError;

    fn from_str(text: &str) -> Result<Self, PoolError> {
        let named = || text.to_owned();
        if text.contains('/') {
            return Self::network(text).ok_or_else(|| PoolError::Cidr(named()));
        }
        if !text.contains('-') {
            let address = parse(text).ok_or_else(|| PoolError::Address(named()))?;
            return Ok(Self { first: address, last: address });
        }
        let ends: Vec<&str> = text.split('-').map(str::trim).collect();
        let [first, last] = ends[..] else { return Err(PoolError::Range(named())) };
        let end = |text| parse(text).ok_or_else(|| PoolError::RangeEnd(named()));
        match (end(first)?, end(last)?) {
            (first, last) if first.is_ipv4() != last.is_ipv4() => Err(PoolError::Mixed(named())),
            (first, last) if first > last => Err(PoolError::Backwards(named())),
            (first, last) => Ok(Self { first, last }),
        }
    }
}

/// Parses an address; returns `None` if the text is invalid. An IPv4-mapped IPv6 address becomes the IPv4 address.
pub fn parse(text: &str) -> Option<IpAddr> {
    text.trim().parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// A set of IP addresses, ordered by their numbers, IPv4 first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Ordered ranges that do not overlap.
    spans: Vec<Span>,
}

impl Pool {
    /// Parses the entries. Returns the pool, and warnings about entries that overlap. Fails with the first
    /// entry that is not valid.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<(Self, Vec<String>), PoolError> {
        let mut pool = Self::default();
        let mut warnings = Vec::new();
        let mut read: Vec<(Span, &str)> = Vec::new();
        // An entry may contain several, separated by commas, as in the flag of the Go operator.
        let pieces = entries.iter().flat_map(|entry| entry.as_ref().split(',')).map(str::trim);
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let span: Span = piece.parse()?;
            for (_, other) in read.iter().filter(|(other, _)| span.overlaps(*other)) {
                warnings.push(format!("{piece} and {other} overlap: they are merged"));
            }
            read.push((span, piece));
            pool.add(span);
            if pool.len() > LIMIT {
                return Err(PoolError::TooLarge(piece.to_owned()));
            }
        }
        Ok((pool, warnings))
    }

    fn add(&mut self, span: Span) {
        let (joined, mut apart): (Vec<Span>, Vec<Span>) =
            self.spans.iter().partition(|other| span.overlaps(**other));
        let merged = joined.into_iter().fold(span, |all, other| Span {
            first: all.first.min(other.first),
            last: all.last.max(other.last),
        });
        apart.push(merged);
        apart.sort_unstable();
        self.spans = apart;
    }

    /// The number of addresses.
    pub fn len(&self) -> u128 {
        self.spans.iter().fold(0, |sum, span| sum.saturating_add(span.len()))
    }

    /// Whether the pool has no addresses.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether an address is in the pool.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.spans.iter().any(|span| span.contains(address))
    }

    /// All addresses, in order.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.spans.iter().flat_map(|span| {
            (number(span.first)..=number(span.last)).map(|number| address(number, span.first))
        })
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = |span: &Span| match *span {
            Span { first, last } if first == last => first.to_string(),
            Span { first, last } => format!("{first}-{last}"),
        };
        formatter.write_str(&self.spans.iter().map(written).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(entries: &[&str]) -> Vec<String> {
        let (pool, _) = Pool::parse(entries).expect("a pool");
        pool.addresses().map(|address| address.to_string()).collect()
    }

    #[test]
    fn the_three_forms_and_both_families() {
        assert_eq!(texts(&["10.0.0.10", "10.0.0.9"]), ["10.0.0.9", "10.0.0.10"], "as numbers");
        assert_eq!(
            texts(&["172.18.0.250/30"]),
            ["172.18.0.248", "172.18.0.249", "172.18.0.250", "172.18.0.251"]
        );
        assert_eq!(texts(&["172.18.0.9 - 172.18.0.10"]), ["172.18.0.9", "172.18.0.10"]);
        assert_eq!(
            texts(&["2001:DB8:0::1", "2001:db8::4/127"]),
            ["2001:db8::1", "2001:db8::4", "2001:db8::5"]
        );
        assert_eq!(texts(&["::ffff:10.0.0.1"]), ["10.0.0.1"], "canonical");
        assert_eq!(texts(&["2001:db8::1", "10.0.0.1"]), ["10.0.0.1", "2001:db8::1"]);
        assert_eq!(texts(&["10.0.0.1, ,10.0.0.3,"]), ["10.0.0.1", "10.0.0.3"], "as the flag has it");
        assert_eq!(texts(&["255.255.255.254-255.255.255.255"]), ["255.255.255.254", "255.255.255.255"]);
        let last = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(texts(&[&format!("{last}/127")]).last().map(String::as_str), Some(last));
        // The default of the chart.
        let (pool, warnings) =
            Pool::parse(&["172.18.0.240-172.18.0.249", "172.18.0.250/30"]).expect("a pool");
        assert_eq!(pool.len(), 12);
        assert_eq!(pool.to_string(), "172.18.0.240-172.18.0.251");
        assert_eq!(warnings, ["172.18.0.250/30 and 172.18.0.240-172.18.0.249 overlap: they are merged"]);
    }

    #[test]
    fn invalid_entries_are_reported() {
        for (entry, words) in [
            ("172.18.0.0/33", "invalid CIDR address: 172.18.0.0/33"),
            ("172.18.0/24", "invalid CIDR address"),
            ("172.18.0.0/024", "invalid CIDR address"),
            ("172.18.0.0/+8", "invalid CIDR address"),
            ("a-b-c", "invalid IP range: a-b-c"),
            ("10.0.0.1-", "invalid IP in range: 10.0.0.1-"),
            ("10.0.0.1-2001:db8::1", "mixes IPv4 and IPv6"),
            ("10.0.0.2-10.0.0.1", "ends before it begins"),
            ("10.0.0.01", "invalid IP entry: 10.0.0.01"),
            ("fe80::1%eth0", "invalid IP entry"),
            ("labs.example.org", "invalid IP"),
            ("0.0.0.0/0", "0.0.0.0/0 extends the pool beyond 65536 addresses"),
            ("::/0", "beyond 65536"),
            ("10.0.0.0-10.1.0.0", "beyond 65536"),
        ] {
            let error = Pool::parse(&[entry]).expect_err(entry).to_string();
            assert!(error.contains(words), "{entry}: {error}");
        }
        assert_eq!(Pool::parse(&["10.0.0.0/16"]).expect("at the limit").0.len(), LIMIT);
        let error = Pool::parse(&["10.0.0.0/16", "10.9.0.0"]).expect_err("one too many").to_string();
        assert!(error.starts_with("10.9.0.0 extends the pool"), "{error}");
        assert!(Pool::parse::<&str>(&[]).expect("empty").0.is_empty());
    }

    proptest! {
        /// A pool has each address of its entries once, in order, even if entries overlap.
        #[test]
        fn a_pool_is_the_union_of_its_entries(spans in proptest::collection::vec((0_u32..300, 0_u32..40), 0..8)) {
            let base = 0x0A00_0000_u32;
            let ip = |number: u32| Ipv4Addr::from_bits(base + number);
            let entries: Vec<String> =
                spans.iter().map(|(first, more)| format!("{}-{}", ip(*first), ip(first + more))).collect();
            let (pool, _) = Pool::parse(&entries).expect("a pool");
            let expected: std::collections::BTreeSet<IpAddr> = spans
                .iter()
                .flat_map(|(first, more)| (*first..=first + more).map(|number| IpAddr::from(ip(number))))
                .collect();
            let found: Vec<IpAddr> = pool.addresses().collect();
            prop_assert_eq!(&found, &expected.iter().copied().collect::<Vec<_>>());
            prop_assert!((0..400).all(|n| pool.contains(ip(n).into()) == expected.contains(&ip(n).into())));
            let (again, warnings) = Pool::parse(&[pool.to_string()]).expect("it reads what it writes");
            prop_assert!(warnings.is_empty());
            prop_assert_eq!(again, pool);
        }
    }
}
