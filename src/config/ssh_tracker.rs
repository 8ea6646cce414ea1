//! The keys of the SSH tracker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::Rule;

/// The rules for these keys.
pub(super) const RULES: &[Rule] = &[Rule {
    keys: &["controllers.sshTracker.interface"],
    broken: |config| {
        let name = &config.controllers.ssh_tracker.interface;
        // What the kernel accepts as a name.
        let is_name = (1..=15).contains(&name.len())
            && ![".", ".."].contains(&name.as_str())
            && !name.contains(|letter: char| matches!(letter, '/' | ':' | '\0') || letter.is_whitespace());
        (!is_name).then(|| format!("{name:?} is not the name of an interface"))
    },
    expected: "expected `any`, or 1 to 15 bytes without spaces, `/` and `:`",
}];

/// The SSH tracker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SshTrackerConfig {
    /// Whether this loop runs, which needs the capability `NET_RAW`; if not, it captures nothing.
    pub enabled: bool,
    /// The name of the interface whose packets are looked at, which may be missing at times, or `any` for all of them.
    pub interface: String,
    /// The TCP port of SSH on Instances.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// The bytes of a packet that are captured, from 64 to 65535; they determine the size of the blocks of the ring.
    #[schemars(range(min = 64, max = 65535))]
    pub snaplen: u32,
    /// Whether connections over IPv6 are counted too.
    pub ipv6: bool,
    /// Whether connections are counted by Instance too.
    pub by_instance: bool,
}

impl Default for SshTrackerConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            interface: "any".to_owned(),
            port: 22,
            snaplen: 1600,
            ipv6: true,
            by_instance: true,
        }
    }
}
