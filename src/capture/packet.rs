//! Decides which packets open a connection, as a pure function of their bytes. It makes the same decision as the filter
//! in the kernel (`filter.rs`), so a packet is not counted if it passed before the filter was attached, or because the
//! filter was wrong.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The `EtherType` of IPv4.
pub const IPV4: u16 = 0x0800;
/// The `EtherType` of IPv6.
pub const IPV6: u16 = 0x86dd;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The bits of an IPv4 header that mark a fragment: more fragments, and the offset.
pub const FRAGMENT: u16 = 0x3fff;
/// The TCP flags that are examined: ACK, RST, SYN and FIN.
pub const FLAGS: u8 = 0b0001_0111;
/// The value of these flags in a packet that opens a connection.
pub const SYN: u8 = 0b0000_0010;

/// A captured packet, with the kernel's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The packet from its IP header on; may be truncated.
    pub bytes: &'a [u8],
    /// The length of the whole packet from its IP header on, in bytes.
    pub length: usize,
    /// The `EtherType`.
    pub protocol: u16,
    /// Whether it was sent by this host.
    pub is_outgoing: bool,
    /// Whether it has a VLAN tag.
    pub is_tagged: bool,
}

/// Which connections are tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracked {
    /// The TCP destination port.
    pub port: u16,
    /// Whether IPv6 connections are tracked.
    pub ipv6: bool,
}

/// An attempt to open a connection. Each retransmission of it is equal to the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The address of the sender.
    pub source: SocketAddr,
    /// The address of the receiver.
    pub destination: SocketAddr,
    /// The initial sequence number.
    pub sequence: u32,
}

/// Parses a packet as an attempt; `None` for any other packet, and for one that is malformed or truncated.
pub fn attempt(packet: &Packet<'_>, tracked: Tracked) -> Option<Attempt> {
    if !packet.is_outgoing || packet.is_tagged {
        return None;
    }
    let attempt = match packet.protocol {
        IPV4 => over_ipv4(packet)?,
        IPV6 if tracked.ipv6 => over_ipv6(packet)?,
        _ => return None,
    };
    (attempt.destination.port() == tracked.port).then_some(attempt)
}

/// Parses an IPv4 packet (RFC 791). Fragments are rejected, including the first one: TCP does not allow its packets to
/// be fragmented.
fn over_ipv4(packet: &Packet<'_>) -> Option<Attempt> {
    let [version, ..] = field::<20>(packet.bytes, 0)?;
    let begin = usize::from(version & 0x0f) * 4;
    let length = usize::from(u16::from_be_bytes(field(packet.bytes, 2)?));
    let fragment = u16::from_be_bytes(field(packet.bytes, 6)?);
    let [protocol] = field(packet.bytes, 9)?;
    let is_sound = version >> 4 == 4 && begin >= 20 && length <= packet.length;
    if !is_sound || fragment & FRAGMENT != 0 || protocol != TCP {
        return None;
    }
    let source = Ipv4Addr::from(field::<4>(packet.bytes, 12)?);
    let destination = Ipv4Addr::from(field::<4>(packet.bytes, 16)?);
    over_tcp(packet.bytes.get(begin..)?, length.checked_sub(begin)?, source.into(), destination.into())
}

/// Parses an IPv6 packet without extension headers (RFC 8200).
fn over_ipv6(packet: &Packet<'_>) -> Option<Attempt> {
    let [version, ..] = field::<40>(packet.bytes, 0)?;
    let length = usize::from(u16::from_be_bytes(field(packet.bytes, 4)?));
    let [protocol] = field(packet.bytes, 6)?;
    let is_sound = version >> 4 == 6 && 40 + length <= packet.length;
    if !is_sound || protocol != TCP {
        return None;
    }
    let source = Ipv6Addr::from(field::<16>(packet.bytes, 8)?);
    let destination = Ipv6Addr::from(field::<16>(packet.bytes, 24)?);
    over_tcp(packet.bytes.get(40..)?, length, source.into(), destination.into())
}

/// Parses a TCP segment (RFC 9293). `length` is the length of the whole segment; `segment` may be truncated.
fn over_tcp(segment: &[u8], length: usize, source: IpAddr, destination: IpAddr) -> Option<Attempt> {
    let [offset, flags] = field(segment, 12)?;
    let header = usize::from(offset >> 4) * 4;
    if header < 20 || header > length || flags & FLAGS != SYN {
        return None;
    }
    Some(Attempt {
        source: SocketAddr::new(source, u16::from_be_bytes(field(segment, 0)?)),
        destination: SocketAddr::new(destination, u16::from_be_bytes(field(segment, 2)?)),
        sequence: u32::from_be_bytes(field(segment, 4)?),
    })
}

/// Returns a field of a header; `None` if `bytes` is too short.
pub fn field<const LENGTH: usize>(bytes: &[u8], at: usize) -> Option<[u8; LENGTH]> {
    bytes.get(at..)?.first_chunk().copied()
}
