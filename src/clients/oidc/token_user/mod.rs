//! Whom an ID token is of.

use serde::Deserialize;

use super::keys::Signed;
use crate::api::names::GROUP_PREFIX;

/// The user of an ID token, as an API server takes it that is set up as `docs/platform.md` says.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenUser {
    /// The user name: the claim `preferred_username`.
    pub name: String,
    /// The groups: those of the claim `groups`, which begin with `kubernetes:`, so that none is one of the API server's own.
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
    /// That of a token; `None` if it names none.
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
