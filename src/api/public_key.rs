//! Validation of the SSH public keys of Tenants.

use ssh_key::PublicKey;

/// Why a text is not a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// The text has several lines, so it could add options or more keys to `authorized_keys`.
    #[error("has a line break: a key is one line, and each key an entry of its own")]
    LineBreak,
    /// The text is not a public key in the format of OpenSSH.
    #[error("is no SSH public key such as `ssh-ed25519 AAAA… name`")]
    Unreadable,
}

/// Validates a public key, and returns it without the white space around it.
///
/// # Errors
/// If the text is not exactly one key in the format of OpenSSH.
pub fn checked(text: &str) -> Result<&str, PublicKeyError> {
    let key = text.trim();
    if key.lines().count() > 1 || key.contains('\r') {
        return Err(PublicKeyError::LineBreak);
    }
    PublicKey::from_openssh(key).map_err(|_| PublicKeyError::Unreadable)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3 ada@lab";

    #[test]
    fn a_key_is_one_line() {
        assert_eq!(checked(&format!(" {KEY}\n")), Ok(KEY));
        for (text, fault) in [
            (format!("{KEY}\n{KEY}"), PublicKeyError::LineBreak),
            (format!("{KEY}\r{KEY}"), PublicKeyError::LineBreak),
            (format!("command=\"x\"\n{KEY}"), PublicKeyError::LineBreak),
            (String::new(), PublicKeyError::Unreadable),
            ("ssh-ed25519 AAAA ada".to_owned(), PublicKeyError::Unreadable),
        ] {
            assert_eq!(checked(&text), Err(fault), "{text:?}");
        }
    }
}
