//! The certificate that a server presents: from a folder that is watched for changes, or from a caller that generates
//! it.

pub mod folder;
pub mod pem;
pub mod resolver;
pub mod validity;

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file, or a key of the Secret, is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The content of a file, or of a key of the Secret, is invalid.
    #[error("{what} cannot be read: {reason}")]
    Unreadable {
        /// The file or the key.
        what: &'static str,
        /// The parse error.
        reason: String,
    },
    /// The content of a file, or of a key of the Secret, has no section of this kind.
    #[error("{what} has no {kind} in PEM, which begins with -----BEGIN {label}-----")]
    Absent {
        /// The file or the key.
        what: &'static str,
        /// The kind of the section, in words.
        kind: &'static str,
        /// The label of the section.
        label: &'static str,
    },
    /// The key does not match the certificate.
    #[error("the key does not match the certificate")]
    Mismatch,
    /// Clients would reject a certificate for these names.
    #[error("a certificate for {0} would be rejected by clients")]
    Names(String),
    /// A key or a certificate could not be generated.
    #[error("a certificate cannot be generated: {0}")]
    Unmade(#[from] rcgen::Error),
}

impl CertificateError {
    /// An error about the content of `what`.
    pub fn unreadable(what: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Unreadable { what, reason: reason.to_string() }
    }
}
