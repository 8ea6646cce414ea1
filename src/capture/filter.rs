//! The program that the kernel runs on every packet (classic BPF, `linux/filter.h`). It sees the packet from its IP
//! header on, because the socket strips the link header.

use libc::sock_filter;

use super::packet::{FLAGS, FRAGMENT, IPV4, IPV6, SYN, TCP, Tracked};

/// A step of the program.
#[derive(Clone, Copy)]
enum Step {
    /// An instruction other than a test.
    Run(u32, u32),
    /// Continues if the accumulator is equal to this value.
    Equal(u32),
    /// Continues if the accumulator has none of these bits.
    NoneOf(u32),
}
use Step::{Equal, NoneOf, Run};

const BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
const HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
/// Offsets from the index register.
const INDEXED_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_IND;
const INDEXED_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
/// Loads the length of the IPv4 header into the index register.
const HEADER_LENGTH: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// The offset of the kernel's metadata of a packet, which is loaded from negative offsets.
const fn known(offset: i32) -> u32 {
    (libc::SKF_AD_OFF + offset).cast_unsigned()
}

/// Builds the program that passes the first `accepted` bytes of a packet that opens a tracked connection. Almost all
/// packets of a bastion belong to open connections, so the program tests the flags before the other TCP fields.
pub fn program(tracked: Tracked, accepted: u32) -> Vec<sock_filter> {
    let port = u32::from(tracked.port);
    let head = [
        Run(BYTE, known(libc::SKF_AD_PKTTYPE)),
        Equal(libc::PACKET_OUTGOING.into()),
        Run(BYTE, known(libc::SKF_AD_VLAN_TAG_PRESENT)),
        Equal(0),
        Run(HALF, known(libc::SKF_AD_PROTOCOL)),
    ];
    let ipv4 = [
        Equal(IPV4.into()),
        Run(BYTE, 9),
        Equal(TCP.into()),
        Run(HEADER_LENGTH, 0),
        Run(INDEXED_BYTE, 13),
        Run(AND, FLAGS.into()),
        Equal(SYN.into()),
        Run(INDEXED_HALF, 2),
        Equal(port),
        Run(HALF, 6),
        NoneOf(FRAGMENT.into()),
        Run(RETURN, accepted),
    ];
    let ipv6 = [
        Equal(IPV6.into()),
        Run(BYTE, 6),
        Equal(TCP.into()),
        Run(BYTE, 53),
        Run(AND, FLAGS.into()),
        Equal(SYN.into()),
        Run(HALF, 42),
        Equal(port),
        Run(RETURN, accepted),
    ];
    let refuse = Run(RETURN, 0);
    let mut steps: Vec<Step> = [&head[..], &ipv4].concat();
    let other_protocol = steps.len();
    if tracked.ipv6 {
        steps.extend(ipv6);
    }
    steps.push(refuse);
    let last = steps.len() - 1;
    let instruction = |(at, step): (usize, &Step)| {
        // A packet that is not IPv4 may be IPv6; every other failed test ends the program.
        let otherwise = if at == head.len() { other_protocol } else { last };
        let skip =
            u8::try_from(otherwise - at.min(otherwise) - usize::from(at < otherwise)).unwrap_or(u8::MAX);
        let (code, jt, jf, k) = match *step {
            Run(code, operand) => (code, 0, 0, operand),
            Equal(value) => (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, value),
            NoneOf(bits) => (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, skip, 0, bits),
        };
        sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
    };
    steps.iter().enumerate().map(instruction).collect()
}
