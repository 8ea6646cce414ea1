//! Generates key pairs as `ssh-keygen` does, without a passphrase. An RSA key takes up to some seconds, so callers use
//! a separate thread.

use std::collections::BTreeMap;

use ssh_key::getrandom::SysRng;
use ssh_key::private::{KeypairData, RsaKeypair};
use ssh_key::rand_core::UnwrapErr;
use ssh_key::{Algorithm, EcdsaCurve, LineEnding, PrivateKey};

/// The host keys of the SSH server: the keys of their Secret, and the names of their files. Every client accepts the
/// last one, and the server waits for it.
pub const HOST_KEYS: [&str; 3] = ["ssh_host_key_rsa", "ssh_host_key_ecdsa", "ssh_host_key_ed25519"];
/// The private key of the web terminal in its Secret.
pub const WEB_SSH_KEY: &str = "webssh-bastion-master";
/// The public key of the web terminal, which virtual machines accept.
pub const WEB_SSH_PUBLIC_KEY: &str = "webssh-bastion-master.pub";

/// The length of RSA keys, as in `ssh-keygen`.
const RSA_BITS: usize = 3072;

/// The content of a Secret.
pub type KeyPairs = BTreeMap<String, String>;

/// New host keys of each type, as private keys in OpenSSH format.
///
/// # Errors
/// If the library cannot generate or write a key.
pub fn host_keys() -> Result<KeyPairs, ssh_key::Error> {
    let mut random = UnwrapErr(SysRng);
    let rsa = KeypairData::from(RsaKeypair::random(&mut random, RSA_BITS)?);
    let [rsa_name, ecdsa_name, ed25519_name] = HOST_KEYS;
    [
        (rsa_name, PrivateKey::new(rsa, "")?),
        (ecdsa_name, PrivateKey::random(&mut random, Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 })?),
        (ed25519_name, PrivateKey::random(&mut random, Algorithm::Ed25519)?),
    ]
    .into_iter()
    .map(|(name, key)| Ok((name.to_owned(), key.to_openssh(LineEnding::LF)?.to_string())))
    .collect()
}

/// A new key pair for the web terminal.
///
/// # Errors
/// If the library cannot generate or write a key.
pub fn web_ssh_key() -> Result<KeyPairs, ssh_key::Error> {
    let mut key = PrivateKey::random(&mut UnwrapErr(SysRng), Algorithm::Ed25519)?;
    key.set_comment("webssh-bastion-master-key");
    Ok(BTreeMap::from([
        (WEB_SSH_KEY.to_owned(), key.to_openssh(LineEnding::LF)?.to_string()),
        (WEB_SSH_PUBLIC_KEY.to_owned(), key.public_key().to_openssh()? + "\n"),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_keys_are_of_three_types_and_never_the_same() {
        let (one, other) = (host_keys().expect("keys"), host_keys().expect("keys"));
        for name in HOST_KEYS {
            let key = PrivateKey::from_openssh(&one[name]).expect("readable");
            assert!(!key.is_encrypted());
            assert!(name.ends_with(match key.algorithm() {
                Algorithm::Rsa { .. } => "_rsa",
                Algorithm::Ecdsa { .. } => "_ecdsa",
                Algorithm::Ed25519 => "_ed25519",
                other => panic!("{other}"),
            }));
            if let KeypairData::Rsa(pair) = key.key_data() {
                assert_eq!(pair.key_size(), 3072);
            }
            assert_ne!(one[name], other[name]);
        }
        assert_eq!(one.len(), HOST_KEYS.len());
    }

    #[test]
    fn the_public_key_of_the_web_terminal_matches_its_private_key() {
        let pair = web_ssh_key().expect("a pair");
        let private = PrivateKey::from_openssh(&pair[WEB_SSH_KEY]).expect("readable");
        let public = private.public_key().to_openssh().expect("written");
        assert_eq!(pair[WEB_SSH_PUBLIC_KEY], format!("{public}\n"));
        assert!(public.starts_with("ssh-ed25519 ") && public.ends_with(" webssh-bastion-master-key"));
    }
}
