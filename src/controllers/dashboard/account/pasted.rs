//! Why a text that a user pastes is not an SSH public key: a pure function.

use crate::api::private_key::is_private;
use crate::api::public_key::canonical;
use crate::controllers::dashboard::texts::Problem;

/// The beginnings of the types of keys.
const TYPES: [&str; 3] = ["ssh-", "ecdsa-sha2-", "sk-"];

/// Returns the canonical form of the public key in a text.
///
/// # Errors
/// The most precise [`Problem`] for the text. The problem of a private key comes before all others.
pub fn key(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    let is_type = |word: &str| TYPES.iter().any(|begin| word.starts_with(begin));
    if is_private(text) {
        return Err(Problem::KeyPrivate);
    }
    if text.is_empty() {
        return Err(Problem::KeyEmpty);
    }
    let header = text.trim_start_matches('-').trim_start();
    if header.starts_with("BEGIN SSH2 PUBLIC KEY") {
        return Err(Problem::KeyRfc4716);
    }
    if header.starts_with("BEGIN PUBLIC KEY") || header.starts_with("BEGIN RSA PUBLIC KEY") {
        return Err(Problem::KeyPem);
    }
    canonical(text).map_err(|error| {
        let words = || text.split_whitespace();
        // `ssh-keygen -l` writes the number of bits before the fingerprint.
        let is_fingerprint =
            |word: &str| word.starts_with("SHA256:") || word.starts_with("MD5:") || is_hex(word);
        let has_options = || !words().next().is_some_and(is_type) && words().skip(1).any(is_type);
        match Problem::from(error) {
            Problem::Key if words().take(2).any(is_fingerprint) => Problem::KeyFingerprint,
            Problem::Key if has_options() => Problem::KeyOptions,
            problem => problem,
        }
    })
}

/// Whether a word is an MD5 fingerprint: 16 bytes in hexadecimal, with colons.
fn is_hex(word: &str) -> bool {
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    word.split(':').count() == 16 && word.split(':').all(is_byte)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3";

    #[test]
    fn each_text_that_is_not_a_public_key_has_its_own_problem() {
        let md5 = "16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48";
        for (text, problem) in [
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\n-----END OPENSSH PRIVATE KEY-----",
                Problem::KeyPrivate,
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", Problem::KeyPrivate),
            ("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none", Problem::KeyPrivate),
            // Both keys at once.
            (&*format!("{KEY}\n-----BEGIN OPENSSH PRIVATE KEY-----"), Problem::KeyPrivate),
            ("", Problem::KeyEmpty),
            (" \n\t", Problem::KeyEmpty),
            (
                "---- BEGIN SSH2 PUBLIC KEY ----\nComment: \"ada\"\nAAAA\n---- END SSH2 PUBLIC KEY ----",
                Problem::KeyRfc4716,
            ),
            ("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", Problem::KeyPem),
            ("-----BEGIN RSA PUBLIC KEY-----\nMIIB\n-----END RSA PUBLIC KEY-----", Problem::KeyPem),
            (&*format!("{KEY}\n{KEY}"), Problem::KeyLineBreak),
            (&*KEY.replace("AIGJ1", "AIGJ1\n"), Problem::KeyLineBreak),
            ("SHA256:N3ypM7HpMb+WUSj3M2L1bECryrCTporGfpvq7+J1ksU", Problem::KeyFingerprint),
            ("256 SHA256:N3ypM7HpMb+WUSj3M2L1bECryrCTporGfpvq7+J1ksU ada (ED25519)", Problem::KeyFingerprint),
            (md5, Problem::KeyFingerprint),
            (&*format!("2048 MD5:{md5} ada (RSA)"), Problem::KeyFingerprint),
            (&*format!("restrict {KEY}"), Problem::KeyOptions),
            (&*format!("from=\"10.0.0.1\",command=\"ls -l\" {KEY} ada"), Problem::KeyOptions),
            ("ssh-ed25519 nonsense", Problem::Key),
            ("~/.ssh/id_ed25519.pub", Problem::Key),
            ("hello", Problem::Key),
            (&*"x".repeat(9_000), Problem::KeyTooLong),
        ] {
            assert_eq!(key(text), Err(problem), "{text:?}");
        }
        for text in [KEY.to_owned(), format!(" {KEY} ada@laptop\n"), format!("{KEY} my private key SHA256:x")]
        {
            assert_eq!(key(&text).as_deref(), Ok(KEY), "{text:?}");
        }
    }
}
