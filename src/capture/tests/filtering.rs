//! The filter in the kernel passes every packet that the parser accepts. The tests run it in an interpreter.

use proptest::prelude::*;

use super::parsing::{mangled, valid};
use super::reference::outgoing;
use crate::capture::filter::program;
use crate::capture::packet::{IPV4, Packet, Tracked, attempt};

const ACCEPTED: u32 = 1600;

/// Returns the result of the program for a packet. A load beyond the packet's end rejects it, as in the kernel.
fn run(program: &[libc::sock_filter], packet: &Packet<'_>) -> u32 {
    let (mut accumulator, mut index, mut at) = (0_u32, 0_u32, 0_usize);
    let byte = |at: u32| packet.bytes.get(at as usize).copied().map(u32::from);
    let half = |at: u32| Some(byte(at)? << 8 | byte(at + 1)?);
    let known = |at: u32| match at.cast_signed() - libc::SKF_AD_OFF {
        libc::SKF_AD_PKTTYPE => Some(if packet.is_outgoing { 4 } else { 0 }),
        libc::SKF_AD_VLAN_TAG_PRESENT => Some(u32::from(packet.is_tagged)),
        libc::SKF_AD_PROTOCOL => Some(u32::from(packet.protocol)),
        _ => None,
    };
    loop {
        let libc::sock_filter { code, jt: if_true, jf: if_false, k: operand } = program[at];
        at += 1;
        // The opcodes of `linux/bpf_common.h`.
        let test = match code {
            0x06 => return operand,
            0x15 => Some(accumulator == operand),
            0x45 => Some(accumulator & operand != 0),
            _ => None,
        };
        if let Some(is_true) = test {
            at += usize::from(if is_true { if_true } else { if_false });
            continue;
        }
        let loaded = match code {
            0x54 => Some(accumulator & operand),
            0x28 | 0x30 if operand >= 1 << 31 => known(operand),
            0x30 | 0xb1 => byte(operand),
            0x28 => half(operand),
            0x50 => byte(index + operand),
            0x48 => half(index + operand),
            other => panic!("the program has an instruction {other:#x}"),
        };
        match loaded {
            None => return 0,
            Some(first) if code == 0xb1 => index = (first & 0xf) * 4,
            Some(loaded) => accumulator = loaded,
        }
    }
}

proptest! {
    #![proptest_config(crate::properties::cases(2048))]

    #[test]
    fn the_filter_passes_every_packet_that_counts(
        (protocol, bytes) in prop_oneof![valid(), mangled()], ipv6: bool, is_outgoing: bool, is_tagged in prop::bool::weighted(0.1),
    ) {
        let tracked = Tracked { port: 22, ipv6 };
        let packet = Packet { is_outgoing, is_tagged, ..outgoing(protocol, &bytes) };
        let passed = run(&program(tracked, ACCEPTED), &packet);
        prop_assert!(passed == 0 || passed == ACCEPTED);
        prop_assert!(passed == ACCEPTED || attempt(&packet, tracked).is_none());
    }

    #[test]
    fn the_filter_rejects_valid_packets_that_do_not_count((protocol, bytes) in valid(), ipv6: bool) {
        let tracked = Tracked { port: 22, ipv6 };
        let packet = outgoing(protocol, &bytes);
        let passed = run(&program(tracked, ACCEPTED), &packet) == ACCEPTED;
        // The filter does not check the lengths of headers; the parser does.
        prop_assert_eq!(passed, attempt(&packet, tracked).is_some());
    }
}

#[test]
fn fragments_are_filtered_out() {
    let tracked = Tracked { port: 22, ipv6: true };
    let mut bytes = Vec::new();
    let builder = etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(40_000, 22, 7, 1000);
    builder.syn().write(&mut bytes, &[]).expect("written");
    assert_eq!(run(&program(tracked, ACCEPTED), &outgoing(IPV4, &bytes)), ACCEPTED);
    // The first fragment, a middle one and the last one.
    for (high, low) in [(0x20, 0), (0x20, 1), (0, 1)] {
        (bytes[6], bytes[7]) = (high, low);
        assert_eq!(run(&program(tracked, ACCEPTED), &outgoing(IPV4, &bytes)), 0, "{high:x}{low:x}");
        assert_eq!(attempt(&outgoing(IPV4, &bytes), tracked), None, "{high:x}{low:x}");
    }
}
