//! Validation of the SSH public keys of Tenants.

use ssh_key::public::KeyData;
use ssh_key::{HashAlg, PublicKey};

/// The limit for the keys of a Tenant that are used; [`MOST_BYTES`] limits their total size in bytes. Servers read
/// all keys at each login, and users can edit the keys of their own Tenant.
pub const MOST_KEYS: usize = 100;
/// See [`MOST_KEYS`].
pub const MOST_BYTES: usize = 64 << 10;

/// The longest accepted text of a key, in bytes. The largest key that OpenSSH reads, RSA with 16384 bits, has 2800.
const LONGEST: usize = 8 << 10;

/// The reason why a text is not a valid public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// The text has several lines, so it could add options or more keys to `authorized_keys`.
    #[error("has a line break: each key must be a single line in a separate entry")]
    LineBreak,
    /// The text is longer than any key.
    #[error("is longer than 8192 bytes, so it is not an SSH public key such as `ssh-ed25519 AAAA… name`")]
    TooLong,
    /// The text is not a public key in the format of OpenSSH.
    #[error("is not an SSH public key such as `ssh-ed25519 AAAA… name`")]
    Unreadable,
    /// The text is a certificate, or a key of a type that OpenSSH does not accept, such as DSA.
    #[error("is a certificate or a key of a type that OpenSSH does not accept: use Ed25519, ECDSA or RSA")]
    Unsupported,
}

/// Returns the keys of a Tenant that are used if they are valid: the first keys, up to the limits. Later keys are
/// ignored.
pub fn within_limits(keys: &[String]) -> &[String] {
    let mut bytes = 0;
    let fits = |key: &&String| {
        bytes += key.len();
        bytes <= MOST_BYTES
    };
    &keys[..keys.iter().take(MOST_KEYS).take_while(fits).count()]
}

/// The properties of a key that are shown to its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its type, such as `ssh-ed25519`.
    pub kind: String,
    /// Its fingerprint, as `ssh-keygen -l` prints it: `SHA256:…`.
    pub fingerprint: String,
    /// The comment of the user after the key; empty if there is no comment.
    pub comment: String,
}

/// Describes a public key.
///
/// # Errors
/// As [`canonical`].
pub fn describe(text: &str) -> Result<Description, PublicKeyError> {
    let canonical = canonical(text)?;
    let key = PublicKey::from_openssh(&canonical).map_err(|_| PublicKeyError::Unreadable)?;
    let words = text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
    Ok(Description {
        kind: key.algorithm().to_string(),
        fingerprint: key.fingerprint(HashAlg::Sha256).to_string(),
        comment: words.skip(2).collect::<Vec<_>>().join(" "),
    })
}

