//! Hardware addresses.

use std::fmt;

/// A hardware address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, derive_more::Debug)]
#[debug("{self}")]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Derives an address from texts: equal texts give equal addresses. It is a locally administered unicast address
    /// (IEEE 802: of the two lowest bits of the first byte, 2 is set and 1 is not), so it never equals an address that
    /// a manufacturer assigned.
    pub fn derived(parts: &[&str]) -> Self {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        for part in parts {
            context.update(part.as_bytes());
            context.update(&[0]);
        }
        let mut bytes = context.finish().as_ref().first_chunk::<6>().copied().unwrap_or_default();
        bytes[0] = bytes[0] & 0xfc | 0x02;
        Self(bytes)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.map(|byte| format!("{byte:02x}")).join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_local_unicast_and_depends_on_every_part() {
        let one = Mac::derived(&["uid", "data", "pod"]);
        assert_eq!(one, Mac::derived(&["uid", "data", "pod"]));
        assert_eq!(one.0[0] & 3, 2, "{one}");
        for other in [&["uid", "data", "node"][..], &["uidd", "ata", "pod"], &["uid", "data"]] {
            assert_ne!(Mac::derived(other), one);
        }
        assert_eq!(Mac([2, 0, 0, 0, 10, 255]).to_string(), "02:00:00:00:0a:ff");
    }
}
