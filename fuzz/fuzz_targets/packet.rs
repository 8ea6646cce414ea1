//! The parser of packets agrees with `etherparse` on any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../src/capture"]
mod capture {
    #[allow(dead_code)]
    pub mod packet;
    pub mod tests {
        pub mod reference;
    }
}

use capture::packet::{IPV4, IPV6, attempt};
use capture::tests::reference::{TRACKED, outgoing, reference};

fuzz_target!(|bytes: &[u8]| {
    for protocol in [IPV4, IPV6] {
        assert_eq!(attempt(&outgoing(protocol, bytes), TRACKED), reference(protocol, bytes));
    }
});
