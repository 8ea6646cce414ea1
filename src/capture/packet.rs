//! Which packets open a connection: a pure function of their bytes. It decides the same as the filter in the kernel
//! (`filter.rs`), so that nothing is counted that passed while, or because, that filter was not what it should be.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The `EtherType` of IPv4.
pub const IPV4: u16 = 0x0800;
/// The `EtherType` of IPv6.
pub const IPV6: u16 = 0x86dd;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The bits of an IPv4 header that mark a fragment: more fragments, and the offset.
pub const FRAGMENT: u16 = 0x3fff;
/// The flags of TCP that are looked at: ACK, RST, SYN and FIN.
pub const FLAGS: u8 = 0b0001_0111;
/// What these flags are in a packet that opens a connection.
pub const SYN: u8 = 0b0000_0010;

/// A captured packet, with what the kernel says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The packet from its IP header on; its end may be missing.
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
    /// The TCP port that they are opened to.
    pub port: u16,
    /// Whether those over IPv6 are tracked.
    pub ipv6: bool,
}

/// An attempt to open a connection. Each retransmission of it is equal to the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes to.
    pub destination: SocketAddr,
    /// The initial sequence number.
    pub sequence: u32,
}

/// The attempt that a packet is; `None` for any other packet, and for one that is malformed or cut off.
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

/// RFC 791. Fragments are refused, the first one too: TCP does not let its packets be fragmented.
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

/// RFC 8200, without extension headers.
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

/// RFC 9293. `length` is the length of the whole segment; of `segment`, the end may be missing.
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

/// Some bytes of a header; `None` where they are missing.
fn field<const LENGTH: usize>(bytes: &[u8], at: usize) -> Option<[u8; LENGTH]> {
    bytes.get(at..)?.first_chunk().copied()
}
