//! The certificate that a server shows: from a folder that is read again when it changes, or from somebody who makes it.

pub mod folder;
pub mod pem;
pub mod resolver;
pub mod validity;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file, or a key of the Secret, is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A file, or a key of the Secret, does not hold what it should.
    #[error("{what} cannot be read: {reason}")]
    Unreadable {
        /// The file or the key.
        what: &'static str,
        /// Why it cannot be read.
        reason: String,
    },
    /// The key belongs to another certificate.
    #[error("the key does not belong to the certificate")]
    Mismatch,
    /// Clients do not accept the certificate for these names, although it was made for them.
    #[error("no certificate can be for {0}")]
    Names(String),
    /// A key or a certificate could not be made.
    #[error("a certificate cannot be made: {0}")]
    Unmade(#[from] rcgen::Error),
}

impl CertificateError {
    /// An error about `what`, which cannot be read for a reason.
    pub fn unreadable(what: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Unreadable { what, reason: reason.to_string() }
    }
}
