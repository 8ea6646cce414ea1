//! A secret text.

use serde::Deserialize;

/// A token or a password. Logs cannot contain it, because only [`Secret::expose`] returns its text.
#[derive(Clone, PartialEq, Eq, Deserialize, derive_more::Debug, derive_more::From)]
#[debug("Secret")]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}
