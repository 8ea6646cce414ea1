//! Random values.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};

/// Returns a nonce of 128 random bits; `None` if the system has no random numbers.
pub fn nonce() -> Option<String> {
    random::<16>().map(|bytes| URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns a random suffix for a name: six of 32 letters and digits that are easy to distinguish.
pub fn suffix() -> Option<String> {
    const SIGNS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz23456789i";
    let sign = |byte: u8| char::from(SIGNS[usize::from(byte % 32)]);
    random::<6>().map(|bytes| bytes.into_iter().map(sign).collect())
}

/// Returns random bytes; `None` if the system has no random numbers.
pub fn random<const BYTES: usize>() -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}
