//! Routes: only those that lead into certain ranges are kept, so that a large table costs no memory.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::message::{Attributes, Message, address, attributes, number};
use super::socket::Socket;

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Where it leads.
    pub range: IpNet,
    /// The number of the link through which it leads; 0 for none or several.
    pub link: u32,
}

/// Whether some address is in both ranges.
pub fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

impl Route {
    /// The route that a message is about, unless it is a default route, or one that the kernel made for an address or a
    /// multicast group.
    fn read(message: &Message<'_>) -> Option<Self> {
        let [family, length, _, _, table, _, _, kind, ..] = *message.payload else { return None };
        let is_counted = message.kind == libc::RTM_NEWROUTE
            && length > 0
            && table != libc::RT_TABLE_LOCAL
            && kind != libc::RTN_MULTICAST
            && kind != libc::RTN_LOCAL;
        let mut to = match i32::from(family) {
            libc::AF_INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            libc::AF_INET6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => return None,
        };
        let mut link = 0;
        for (kind, value) in attributes(message.payload.get(12..)?) {
            match kind {
                libc::RTA_DST => to = address(value)?,
                libc::RTA_OIF => link = number(value)?,
                _ => {}
            }
        }
        let range = IpNet::new(to, length).ok().filter(|_| is_counted)?;
        Some(Self { range, link })
    }
}

impl Socket {
    /// The routes that lead to an address in one of these ranges, other than default routes and those to addresses of the
    /// namespace itself.
    pub fn routes_into(&mut self, ranges: &[IpNet]) -> io::Result<Vec<Route>> {
        self.list(libc::RTM_GETROUTE, &Attributes::after(&[0; 12]), |message| {
            Route::read(message).filter(|route| ranges.iter().any(|range| overlap(range, &route.range)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_when_one_is_in_the_other() {
        for (one, other, expected) in [
            ("10.0.0.0/24", "10.0.0.128/25", true),
            ("10.0.0.7/24", "10.0.0.200/32", true),
            ("10.0.0.0/24", "10.0.1.0/24", false),
            ("10.0.0.0/24", "0.0.0.0/0", true),
            ("10.0.0.0/24", "::/0", false),
            ("fd00::/64", "fd00::1/128", true),
        ] {
            let [one, other] = [one, other].map(|text| text.parse::<IpNet>().expect("a range"));
            assert_eq!((overlap(&one, &other), overlap(&other, &one)), (expected, expected), "{one} {other}");
        }
    }
}
