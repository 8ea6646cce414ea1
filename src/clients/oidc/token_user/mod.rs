//! The user of an ID token.

use serde::Deserialize;

use super::keys::Signed;
use crate::api::names::GROUP_PREFIX;

/// The user of an ID token, as an API server that is configured as in `docs/platform.md` reads it.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenUser {
    /// The user name: the claim `preferred_username`.
    pub name: String,
    /// The groups: the claim `groups` with the prefix `kubernetes:`, which keeps them apart from the API server's own
    /// groups.
    pub groups: Vec<String>,
}

/// The claims.
#[derive(Deserialize)]
struct Claims {
    preferred_username: String,
    #[serde(default)]
    groups: Vec<String>,
}

impl TokenUser {
    /// The user of a token; `None` if the token names no user.
    pub fn of(token: &Signed<'_>) -> Option<Self> {
        let Claims { preferred_username: name, groups } = serde_json::from_slice(&token.payload()?).ok()?;
        let prefixed = |group: String| {
            if group.starts_with(GROUP_PREFIX) { group } else { format!("{GROUP_PREFIX}{group}") }
        };
        Some(Self { name, groups: groups.into_iter().map(prefixed).collect() })
    }
}

#[cfg(test)]
mod tests;
