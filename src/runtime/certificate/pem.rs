//! Certificates and keys in PEM, as a Secret of type `kubernetes.io/tls` or a folder has them.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::CertificateError;

/// The file, or key of a Secret, with the serving certificate, followed by those of its authority.
pub const CERTIFICATE: &str = "tls.crt";
/// The file, or key of a Secret, with the private key of the serving certificate.
pub const KEY: &str = "tls.key";

/// The cryptography provider that all TLS of the daemon uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A certificate chain with its key, as the TLS server needs it.
///
/// # Errors
/// When the chain is empty, or the key does not belong to its first certificate.
pub fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, CertificateError> {
    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::NoCertificatesPresented => CertificateError::Missing(CERTIFICATE),
        rustls::Error::InconsistentKeys(_) => CertificateError::Mismatch,
        other => CertificateError::unreadable(KEY, other),
    })
}

/// Reads the certificates of a PEM file, of which there must be at least one. `what` names the file in
/// errors.
pub fn certificates(
    what: &'static str,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let all = all.map_err(|error| CertificateError::unreadable(what, error))?;
    if all.is_empty() { Err(CertificateError::unreadable(what, "no certificate in PEM")) } else { Ok(all) }
}

/// Reads the private key of a PEM file. `what` names the file in errors.
pub fn key(what: &'static str, text: &[u8]) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| CertificateError::unreadable(what, error))
}
