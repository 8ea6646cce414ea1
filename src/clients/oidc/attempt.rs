//! The random values of a login. They prove that the user who comes back from the provider is the user who was sent
//! there.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

/// The state of a login in progress.
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
    /// Creates the values of a new login; `None` if the system has no random numbers.
    pub fn random() -> Option<Self> {
        let random = SystemRandom::new();
        let text = || {
            let mut bytes = [0; 32];
            random.fill(&mut bytes).ok()?;
            Some(URL_SAFE_NO_PAD.encode(bytes))
        };
        Some(Self { state: text()?, nonce: text()?, verifier: text()? })
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
        let [one, other] = [(); 2].map(|()| Attempt::random().expect("random numbers"));
        let all = [&one, &other].map(|of| [&of.state, &of.nonce, &of.verifier]).concat();
        assert!(all.iter().all(|text| text.len() == 43), "256 bits");
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 6);
        assert!(one.is_of(&one.state) && !one.is_of(&other.state) && !one.is_of(""));
    }
}
