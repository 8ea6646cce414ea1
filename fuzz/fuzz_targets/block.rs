//! Blocks of the ring with any content are read without a panic, and not for ever.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../src/capture"]
mod capture {
    #[allow(dead_code)]
    pub mod block;
    #[allow(dead_code)]
    pub mod packet;
}

use capture::block::Packets;
use capture::packet::{Tracked, attempt};

fuzz_target!(|block: &[u8]| {
    let mut packets = 0;
    for packet in Packets::new(block) {
        packets += 1;
        let _ = attempt(&packet, Tracked { port: 22, ipv6: true });
    }
    // Each packet has a header of its own: the next one begins behind this one.
    assert!(packets <= block.len(), "{packets} packets in {} bytes", block.len());
});
