//! The certificate that the API server meets: our own authority's, or one from a folder.

pub mod authority;
pub mod bundle;
pub mod folder;
pub mod resolver;
pub mod rotator;
pub mod validity;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A part of it is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A part of it is not what it should be.
    #[error("{what} cannot be read: {reason}")]
    Unreadable {
        /// The part.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The key is another certificate's.
    #[error("the key does not belong to the certificate")]
    Mismatch,
    /// No client would accept a certificate for these names.
    #[error("no certificate can be for {0}")]
    Names(String),
    /// One that could not be made.
    #[error("a certificate cannot be made: {0}")]
    Unmade(#[from] rcgen::Error),
}

impl CertificateError {
    fn unreadable(what: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Unreadable { what, reason: reason.to_string() }
    }
}
