//! The packets in a block of the ring, in the kernel's layout (`linux/if_packet.h`, `TPACKET_V3`). Every length and
//! offset is checked against the block before it is used.

use std::mem::offset_of;

use libc::{sockaddr_ll, tpacket_block_desc, tpacket_hdr_v1, tpacket3_hdr};

use super::packet::{Packet, field};

/// The offset of a block's status, which says whether the block belongs to the kernel or to us.
pub const STATUS: usize = offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, block_status);
const COUNT: usize = offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, num_pkts);
const FIRST: usize = offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, offset_to_first_pkt);
/// The address of a packet follows its header.
const ADDRESS: usize = size_of::<tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// The packets of a block, in the order of capture.
pub struct Packets<'a> {
    block: &'a [u8],
    /// The offset of the next packet.
    next: usize,
    left: u32,
}

impl<'a> Packets<'a> {
    /// The packets of a block; empty if the block is too short.
    pub fn new(block: &'a [u8]) -> Self {
        let next = word(block, FIRST).unwrap_or_default();
        Self { block, next: next as usize, left: word(block, COUNT).unwrap_or_default() }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    /// Returns the next packet. Iteration ends at the first inconsistent length or offset.
    fn next(&mut self) -> Option<Packet<'a>> {
        self.left = self.left.checked_sub(1)?;
        let at = self.block.get(self.next..)?;
        let begin = usize::from(u16::from_ne_bytes(field(at, offset_of!(tpacket3_hdr, tp_net))?));
        let captured = word(at, offset_of!(tpacket3_hdr, tp_snaplen))? as usize;
        let status = word(at, offset_of!(tpacket3_hdr, tp_status))?;
        let packet = Packet {
            bytes: at.get(begin..begin.checked_add(captured)?)?,
            length: word(at, offset_of!(tpacket3_hdr, tp_len))? as usize,
            protocol: u16::from_be_bytes(field(at, ADDRESS + offset_of!(sockaddr_ll, sll_protocol))?),
            is_outgoing: *at.get(ADDRESS + offset_of!(sockaddr_ll, sll_pkttype))? == libc::PACKET_OUTGOING,
            is_tagged: status & libc::TP_STATUS_VLAN_VALID != 0,
        };
        let step = word(at, offset_of!(tpacket3_hdr, tp_next_offset))? as usize;
        if step == 0 {
            self.left = 0;
        }
        self.next = self.next.checked_add(step)?;
        Some(packet)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    field(bytes, at).map(u32::from_ne_bytes)
}
