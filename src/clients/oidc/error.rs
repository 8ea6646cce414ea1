//! Errors of the provider.

use serde::Deserialize;

/// The result of a request to the provider.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The session, or the code of a login, has expired.
    #[error("{0}")]
    Ended(String),
    /// The provider is not configured for this client, or is a different one. The sentence names the settings to
    /// check.
    #[error("{0}")]
    Refused(String),
    /// The provider does not respond, or is temporarily unavailable.
    #[error("{0}")]
    Away(String),
}

/// An error response of the token endpoint (RFC 6749, 5.2).
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    pub error: String,
}
