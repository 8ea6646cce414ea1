//! Private keys, and the login with a private key.
//!
//! ring signs with RSA keys. The crate `rsa` only computes the parts of the key that are missing in its file: an
//! advisory reports that its private-key operations leak timing (`deny.toml`), so russh is built without it.

use std::sync::Arc;

use ring::rand::SystemRandom;
use ring::rsa::{KeyPair, KeyPairComponents, PublicKeyComponents};
use ring::signature::RSA_PKCS1_SHA256;
use rsa::RsaPrivateKey;
use rsa::traits::{PrivateKeyParts as _, PublicKeyParts as _};
use russh::client::Handle;
use russh::keys::agent::AgentIdentity;
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg, PublicKey, ssh_key};
use ssh_key::private::{KeypairData, RsaKeypair};

use super::refusing::Refusing;

/// A private key. Clones share it. Messages never contain its text.
#[derive(Clone, derive_more::Debug)]
#[debug("PrivateKey")]
pub struct PrivateKey(Signing);

#[derive(Clone)]
enum Signing {
    /// A key that russh signs with.
    Russh(Arc<ssh_key::PrivateKey>),
    /// A key that ring signs with.
    Rsa(PublicKey, Arc<KeyPair>),
}

/// The reason why a text is not a usable private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It has a passphrase.
    #[error("the private key has a passphrase; remove it (ssh-keygen -p)")]
    Passphrase,
    /// It is of a type that is not supported.
    #[error("the private key has an unsupported type; use a key from `ssh-keygen -t ed25519`")]
    Type,
    /// It is an RSA key of an unsupported length, or its numbers are inconsistent.
    #[error(
        "the private key is an RSA key that cannot be used: use a key of 2048 to 4096 bits, or a key from \
         `ssh-keygen -t ed25519`"
    )]
    Rsa,
    /// It is not a private key.
    #[error(
        "this is not a private key in the format of OpenSSH, which begins with `-----BEGIN OPENSSH PRIVATE KEY-----`; \
         `ssh-keygen -p -N '' -f FILE` converts a key to it"
    )]
    Unreadable,
}

impl PrivateKey {
    /// Reads a key in the format of OpenSSH.
    pub fn parse(text: &[u8]) -> Result<Self, KeyError> {
        let key = ssh_key::PrivateKey::from_openssh(text).map_err(|_| KeyError::Unreadable)?;
        if key.is_encrypted() {
            return Err(KeyError::Passphrase);
        }
        match key.key_data() {
            KeypairData::Ed25519(_) | KeypairData::Ecdsa(_) => Ok(Self(Signing::Russh(Arc::new(key)))),
            KeypairData::Rsa(pair) => {
                let pair = Arc::new(rsa_pair(pair).ok_or(KeyError::Rsa)?);
                Ok(Self(Signing::Rsa(key.public_key().clone(), pair)))
            }
            _ => Err(KeyError::Type),
        }
    }

    /// Logs in as `user`. Returns whether the machine accepts the key.
    pub async fn log_in(&self, session: &mut Handle<Refusing>, user: &str) -> Result<bool, russh::Error> {
        let login = match &self.0 {
            Signing::Russh(key) => {
                let key = PrivateKeyWithHashAlg::new(Arc::clone(key), None);
                session.authenticate_publickey(user, key).await?
            }
            // Every server that accepts RSA keys without SHA-1 accepts SHA-256.
            Signing::Rsa(public, pair) => {
                let (public, hash, mut signer) = (public.clone(), Some(HashAlg::Sha256), RsaSigner(pair));
                let login = session.authenticate_publickey_with(user, public, hash, &mut signer).await;
                login.map_err(|NotSigned| russh::Error::SendError)?
            }
        };
        Ok(login.success())
    }
}

/// Converts an RSA key for ring; `None` if ring does not support the key.
fn rsa_pair(pair: &RsaKeypair) -> Option<KeyPair> {
    let key = RsaPrivateKey::try_from(pair).ok()?;
    let bytes = |number: &rsa::BoxedUint| number.to_be_bytes_trimmed_vartime();
    let [p, q] = key.primes() else { return None };
    let components = KeyPairComponents {
        public_key: PublicKeyComponents { n: key.n_bytes(), e: key.e_bytes() },
        d: bytes(key.d()),
        p: bytes(p),
        q: bytes(q),
        dP: bytes(key.dp()?),
        dQ: bytes(key.dq()?),
        qInv: pair.private().iqmp().as_positive_bytes()?.into(),
    };
    KeyPair::from_components(&components).ok()
}

/// The error that nothing was signed, or that the receiver of the signature no longer exists.
struct NotSigned;

impl From<russh::SendError> for NotSigned {
    fn from(_: russh::SendError) -> Self {
        Self
    }
}

/// Signs a login with an RSA key.
struct RsaSigner<'a>(&'a KeyPair);

impl russh::Signer for RsaSigner<'_> {
    type Error = NotSigned;

    /// Signs the data and appends the signature as RFC 8332 requires.
    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        mut data: Vec<u8>,
    ) -> Result<Vec<u8>, Self::Error> {
        let mut signature = vec![0; self.0.public().modulus_len()];
        let signed = self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &data, &mut signature);
        signed.map_err(|_| NotSigned)?;
        let algorithm = Algorithm::Rsa { hash };
        let whole = [text(algorithm.as_str().as_bytes()), text(&signature)].concat();
        data.extend(text(&whole));
        Ok(data)
    }
}

/// Encodes a text for SSH: with its length before it.
fn text(content: &[u8]) -> Vec<u8> {
    // Signatures are shorter than 4 GiB.
    let length = u32::try_from(content.len()).unwrap_or_default();
    [&length.to_be_bytes(), content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unusable_key_has_its_own_error() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, arguments: &[&str]| {
            let file = folder.path().join(name);
            let mut command = std::process::Command::new("ssh-keygen");
            command.args(["-q", "-f"]).arg(&file).args(arguments);
            assert!(command.status().unwrap().success());
            std::fs::read(file).unwrap()
        };
        let parse = |text: &[u8]| PrivateKey::parse(text).map(|key| format!("{key:?}"));
        let key = made("key", &["-N", "", "-t", "ed25519"]);
        assert_eq!(parse(&key).as_deref(), Ok("PrivateKey"), "messages never contain the key");
        assert!(parse(&made("ecdsa", &["-N", "", "-t", "ecdsa"])).is_ok());
        for bits in ["2048", "3072", "4096"] {
            assert!(parse(&made(bits, &["-N", "", "-t", "rsa", "-b", bits])).is_ok(), "{bits}");
        }
        assert_eq!(parse(&made("short", &["-N", "", "-t", "rsa", "-b", "1024"])), Err(KeyError::Rsa));
        assert_eq!(parse(&made("locked", &["-N", "secret", "-t", "ed25519"])), Err(KeyError::Passphrase));
        assert_eq!(parse(&made("pem", &["-N", "", "-t", "rsa", "-m", "PEM"])), Err(KeyError::Unreadable));
        assert_eq!(parse(&key[..key.len() / 2]), Err(KeyError::Unreadable));
        assert_eq!(parse(b""), Err(KeyError::Unreadable));
        assert_eq!(parse(b"\xff\xfe"), Err(KeyError::Unreadable));
    }
}
