//! The reference parser.

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use crate::capture::packet::{Attempt, IPV4, IPV6, Packet, Tracked};

/// The port of SSH.
pub const PORT: u16 = 22;
/// All connections to the SSH port.
pub const TRACKED: Tracked = Tracked { port: PORT, ipv6: true };

/// Returns an outgoing packet without a VLAN tag.
pub fn outgoing(protocol: u16, bytes: &[u8]) -> Packet<'_> {
    Packet { bytes, length: bytes.len(), protocol, is_outgoing: true, is_tagged: false }
}

/// Returns the attempt that `etherparse` finds in a whole packet.
pub fn reference(protocol: u16, bytes: &[u8]) -> Option<Attempt> {
    let packet = SlicedPacket::from_ip(bytes).ok()?;
    let (source, destination): (IpAddr, IpAddr) = match packet.net? {
        NetSlice::Ipv4(ip) if protocol == IPV4 && ip.extensions().auth.is_none() => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        // A length of 0 means the rest of the packet only if there is an extension header.
        NetSlice::Ipv6(ip)
            if protocol == IPV6 && ip.extensions().is_empty() && ip.header().payload_length() > 0 =>
        {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        _ => return None,
    };
    let TransportSlice::Tcp(tcp) = packet.transport? else { return None };
    let opens = tcp.syn() && !tcp.ack() && !tcp.rst() && !tcp.fin() && tcp.destination_port() == PORT;
    opens.then(|| Attempt {
        source: SocketAddr::new(source, tcp.source_port()),
        destination: SocketAddr::new(destination, PORT),
        sequence: tcp.sequence_number(),
    })
}
