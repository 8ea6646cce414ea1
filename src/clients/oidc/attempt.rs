//! The values of a login. They prove that the user who comes back from the provider is the user who was sent there.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{digest, hmac};

/// The length of the secret of a login, in bytes.
pub const SECRET_BYTES: usize = 32;

/// The values of a login in progress.
#[derive(Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Comes back from the provider with the user.
    pub state: String,
    /// Comes back in the ID token.
    pub nonce: String,
    /// The provider knows its hash until the code is exchanged.
    pub verifier: String,
}

impl Attempt {
    /// Derives the values of a login from its secret, which is random. No value reveals the secret or another value.
    pub fn of(secret: &[u8; SECRET_BYTES]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = |name: &str| URL_SAFE_NO_PAD.encode(hmac::sign(&key, name.as_bytes()));
        Self { state: derived("state"), nonce: derived("nonce"), verifier: derived("verifier") }
    }

    /// The hash of the verifier.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.verifier.as_bytes()))
    }

    /// Whether `state` belongs to this login. Both are hashed, so that the time of the comparison reveals nothing
    /// about the correct value.
    pub fn is_of(&self, state: &str) -> bool {
        let hash = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
        hash(&self.state).as_ref() == hash(state).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_matches_the_example_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let attempt = Attempt { state: String::new(), nonce: String::new(), verifier };
        assert_eq!(attempt.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn logins_share_no_values() {
        let [one, other] = [1, 2].map(|byte| Attempt::of(&[byte; SECRET_BYTES]));
        let all = [&one, &other].map(|of| [&of.state, &of.nonce, &of.verifier]).concat();
        assert!(all.iter().all(|text| text.len() == 43), "256 bits");
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 6);
        assert!(one.is_of(&one.state) && !one.is_of(&other.state) && !one.is_of(""));
        assert!(Attempt::of(&[1; SECRET_BYTES]) == one, "the same secret gives the same values");
    }
}
