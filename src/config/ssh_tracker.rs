//! The keys of the SSH tracker.

use super::formats::formats;
use super::keys::keys;

formats! {
    INTERFACE = "crownlabs-interface", is_interface,
        "the name of an interface, of 1 to 15 bytes without spaces, `/` and `:`, or `any`",
        "^[^/: ]{1,15}$";
}

/// Whether the kernel accepts a name.
fn is_interface(name: &str) -> bool {
    let is_other = |letter: char| matches!(letter, '/' | ':' | '\0') || letter.is_whitespace();
    (1..=15).contains(&name.len()) && ![".", ".."].contains(&name) && !name.contains(is_other)
}

keys! {
    /// The SSH tracker.
    pub struct SshTrackerConfig {
        /// Whether this loop runs, which requires the capability `NET_RAW`; if not, it captures nothing.
        pub enabled: bool,
        /// The name of the network interface to capture on, which may be temporarily missing, or `any` for all
        /// interfaces.
        pub interface: String as INTERFACE = "any".to_owned(),
        /// The TCP port of SSH on Instances.
        pub port: u16 as 1..=65535 = 22,
        /// The number of bytes that are captured of each packet, from 64 to 65535. It determines the block size of the
        /// ring buffer.
        pub snaplen: u32 as 64..=65535 = 1600,
        /// Whether connections over IPv6 are counted too.
        pub ipv6: bool = true,
        /// Whether connections are counted by Instance too.
        pub by_instance: bool = true,
    }
}
