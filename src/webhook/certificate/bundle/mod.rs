//! The certificates that the replicas share through a Secret, and their renewal.
//!
//! A new authority is cross-signed by the previous one. A client that trusts only the old authority accepts
//! certificates that the new one has signed, and a client that has received the new one trusts both. API servers and
//! replicas may therefore receive a renewal in any order, and no request fails meanwhile. See
//! `docs/decisions/0005-a-new-authority-is-cross-signed-by-the-old.md`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use pem::Pem;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;

use super::authority::Authority;
use super::{Certificate, Data, Result};
use crate::runtime::certificate::CertificateError;
use crate::runtime::certificate::pem::{CERTIFICATE, KEY, certificates, certified, key, provider};
use crate::runtime::certificate::validity::Validity;
use crate::runtime::plan::to_value;

/// The key of the Secret with the authorities that clients must trust.
pub const CA_CERTIFICATE: &str = "ca.crt";
/// The key of the Secret with the private key of the newest authority.
pub const CA_KEY: &str = "ca.key";
/// How long before its expiry a serving certificate is renewed.
const SERVING_MARGIN: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How long before its expiry an authority is renewed. This is longer than the validity of the certificates that it
/// signs.
const AUTHORITY_MARGIN: SignedDuration = SignedDuration::from_hours(2 * 365 * 24);

/// The trusted authorities, and a serving certificate signed by the newest of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The authorities that clients must trust, the newest first.
    pub authorities: Vec<Certificate>,
    /// The private key of the newest authority.
    authority_key: PrivateKeyDer<'static>,
    /// The serving certificate, followed by the cross-signed certificates of the newest authority.
    chain: Vec<Certificate>,
    /// The private key of the serving certificate.
    key: PrivateKeyDer<'static>,
}

impl Bundle {
    /// Creates an authority, and a serving certificate for these host names and IP addresses.
    ///
    /// # Errors
    /// When a certificate cannot contain one of the names, or the system cannot provide random numbers.
    pub fn create(names: &[String], now: Timestamp) -> Result<Self> {
        Self::issue(&Authority::create(now)?, names, now)
    }

    /// Creates a serving certificate for these names, signed by an existing authority.
    ///
    /// # Errors
    /// As [`Bundle::create`].
    pub fn issue(authority: &Authority, names: &[String], now: Timestamp) -> Result<Self> {
        Self::signed(authority, Vec::new(), Vec::new(), names, now)
    }

    fn signed(
        authority: &Authority,
        older: Vec<Certificate>,
        cross_signed: Vec<Certificate>,
        names: &[String],
        now: Timestamp,
    ) -> Result<Self> {
        let (serving, key) = authority.sign(names, now)?;
        Ok(Self {
            authorities: [vec![authority.certificate.clone()], older].concat(),
            authority_key: authority.key(),
            chain: [vec![serving], cross_signed].concat(),
            key,
        })
    }

