//! The parser agrees with `etherparse` on all bytes.

use std::fs;
use std::path::Path;

use etherparse::PacketBuilder;
use proptest::prelude::*;

use super::reference::{PORT, TRACKED, outgoing, reference};
use crate::capture::block::Packets;
use crate::capture::packet::{IPV4, IPV6, Packet, Tracked, attempt};

/// The corpus of a fuzz target.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(folder).expect("the corpus").map(|file| file.expect("a file").path());
    files.map(|file| fs::read(file).expect("read")).collect()
}

#[test]
fn the_parser_agrees_with_another_on_the_fuzz_corpus() {
    let (packets, blocks) = (corpus("packet"), corpus("block"));
    assert!(!packets.is_empty() && !blocks.is_empty());
    for bytes in packets {
        for protocol in [IPV4, IPV6] {
            assert_eq!(
                attempt(&outgoing(protocol, &bytes), TRACKED),
                reference(protocol, &bytes),
                "{bytes:?}"
            );
        }
    }
    for bytes in blocks {
        // Each packet has its own header, and the next packet begins after it.
        assert!(Packets::new(&bytes).count() <= bytes.len(), "{bytes:?}");
    }
}

/// Generates a valid TCP or UDP packet, and varies every field.
pub fn valid() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let addresses = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<bool>());
    let ports = (any::<u16>(), prop_oneof![4 => Just(PORT), 1 => any::<u16>()]);
    let options = (0..=10_usize, 0..=10_usize, proptest::collection::vec(any::<u8>(), 0..40));
    let flags = prop_oneof![2 => Just(0b10_u8), 1 => any::<u8>()];
    (addresses, ports, options, flags, any::<u32>(), prop_oneof![8 => Just(true), 1 => Just(false)]).prop_map(
        |(
            (from, to, is_ipv6),
            (source, destination),
            (ip_options, tcp_options, payload),
            flags,
            sequence,
            is_tcp,
        )| {
            let start = if is_ipv6 {
                PacketBuilder::ipv6(from, to, 64)
            } else {
                let [from, to] = [from, to].map(|[a, b, c, d, ..]| [a, b, c, d]);
                let header = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber(0), from, to);
                let mut header = header.expect("a header");
                header.options =
                    etherparse::Ipv4Options::try_from(&vec![1; ip_options * 4][..]).expect("options");
                PacketBuilder::ip(etherparse::IpHeaders::Ipv4(header, etherparse::Ipv4Extensions::default()))
            };
            let mut bytes = Vec::new();
            if is_tcp {
                let mut step = start.tcp(source, destination, sequence, 1000);
                step = step.options_raw(&vec![1; tcp_options * 4]).expect("options");
                step.write(&mut bytes, &payload).expect("written");
                // The flags are in byte 13 of the segment.
                let segment = bytes.len() - payload.len() - 20 - tcp_options * 4;
                bytes[segment + 13] = flags;
            } else {
                start.udp(source, destination).write(&mut bytes, &payload).expect("written");
            }
            (if is_ipv6 { IPV6 } else { IPV4 }, bytes)
        },
    )
}

/// Generates a packet with some bytes changed, which may be truncated or have trailing bytes.
pub fn mangled() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (valid(), changes, any::<prop::sample::Index>(), 0..4_u8).prop_map(
        |((protocol, mut bytes), changes, end, kind)| {
            for (at, byte) in changes {
                // Most relevant fields are at the beginning.
                let length = bytes.len().min(64);
                bytes[at.index(length)] = byte;
            }
            match kind {
                0 => bytes.truncate(end.index(bytes.len())),
                1 => bytes.extend([0; 6]),
                _ => {}
            }
            (protocol, bytes)
        },
    )
}

proptest! {
    #![proptest_config(crate::properties::cases(4096))]

    #[test]
    fn the_parser_agrees_with_another_on_valid_packets((protocol, bytes) in valid()) {
        prop_assert_eq!(attempt(&outgoing(protocol, &bytes), TRACKED), reference(protocol, &bytes));
    }

    #[test]
    fn the_parser_agrees_with_another_on_mangled_packets((protocol, bytes) in mangled()) {
        prop_assert_eq!(attempt(&outgoing(protocol, &bytes), TRACKED), reference(protocol, &bytes));
    }

    #[test]
    fn the_parser_agrees_with_another_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
        for protocol in [IPV4, IPV6] {
            prop_assert_eq!(attempt(&outgoing(protocol, &bytes), TRACKED), reference(protocol, &bytes));
        }
    }

    #[test]
    fn a_truncated_packet_is_never_a_different_attempt((protocol, bytes) in valid(), end in 0..120_usize) {
        let whole = attempt(&outgoing(protocol, &bytes), TRACKED);
        let cut = Packet { bytes: &bytes[..end.min(bytes.len())], ..outgoing(protocol, &bytes) };
        let found = attempt(&cut, TRACKED);
        prop_assert!(found.is_none() || found == whole);
        // The headers up to the flags suffice.
        prop_assert!(found == whole || cut.bytes.len() < 74);
    }

    #[test]
    fn inconsistent_blocks_are_never_read_beyond_their_end(
        bytes in proptest::collection::vec(any::<u8>(), 0..512),
        count in 0..8_u32, first in 0..200_u32, next in 0..200_u32, length in 0..300_u32, begin in 0..200_u16,
    ) {
        let mut block = bytes;
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = block.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        // The offsets of the number of packets and of the first packet in a block, and of the fields in a packet.
        put(12, &count.to_ne_bytes());
        put(16, &first.to_ne_bytes());
        let packet = first as usize;
        put(packet, &next.to_ne_bytes());
        put(packet + 12, &length.to_ne_bytes());
        put(packet + 26, &begin.to_ne_bytes());
        let count = Packets::new(&block).count();
        prop_assert!(count <= 512);
    }
}

#[test]
fn incoming_tagged_and_other_packets_are_not_attempts() {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(40_000, PORT, 7, 1000).syn();
    builder.write(&mut bytes, &[]).expect("written");
    let packet = outgoing(IPV4, &bytes);
    let found = attempt(&packet, TRACKED).expect("an attempt");
    assert_eq!(found.destination, "10.0.0.2:22".parse().expect("an address"));
    assert_eq!((found.source.port(), found.sequence), (40_000, 7));
    assert_eq!(attempt(&Packet { is_outgoing: false, ..packet }, TRACKED), None);
    assert_eq!(attempt(&Packet { is_tagged: true, ..packet }, TRACKED), None);
    assert_eq!(attempt(&Packet { protocol: 0x8100, ..packet }, TRACKED), None);
    assert_eq!(attempt(&Packet { protocol: IPV6, ..packet }, TRACKED), None);
    assert_eq!(attempt(&packet, Tracked { port: 2222, ipv6: true }), None);
    assert_eq!(
        attempt(&Packet { length: bytes.len() - 1, ..packet }, TRACKED),
        None,
        "the header claims more than was sent"
    );
}

#[test]
fn ipv6_can_be_excluded() {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(40_000, PORT, 7, 1000).syn();
    builder.write(&mut bytes, &[]).expect("written");
    assert!(attempt(&outgoing(IPV6, &bytes), TRACKED).is_some());
    assert_eq!(attempt(&outgoing(IPV6, &bytes), Tracked { ipv6: false, ..TRACKED }), None);
}
