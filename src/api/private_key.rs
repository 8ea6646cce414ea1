//! Recognizes private keys, which a user may paste by mistake.

/// The parts that only texts with private keys have, without blanks: the header of PEM, OpenSSH and RFC 4716, the
/// lines of a `PuTTY` key (`.ppk`), and the first bytes of an OpenSSH key (`openssh-key-v1`) in base64.
const MARKS: [&str; 5] =
    ["PRIVATEKEY--", "PuTTY-User-Key-File-", "Private-Lines:", "Private-MAC:", "b3BlbnNzaC1rZXktdjE"];

/// Whether a text contains a private key, or a part of one with one of the marks. Line breaks and other blanks do not
/// matter, because a terminal or a form may have changed them.
pub fn is_private(text: &str) -> bool {
    let dense: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    MARKS.iter().any(|mark| dense.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_of_every_format_are_recognized() {
        for text in [
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n",
            "-----BEGIN EC PRIVATE KEY-----",
            "-----BEGIN DSA PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----",
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none",
            "Private-Lines: 1\nAAAA",
            "Private-MAC: 00",
            // Without line breaks, with other ones, and without the header.
            "-----BEGIN OPENSSH PRIVATE KEY----- b3Blbn -----END OPENSSH PRIVATE KEY-----",
            "-----BEGIN\nRSA PRIVATE\r\nKEY-----",
            "MIIE\n-----END RSA PRIVATE KEY-----",
            "b3BlbnNzaC1r\nZXktdjEAAAAABG5vbmU",
            "my key: -----BEGIN PRIVATE KEY-----",
        ] {
            assert!(is_private(text), "{text:?}");
        }
    }

    #[test]
    fn other_texts_are_not_private_keys() {
        for text in [
            "",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3 my private key",
            "---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "SHA256:N3ypM7HpMb+WUSj3M2L1bECryrCTporGfpvq7+J1ksU",
            "MACHINE WITH A PRIVATE KEY",
        ] {
            assert!(!is_private(text), "{text:?}");
        }
    }
}
