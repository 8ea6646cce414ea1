//! The keys of the SSH tracker.

use super::keys::keys;

keys! {
    /// The SSH tracker.
    pub struct SshTrackerConfig {
        /// Whether this loop runs, which needs the capability `NET_RAW`; if not, it captures nothing.
        pub enabled: bool,
        /// The name of the interface whose packets are looked at, which may be missing at times, or `any` for all of
        /// them.
        pub interface: String = "any".to_owned(),
        /// The TCP port of SSH on Instances.
        #[schemars(range(min = 1, max = 65535))]
        pub port: u16 = 22,
        /// The bytes of a packet that are captured, from 64 to 65535; they determine the size of the blocks of the
        /// ring.
        #[schemars(range(min = 64, max = 65535))]
        pub snaplen: u32 = 1600,
        /// Whether connections over IPv6 are counted too.
        pub ipv6: bool = true,
        /// Whether connections are counted by Instance too.
        pub by_instance: bool = true,
    }
}
