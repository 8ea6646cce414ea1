//! Tells the neighbours who has an address: a gratuitous ARP request for IPv4 (RFC 5227, section 3), an unsolicited neighbour
//! advertisement for IPv6 (RFC 4861, section 7.2.6). Addresses are used again, and who talked to the former owner would
//! otherwise send to a hardware address that is gone until its entry expires.
//!
//! The kernel would do it by itself only with settings (`arp_notify`, `ndisc_notify`) of the pod's namespace, which are the
//! pod's.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, sendto, socket};

use super::mac::Mac;
use super::namespace::NamespaceThread;

const ALL: [u8; 6] = [0xff; 6];
/// The Ethernet address of all IPv6 nodes (RFC 2464), and their group.
const ALL_NODES: ([u8; 6], Ipv6Addr) = ([0x33, 0x33, 0, 0, 0, 1], Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));

/// Sends the announcement of an address by the link of that name in the namespace that the thread is in.
pub fn announce(thread: &mut NamespaceThread, link: &str, mac: Mac, address: IpAddr) -> io::Result<()> {
    let device = getifaddrs()?
        .filter(|found| found.interface_name == link)
        .find_map(|found| found.address?.as_link_addr().copied())
        .ok_or(io::ErrorKind::NotFound)?;
    let socket = match &mut thread.packets {
        Some(socket) => socket,
        // Without a protocol, it receives nothing.
        none => none.insert(socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?),
    };
    let frame = match address {
        IpAddr::V4(address) => arp(mac, address),
        IpAddr::V6(address) => advertisement(mac, address),
    };
    sendto(socket.as_raw_fd(), &frame, &device, MsgFlags::empty())?;
    Ok(())
}

/// An ARP request for an address by who has it.
fn arp(mac: Mac, address: Ipv4Addr) -> Vec<u8> {
    let octets = address.octets();
    // Ethernet, IPv4, six and four bytes, request.
    let head = [0, 1, 8, 0, 6, 4, 0, 1];
    [&ALL[..], &mac.0, &[8, 6], &head, &mac.0, &octets, &[0; 6], &octets].concat()
}

/// A neighbour advertisement of an address by who has it, which replaces what is known (flag `override`).
fn advertisement(mac: Mac, address: Ipv6Addr) -> Vec<u8> {
    let (station, group) = ALL_NODES;
    let (source, target) = (address.octets(), group.octets());
    let body = |sum: [u8; 2]| {
        let head = [136, 0, sum[0], sum[1], 0x20, 0, 0, 0];
        // The option with the hardware address of who has it, of one unit of eight bytes.
        [&head[..], &source, &[2, 1], &mac.0].concat()
    };
    let unsummed = body([0, 0]);
    // The length is 32.
    let length = [0, 32];
    let pseudo = [&source[..], &target, &[0, 0], &length, &[0, 0, 0, 58], &unsummed].concat();
    // Version 6, the length, ICMPv6, and the hop limit that proves that it comes from this link.
    let ip = [&[0x60, 0, 0, 0][..], &length, &[58, 255], &source, &target].concat();
    [&station[..], &mac.0, &[0x86, 0xdd], &ip, &body(checksum(&pseudo))].concat()
}

/// The checksum of the Internet protocols (RFC 1071) over an even number of bytes.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks_exact(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // It has 16 bits now.
    (!u16::try_from(sum).unwrap_or_default()).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use etherparse::{ArpOperation, Icmpv6Type, LinkSlice, NetSlice, SlicedPacket, TransportSlice};

    use super::*;

    const MAC: Mac = Mac([2, 1, 2, 3, 4, 5]);

    fn sent_by(frame: &SlicedPacket<'_>) -> ([u8; 6], [u8; 6]) {
        let Some(LinkSlice::Ethernet2(ethernet)) = &frame.link else { panic!("{frame:?}") };
        (ethernet.source(), ethernet.destination())
    }

    #[test]
    fn an_arp_request_asks_for_the_own_address() {
        let address = Ipv4Addr::new(10, 77, 0, 2);
        let bytes = arp(MAC, address);
        assert_eq!(bytes.len(), 42);
        let frame = SlicedPacket::from_ethernet(&bytes).expect("a frame");
        assert_eq!(sent_by(&frame), (MAC.0, ALL));
        let Some(NetSlice::Arp(arp)) = &frame.net else { panic!("{frame:?}") };
        assert_eq!(arp.operation(), ArpOperation::REQUEST);
        assert_eq!((arp.sender_hw_addr(), arp.sender_protocol_addr()), (&MAC.0[..], &address.octets()[..]));
        assert_eq!(arp.target_protocol_addr(), address.octets());
    }

    #[test]
    fn an_advertisement_has_a_checksum_that_is_right() {
        let address: Ipv6Addr = "fd00:7::2".parse().expect("an address");
        let bytes = advertisement(MAC, address);
        let frame = SlicedPacket::from_ethernet(&bytes).expect("a frame");
        assert_eq!(sent_by(&frame), (MAC.0, [0x33, 0x33, 0, 0, 0, 1]));
        let Some(NetSlice::Ipv6(ip)) = &frame.net else { panic!("{frame:?}") };
        assert_eq!((ip.header().source_addr(), ip.header().hop_limit()), (address, 255));
        let Some(TransportSlice::Icmpv6(icmp)) = &frame.transport else { panic!("{frame:?}") };
        let header = ip.header();
        assert!(icmp.is_checksum_valid(header.source(), header.destination()));
        let Icmpv6Type::NeighborAdvertisement(flags) = icmp.icmp_type() else { panic!("{icmp:?}") };
        assert!(flags.r#override && !flags.solicited && !flags.router);
        assert_eq!(icmp.payload()[..16], address.octets());
        assert_eq!(icmp.payload()[16..], [2, 1, 2, 1, 2, 3, 4, 5]);
    }
}
