//! The host names of machines with `controllers.instance.urls: host`. The instance loop and the login of machines
//! compute the same names.
//!
//! The first label of a host name is computed with a secret key. It cannot be guessed, does not show the uid of the
//! Instance, and needs no storage.

use ring::hmac;

/// The Secret with the key, in the namespace of the daemon.
pub const SECRET: &str = "crownlabs-machine-hosts";
/// The entry of the Secret with the key.
pub const ENTRY: &str = "key";
/// The length of the key, in bytes: the output of SHA-256.
pub const KEY_LENGTH: usize = 32;
/// The path on the host of a machine that only the login of machines answers.
pub const LOGIN_PATH: &str = "/_crownlabs";
/// The length of a label: 130 bits.
pub const LABEL_LENGTH: usize = 26;
/// The digits of labels (RFC 4648, base32, in lower case).
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The key of the host names.
#[derive(Debug, Clone)]
pub struct HostKey(hmac::Key);

impl HostKey {
    /// Reads the content of [`ENTRY`].
    ///
    /// # Errors
    /// If the content does not have [`KEY_LENGTH`] bytes.
    pub fn parse(content: &[u8]) -> Result<Self, String> {
        if content.len() == KEY_LENGTH {
            Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, content)))
        } else {
            Err(format!("it has {} bytes; expected {KEY_LENGTH} random bytes", content.len()))
        }
    }

    /// The first label of the host name of an environment of the Instance with this uid.
    pub fn label(&self, uid: &str, environment: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{uid}/{environment}").as_bytes());
        base32(tag.as_ref()).take(LABEL_LENGTH).collect()
    }
}

/// The first label of the host name at which a peer opens the desktop of an environment of the Instance with this uid.
/// The dashboard, which links to it, does not have the key of the host names: the uid is random, and the login guards the
/// host.
pub fn peer_label(uid: &str, environment: &str, user: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, uid.as_bytes());
    let tag = hmac::sign(&key, format!("{environment}/{user}").as_bytes());
    base32(tag.as_ref()).take(LABEL_LENGTH).collect()
}

/// The label of a host name of the form `<label>.<base>`; `None` for any other host name.
pub fn label_of<'a>(host: &'a str, base: &str) -> Option<&'a str> {
    let label = host.strip_suffix(base)?.strip_suffix('.')?;
    is_label(label).then_some(label)
}

/// Whether a text has the form of a label.
pub fn is_label(text: &str) -> bool {
    text.len() == LABEL_LENGTH && text.bytes().all(|byte| DIGITS.contains(&byte))
}

/// The base32 digits of complete groups of five bits.
fn base32(bytes: &[u8]) -> impl Iterator<Item = char> {
    let bit = move |index: usize| bytes.get(index / 8).map(|byte| (byte >> (7 - index % 8)) & 1);
    (0..bytes.len() * 8 / 5).filter_map(move |group| {
        let value =
            (group * 5..group * 5 + 5).try_fold(0_u8, |value, index| Some((value << 1) | bit(index)?))?;
        DIGITS.get(usize::from(value)).map(|digit| char::from(*digit))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key(byte: u8) -> HostKey {
        HostKey::parse(&[byte; KEY_LENGTH]).expect("a key")
    }

    #[test]
    fn base32_matches_the_test_vectors_of_rfc_4648() {
        for (text, digits) in [("", ""), ("fooba", "mzxw6ytb"), ("fooba12345", "mzxw6ytbgezdgnbv")] {
            assert_eq!(base32(text.as_bytes()).collect::<String>(), digits);
        }
        assert_eq!(base32(b"foobar").collect::<String>(), "mzxw6ytbo", "an incomplete group is left out");
    }

    #[test]
    fn a_label_depends_on_the_key_the_instance_and_the_environment() {
        let uid = "7c1f0d3e-52f6-4a1d-9a39-4f7b2f7d0001";
        let labels = [
            key(1).label(uid, "main"),
            key(2).label(uid, "main"),
            key(1).label("7c1f0d3e-52f6-4a1d-9a39-4f7b2f7d0002", "main"),
            key(1).label(uid, "other"),
        ];
        assert!(labels.iter().all(|label| is_label(label)), "{labels:?}");
        assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len(), "{labels:?}");
        assert_eq!(key(1).label(uid, "main"), labels[0], "the label of an environment never changes");
    }

    #[test]
    fn a_label_is_the_hmac_of_the_uid_and_the_environment() {
        // printf u1/main | openssl dgst -sha256 -mac HMAC -macopt hexkey:0101…01 -binary | base32
        assert_eq!(key(1).label("u1", "main"), "5ngftyjvb3ov2wxpapjdx77luw");
    }

    #[test]
    fn each_peer_has_a_label_of_their_own() {
        let labels = [
            peer_label("u1", "main", "kim"),
            peer_label("u2", "main", "kim"),
            peer_label("u1", "other", "kim"),
            peer_label("u1", "main", "lee"),
        ];
        assert!(labels.iter().all(|label| is_label(label)), "{labels:?}");
        assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len(), "{labels:?}");
    }

    #[test]
    fn a_key_has_32_bytes() {
        for length in [0, 31, 33] {
            let error = HostKey::parse(&vec![7; length]).err();
            let expected = format!("it has {length} bytes; expected 32 random bytes");
            assert_eq!(error, Some(expected));
        }
        assert!(!format!("{:?}", key(1)).contains("1, 1"), "the key is not in logs");
    }

    #[test]
    fn only_a_host_directly_below_the_base_has_a_label() {
        let label = "abcdefghijklmnopqrstuvwxyz";
        let base = "labs.example.com";
        assert_eq!(label_of(&format!("{label}.{base}"), base), Some(label));
        for host in [
            base.to_owned(),
            format!(".{base}"),
            format!("exam.{base}"),
            format!("{label}{base}"),
            format!("{label}.x.{base}"),
            format!("x.{label}.{base}"),
            format!("{label}.{base}.example.org"),
            format!("{}.{base}", label.to_uppercase()),
            format!("{}.{base}", label.replace('z', "1")),
        ] {
            assert_eq!(label_of(&host, base), None, "{host}");
        }
    }
}
