//! Announces an address to the neighbours. An empty datagram to the gateway makes the kernel ask for that by ARP or neighbour
//! solicitation, in the name of the address: all who know the address note its hardware address from an ARP request (RFC 826),
//! and every bridge on the way notes behind which port that is. Packets of our own making would need a right more, `NET_RAW`, and
//! the kernel's own announcements (`arp_notify`, `ndisc_notify`) are settings of the pod's namespace, which are the pod's.

use std::io;
use std::net::UdpSocket;

use ipnet::IpNet;

use super::namespace::NamespaceThread;
use crate::api::ip_range::gateway;

/// The port of a service that reads nothing (RFC 863).
const DISCARD: u16 = 9;

/// Announces an address of the namespace that the thread is in. No answer is needed.
pub fn announce(_: &mut NamespaceThread, net: IpNet) -> io::Result<()> {
    UdpSocket::bind((net.addr(), 0))?.send_to(&[], (gateway(&net), DISCARD)).map(drop)
}
