//! Announces an address to the neighbours. An empty datagram to the gateway makes the kernel send an ARP request or a
//! neighbour solicitation from the address. Neighbours that already have an entry for the address update its hardware
//! address from the ARP request (RFC 826), and every bridge on the path learns the port. Sending raw packets would need
//! the capability `NET_RAW`. The kernel's own announcements (`arp_notify`, `ndisc_notify`) are settings of the pod's
//! namespace, which the pod controls.

use std::io;
use std::net::UdpSocket;

use ipnet::IpNet;

use super::namespace::NamespaceThread;
use crate::api::ip_range::gateway;

/// The port of the discard service (RFC 863).
const DISCARD: u16 = 9;

/// Announces an address of the namespace that the thread has entered. Does not wait for a reply.
pub fn announce(_: &mut NamespaceThread, net: IpNet) -> io::Result<()> {
    UdpSocket::bind((net.addr(), 0))?.send_to(&[], (gateway(&net), DISCARD)).map(drop)
}
