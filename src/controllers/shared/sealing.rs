//! The keys that seal cookies.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The current key, and optionally the previous one.
pub struct Keys(Vec<LessSafeKey>);

/// Why a key file is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The number of lines is wrong.
    #[error("it has {0} lines; expected one for the current key, and optionally one for the previous key")]
    Number(usize),
    /// A line is not a key.
    #[error("line {0} is not a base64-encoded key of 32 bytes; create one with `openssl rand -base64 32`")]
    Unreadable(usize),
}

impl Keys {
    /// Parses a key file with one key per line, the current key first.
    ///
    /// # Errors
    /// If the number of lines is wrong, or a line is not a key.
    pub fn parse(content: &[u8]) -> Result<Self, KeyError> {
        let text = String::from_utf8_lossy(content);
        let lines: Vec<&str> = text.split_whitespace().collect();
        if !(1..=2).contains(&lines.len()) {
            return Err(KeyError::Number(lines.len()));
        }
        let key = |(index, line): (usize, &&str)| {
            let bytes = STANDARD.decode(line).ok();
            let key = bytes.and_then(|bytes| UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok());
            key.map(LessSafeKey::new).ok_or(KeyError::Unreadable(index + 1))
        };
        lines.iter().enumerate().map(key).collect::<Result<_, _>>().map(Self)
    }

    /// Seals a text for one purpose with the current key. The nonces are random and have 96 bits: among 2^32 cookies of
    /// a key, one repeats with a probability of 2^-33.
    pub fn seal(&self, purpose: &str, plain: &[u8]) -> String {
        let mut nonce = [0; NONCE_LEN];
        let mut sealed = plain.to_vec();
        let done = SystemRandom::new().fill(&mut nonce).and_then(|()| {
            let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(purpose.as_bytes()));
            self.0[0].seal_in_place_append_tag(nonce, aad, &mut sealed)
        });
        // Without random numbers, no cookie is set, and users have to log in again.
        if done.is_err() {
            return String::new();
        }
        URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat())
    }

    /// Returns a text that one of these keys has sealed for this purpose; `None` otherwise.
    pub fn open(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        self.0.iter().find_map(|key| {
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut text = sealed.to_vec();
            let length = key.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut text).ok()?.len();
            text.truncate(length);
            Some(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_key_or_two() {
        let line = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let why = |text: &str| Keys::parse(text.as_bytes()).err();
        assert_eq!([why(line), why(&format!("{line}\r\n\n{line}\n"))], [None, None]);
        for (text, error) in [
            ("", KeyError::Number(0)),
            (&format!("{line}\n{line}\n{line}"), KeyError::Number(3)),
            ("secret", KeyError::Unreadable(1)),
            ("AAAA", KeyError::Unreadable(1)),
            (&format!("{line}\nAAAA"), KeyError::Unreadable(2)),
            ("\u{fffd}", KeyError::Unreadable(1)),
        ] {
            assert_eq!(why(text), Some(error), "{text:?}");
        }
    }

    #[test]
    fn sealing_a_text_twice_gives_different_results() {
        let keys = Keys::parse(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").expect("a key");
        let [one, other] = [keys.seal("p", b"text"), keys.seal("p", b"text")];
        assert_ne!(one, other);
        assert_eq!(keys.open("p", &one).as_deref(), Some(b"text".as_slice()));
        assert_eq!(keys.open("q", &one), None, "for another purpose");
    }
}