    /// Reads the `data` of the Secret, whose values are base64.
    ///
    /// # Errors
    /// When a key is missing or its value is invalid.
    pub fn read(data: &Data) -> Result<Self> {
        let text = |name: &'static str| -> Result<Vec<u8>> {
            let encoded = data.get(name).ok_or(CertificateError::Missing(name))?;
            let decoded: Result<ByteString, _> = serde_json::from_value(encoded.as_str().into());
            decoded.map(|bytes| bytes.0).map_err(|error| CertificateError::unreadable(name, error))
        };
        Ok(Self {
            authorities: certificates(CA_CERTIFICATE, &text(CA_CERTIFICATE)?)?,
            authority_key: key(CA_KEY, &text(CA_KEY)?)?,
            chain: certificates(CERTIFICATE, &text(CERTIFICATE)?)?,
            key: key(KEY, &text(KEY)?)?,
        })
    }

    /// Returns the `data` of the Secret, with values in base64.
    pub fn data(&self) -> Data {
        let encoded = |text: String| {
            to_value(&ByteString(text.into_bytes())).as_str().map(str::to_owned).unwrap_or_default()
        };
        let private = |key: &PrivateKeyDer<'_>| pem::encode(&Pem::new("PRIVATE KEY", key.secret_der()));
        BTreeMap::from([
            (CA_CERTIFICATE.to_owned(), encoded(encode(&self.authorities))),
            (CA_KEY.to_owned(), encoded(private(&self.authority_key))),
            (CERTIFICATE.to_owned(), encoded(encode(&self.chain))),
            (KEY.to_owned(), encoded(private(&self.key))),
        ])
    }

    /// The certificate chain with its key, as required by the TLS server.
    ///
    /// # Errors
    /// When the key does not belong to the certificate.
    pub fn certified(&self) -> Result<CertifiedKey> {
        certified(self.chain.clone(), self.key.clone_key())
    }

    /// Whether a client that trusts `authorities` accepts the serving certificate for all `names` at the
    /// time `at`.
    pub fn is_accepted(&self, authorities: &[Certificate], names: &[String], at: Timestamp) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.iter().cloned());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        let (Ok(verifier), Some((serving, cross_signed))) = (verifier, self.chain.split_first()) else {
            return false;
        };
        let at = UnixTime::since_unix_epoch(Duration::from_secs(at.as_second().try_into().unwrap_or(0)));
        names.iter().all(|name| {
            let name = ServerName::try_from(name.as_str());
            name.is_ok_and(|name| verifier.verify_server_cert(serving, cross_signed, &name, &[], at).is_ok())
        })
    }

    /// The newest authority with its key.
    fn authority(&self) -> Result<Authority> {
        let newest = self.authorities.first().ok_or(CertificateError::Missing(CA_CERTIFICATE))?;
        Authority::load(newest.clone(), &self.authority_key)
    }

    /// Whether clients that trust only the newest authority accept the serving certificate for these names, now and
    /// until its renewal is due.
    fn serves(&self, names: &[String], now: Timestamp) -> bool {
        let newest = self.authorities.get(..1).unwrap_or_default();
        let later = now.saturating_add(SERVING_MARGIN).unwrap_or(now);
        self.certified().is_ok()
            && self.is_accepted(newest, names, now)
            && self.is_accepted(newest, names, later)
    }
}

/// Returns the bundle that replaces `current`, or `None` if no renewal is due. The result depends only on the
/// arguments, except for new keys, which are random.
///
/// # Errors
/// When a certificate cannot contain one of the names, or the system cannot provide random numbers.
pub fn renewed(current: Option<&Bundle>, names: &[String], now: Timestamp) -> Result<Option<Bundle>> {
    let Some(current) = current else {
        return usable(Bundle::create(names, now)?, names, now).map(Some);
    };
    let ends_after = |certificate: &CertificateDer<'_>, time: Timestamp| {
        Validity::of(certificate).is_some_and(|validity| validity.end > time)
    };
    let valid: Vec<_> = current.authorities.iter().filter(|each| ends_after(each, now)).cloned().collect();
    let later = now.saturating_add(AUTHORITY_MARGIN).unwrap_or(now);
    let lasts = current.authorities.first().is_some_and(|newest| ends_after(newest, later));
    let authority = current.authority();
    let next = match authority {
        Ok(authority) if lasts => {
            if current.serves(names, now) && valid.len() == current.authorities.len() {
                return Ok(None);
            }
            let cross_signed = if valid.len() > 1 { current.chain.get(1..) } else { None };
            let older = valid.get(1..).unwrap_or_default().to_vec();
            Bundle::signed(&authority, older, cross_signed.unwrap_or_default().to_vec(), names, now)?
        }
        Ok(authority) if !valid.is_empty() => {
            let successor = Authority::create(now)?;
            let cross_signed = authority.cross_sign(&successor, now)?;
            Bundle::signed(&successor, valid, vec![cross_signed], names, now)?
        }
        _ => Bundle::create(names, now)?,
    };
    // If the authority's key does not match its certificate, certificates that it signs are not accepted: create a new
    // bundle.
    let next = if next.serves(names, now) { next } else { Bundle::create(names, now)? };
    usable(next, names, now).map(Some)
}

/// Returns the bundle if clients accept it for these names. Otherwise it would be renewed repeatedly.
fn usable(bundle: Bundle, names: &[String], now: Timestamp) -> Result<Bundle> {
    if bundle.serves(names, now) { Ok(bundle) } else { Err(CertificateError::Names(names.join(", "))) }
}

/// The certificates in PEM.
fn encode(certificates: &[CertificateDer<'_>]) -> String {
    certificates.iter().map(|each| pem::encode(&Pem::new("CERTIFICATE", each.as_ref()))).collect()
}

#[cfg(test)]
mod tests;
