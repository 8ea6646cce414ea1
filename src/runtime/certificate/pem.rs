//! Certificates and keys in PEM, as stored in a Secret of type `kubernetes.io/tls` or a folder.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::CertificateError;

/// The file, or key of a Secret, that contains the serving certificate, followed by the CA certificates.
pub const CERTIFICATE: &str = "tls.crt";
/// The file, or key of a Secret, that contains the private key of the serving certificate.
pub const KEY: &str = "tls.key";

/// The cryptography provider for all TLS connections of the daemon.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns a certificate chain with its key, for a TLS server.
///
/// # Errors
/// When the chain is empty, or the key does not match its first certificate.
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

/// Parses the certificates of a PEM file, which must contain at least one. `what` names the file in errors.
pub fn certificates(
    what: &'static str,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let all = all.map_err(|error| CertificateError::unreadable(what, error))?;
    if all.is_empty() {
        Err(CertificateError::Absent { what, kind: "certificate", label: "CERTIFICATE" })
    } else {
        Ok(all)
    }
}

/// Parses the private key of a PEM file. `what` names the file in errors.
pub fn key(what: &'static str, text: &[u8]) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            CertificateError::Absent { what, kind: "private key", label: "PRIVATE KEY" }
        }
        other => CertificateError::unreadable(what, other),
    })
}
