//! Routes. Only routes into certain ranges are kept, so a large routing table takes no memory.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};

use super::socket::Socket;
use crate::api::ip_range::overlap;

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Its destination.
    pub range: IpNet,
    /// The index of the outgoing link; 0 if it has none or several.
    pub link: u32,
}

impl Route {
    /// Parses the route in a message. Default routes, and routes that the kernel created for an address or a multicast
    /// group, are skipped.
    fn read(RouteMessage { header, attributes, .. }: &RouteMessage) -> Option<Self> {
        let is_counted = header.destination_prefix_length > 0
            && header.table != libc::RT_TABLE_LOCAL
            && header.kind != RouteType::Multicast
            && header.kind != RouteType::Local;
        let mut to = match header.address_family {
            AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => return None,
        };
        let mut link = 0;
        for attribute in attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(address)) => to = (*address).into(),
                RouteAttribute::Destination(RouteAddress::Inet6(address)) => to = (*address).into(),
                RouteAttribute::Oif(index) => link = *index,
                _ => {}
            }
        }
        let range = IpNet::new(to, header.destination_prefix_length).ok().filter(|_| is_counted)?;
        Some(Self { range, link })
    }
}

impl Socket {
    /// Lists the routes that overlap one of these ranges. Default routes and routes to the namespace's own addresses
    /// are left out.
    pub fn routes_into(&mut self, ranges: &[IpNet]) -> io::Result<Vec<Route>> {
        let mut routes = Vec::new();
        for (family, is_ipv6) in [(AddressFamily::Inet, false), (AddressFamily::Inet6, true)] {
            if !ranges.iter().any(|range| range.addr().is_ipv6() == is_ipv6) {
                continue;
            }
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            routes.extend(self.list(&RouteNetlinkMessage::GetRoute(message), |message| {
                let RouteNetlinkMessage::NewRoute(message) = message else { return None };
                Route::read(&message).filter(|route| ranges.iter().any(|range| overlap(range, &route.range)))
            })?);
        }
        Ok(routes)
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
