//! Refresh tokens in the cookie of a session. The parts of a JSON Web Token are base64, and so is the cookie: a token
//! whose parts are decoded makes the cookie a quarter shorter.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The first byte of a token that is kept as it is.
const TEXT: u8 = 0;
/// The first byte of a token whose parts are decoded, each after its length.
const PARTS: u8 = 1;

/// Returns the short form of a token.
pub fn packed(token: &str) -> Vec<u8> {
    let part = |part: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
        let length = u16::try_from(bytes.len()).ok()?;
        Some([length.to_be_bytes().as_slice(), &bytes].concat())
    };
    match token.split('.').map(part).collect::<Option<Vec<_>>>() {
        Some(parts) => [[PARTS].as_slice(), &parts.concat()].concat(),
        None => [[TEXT].as_slice(), token.as_bytes()].concat(),
    }
}

/// Returns the token of a short form; `None` if it is invalid.
pub fn unpacked(bytes: &[u8]) -> Option<String> {
    let (kind, mut rest) = bytes.split_first()?;
    if *kind == TEXT {
        return String::from_utf8(rest.to_vec()).ok();
    }
    let mut parts = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (part, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        parts.push(URL_SAFE_NO_PAD.encode(part));
        rest = after;
    }
    Some(parts.join("."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_json_web_token_is_packed_and_other_tokens_are_kept() {
        for (token, length) in [
            // Three parts of 9, 6 and 3 bytes, each after two bytes for its length.
            ("eyJhbGciOiJI.eyJleHAi.c2ln", 1 + 11 + 8 + 5),
            ("opaque-token_1", 1 + 14),
            ("r3fresh!", 1 + 8),
            ("", 3),
        ] {
            let short = packed(token);
            assert_eq!((short.len(), unpacked(&short).as_deref()), (length, Some(token)), "{token}");
        }
        for invalid in [b"".as_slice(), &[TEXT, 0xff], &[PARTS, 0, 9, 1]] {
            assert_eq!(unpacked(invalid), None, "{invalid:?}");
        }
    }

    proptest! {
        #[test]
        fn every_token_is_unpacked_as_it_was(
            token in any::<String>(),
            parts in "[A-Za-z0-9_-]{0,9}([.][A-Za-z0-9_-]{0,9}){0,3}",
        ) {
            for token in [token, parts] {
                prop_assert_eq!(unpacked(&packed(&token)), Some(token));
            }
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in any::<Vec<u8>>()) {
            let _ = unpacked(&bytes);
        }
    }
}
