//! Signatures of ID tokens (RFC 7515), and the keys that verify them (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;

/// A JSON Web Token with its parts.
pub struct Signed<'a> {
    /// The name of its algorithm.
    algorithm: &'static str,
    check: &'static Check,
    /// The ID of the key that signed it; empty if the token names no key.
    key: String,
    /// The signed text: header and claims, encoded.
    text: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
}

/// How a signature is verified.
enum Check {
    Rsa(&'static RsaParameters),
    /// A key of this type on this curve.
    Curve(&'static str, &'static str, &'static dyn VerificationAlgorithm),
}

/// The public-key algorithms that Keycloak offers, by their names in the headers of tokens. P-521 is missing, because
/// the library does not support it.
static ALGORITHMS: [(&str, Check); 9] = [
    ("RS256", Check::Rsa(&RSA_PKCS1_2048_8192_SHA256)),
    ("RS384", Check::Rsa(&RSA_PKCS1_2048_8192_SHA384)),
    ("RS512", Check::Rsa(&RSA_PKCS1_2048_8192_SHA512)),
    ("PS256", Check::Rsa(&RSA_PSS_2048_8192_SHA256)),
    ("PS384", Check::Rsa(&RSA_PSS_2048_8192_SHA384)),
    ("PS512", Check::Rsa(&RSA_PSS_2048_8192_SHA512)),
    ("ES256", Check::Curve("EC", "P-256", &ECDSA_P256_SHA256_FIXED)),
    ("ES384", Check::Curve("EC", "P-384", &ECDSA_P384_SHA384_FIXED)),
    ("EdDSA", Check::Curve("OKP", "Ed25519", &ED25519)),
];

impl<'a> Signed<'a> {
    /// Parses a token; `None` if the text is not a token, or its algorithm is not supported.
    pub fn of(token: &'a str) -> Option<Self> {
        let (text, signature) = token.rsplit_once('.')?;
        let (header, claims) = text.split_once('.')?;
        let Header { alg, kid } = serde_json::from_slice(&decoded(header)?).ok()?;
        let (algorithm, check) = ALGORITHMS.iter().find(|(name, _)| *name == alg)?;
        Some(Self { algorithm, check, key: kid, text, claims, signature: decoded(signature)? })
    }

    /// The claims, as JSON.
    pub fn payload(&self) -> Option<Vec<u8>> {
        decoded(self.claims)
    }
}

/// The keys of a provider, as a JSON Web Key Set.
#[derive(Debug, Clone, Deserialize)]
pub struct Keys {
    keys: Vec<Key>,
}

/// A key, with the fields of the supported types.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Key {
    kty: String,
    kid: String,
    #[serde(rename = "use")]
    usage: String,
    alg: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl Keys {
    /// Whether one of the keys has signed a token.
    pub fn have_signed(&self, token: &Signed<'_>) -> bool {
        self.keys.iter().any(|key| key.is_for(token) && key.has_signed(token) == Some(true))
    }
}

impl Key {
    /// Whether the key may verify a token.
    fn is_for(&self, token: &Signed<'_>) -> bool {
        let is = |stated: &str, expected: &str| stated.is_empty() || stated == expected;
        is(&token.key, &self.kid) && is(&self.usage, "sig") && is(&self.alg, token.algorithm)
    }

    /// Whether the key has signed a token; `None` if the key has another type.
    fn has_signed(&self, token: &Signed<'_>) -> Option<bool> {
        let (text, signature) = (token.text.as_bytes(), token.signature.as_slice());
        let checked = match token.check {
            Check::Rsa(parameters) => {
                let key = RsaPublicKeyComponents { n: decoded(&self.n)?, e: decoded(&self.e)? };
                (self.kty == "RSA").then(|| key.verify(parameters, text, signature))?
            }
            Check::Curve(kty, curve, algorithm) => {
                // An uncompressed point of an elliptic curve. Points of Ed25519 have one coordinate.
                let mark: &[u8] = if *kty == "EC" { &[4] } else { &[] };
                let point = [mark, &decoded(&self.x)?, &decoded(&self.y)?].concat();
                let key = UnparsedPublicKey::new(*algorithm, point);
                (self.kty == *kty && self.crv == *curve).then(|| key.verify(text, signature))?
            }
        };
        Some(checked.is_ok())
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
pub mod tests;