/// Validates a public key, and returns its type and its data in base64: `ssh-ed25519 AAAA…`. The comment of the user
/// is left out. Servers and machines get a key only in this form.
///
/// Blanks and tabs may separate type and data, as sshd(8) reads them. Before and after the key, line breaks are
/// allowed, too. Other blanks, such as the no-break space, and control characters are not separators and make the key
/// invalid.
///
/// # Errors
/// If the text is not exactly one key in the format of OpenSSH, of a type that OpenSSH accepts.
pub fn canonical(text: &str) -> Result<String, PublicKeyError> {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    if text.lines().count() > 1 || text.contains('\r') {
        return Err(PublicKeyError::LineBreak);
    }
    if text.len() > LONGEST {
        return Err(PublicKeyError::TooLong);
    }
    let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
    // The parser drops every kind of Unicode blank at the end.
    let is_data = |word: &&str| word.bytes().all(|byte| byte.is_ascii_graphic());
    let (Some(kind), Some(data)) = (words.next(), words.next().filter(is_data)) else {
        return Err(PublicKeyError::Unreadable);
    };
    let key = PublicKey::from_openssh(&format!("{kind} {data}")).map_err(|_| PublicKeyError::Unreadable)?;
    match key.key_data() {
        KeyData::Ecdsa(_)
        | KeyData::Ed25519(_)
        | KeyData::Rsa(_)
        | KeyData::SkEcdsaSha2NistP256(_)
        | KeyData::SkEd25519(_) => key.to_openssh().map_err(|_| PublicKeyError::Unreadable),
        _ => Err(PublicKeyError::Unsupported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3";

    #[test]
    fn the_first_hundred_keys_and_64_kibibytes_are_used() {
        let keys = |number, length| vec!["k".repeat(length); number];
        for (number, length, used) in [
            (0, 0, 0),
            (100, 655, 100),
            (101, 1, 100),
            (250_000, 0, 100),
            (100, 656, 99),
            (2, 65_536, 1),
            (1, 65_537, 0),
        ] {
            assert_eq!(within_limits(&keys(number, length)).len(), used, "{number} of {length} bytes");
        }
    }

    #[test]
    fn blanks_and_the_comment_around_a_key_are_left_out() {
        let [kind, data] = KEY.split(' ').collect::<Vec<_>>()[..] else { panic!("{KEY}") };
        for between in [" ", "\t", "  ", " \t \t"] {
            for comment in ["", " ada@lab", "\tada", "  \u{1b}]0;evil\u{7}\u{9b}2J", " \0", " \u{202e}bad"] {
                let text = format!(" \t{kind}{between}{data}{comment} \n");
                assert_eq!(canonical(&text).as_deref(), Ok(KEY), "{text:?}");
            }
        }
        for between in ["", "\u{b}", "\u{c}", "\u{a0}", "\u{85}", "\u{2028}", " restrict "] {
            let text = format!("{kind}{between}{data}");
            assert_eq!(canonical(&text), Err(PublicKeyError::Unreadable), "{text:?}");
        }
    }

    #[test]
    fn other_blanks_and_control_characters_are_not_separators() {
        let [kind, data] = KEY.split(' ').collect::<Vec<_>>()[..] else { panic!("{KEY}") };
        let is_one = |character: &char| character.is_whitespace() || character.is_control();
        let others = ('\0'..=char::MAX).filter(|one| is_one(one) && ![' ', '\t', '\r', '\n'].contains(one));
        for other in others {
            for text in [
                format!("{other}{KEY}"),
                format!("{kind}{other}{data}"),
                format!("{kind} {other}{data}"),
                format!("{kind}{other} {data}"),
                format!("{KEY}{other}"),
                format!("{KEY}{other}\n"),
                format!("{KEY}{other} ada@lab"),
                format!("{KEY}{other}ada@lab"),
            ] {
                assert_eq!(canonical(&text), Err(PublicKeyError::Unreadable), "{text:?}");
            }
            assert_eq!(
                canonical(&format!("{KEY} {other}")).as_deref(),
                Ok(KEY),
                "it is a comment: {other:?}"
            );
        }
    }

    #[test]
    fn a_key_is_described_as_ssh_keygen_does() {
        // Output of `ssh-keygen -l`.
        let fingerprint = "SHA256:N3ypM7HpMb+WUSj3M2L1bECryrCTporGfpvq7+J1ksU";
        let described = describe(&format!(" {KEY}  ada  at home \n")).expect("a key");
        let kind = "ssh-ed25519".to_owned();
        let comment = "ada at home".to_owned();
        assert_eq!(described, Description { kind, fingerprint: fingerprint.to_owned(), comment });
        assert_eq!(describe(KEY).map(|key| key.comment), Ok(String::new()));
        assert_eq!(describe("ssh-dss AAAA"), Err(PublicKeyError::Unreadable));
    }

    #[test]
    fn a_key_is_one_line() {
        for (text, fault) in [
            (format!("{KEY}\n{KEY}"), PublicKeyError::LineBreak),
            (format!("{KEY}\r{KEY}"), PublicKeyError::LineBreak),
            (format!("command=\"x\"\n{KEY}"), PublicKeyError::LineBreak),
            (String::new(), PublicKeyError::Unreadable),
            ("ssh-ed25519 AAAA ada".to_owned(), PublicKeyError::Unreadable),
        ] {
            assert_eq!(canonical(&text), Err(fault), "{text:?}");
        }
    }
}
