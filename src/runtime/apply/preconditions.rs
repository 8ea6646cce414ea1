//! The preconditions of deletions. They are checked against the API server immediately before, because stores may lag
//! behind: a watch can be silent although objects change.

use super::Engine;
use crate::runtime::error::ApiError;
use crate::runtime::pieces::Piece;
use crate::runtime::plan::Precondition;
use crate::runtime::store::Likeness;

/// The origin of changes that a check finds, see [`crate::runtime::store::Change::origin`]. No loop has this name.
const LIVE: &str = "check";

impl Engine {
    /// Checks these preconditions against the API server, one after the other.
    ///
    /// # Errors
    /// As for [`Engine::check`].
    pub async fn check_all(&self, preconditions: &[Precondition]) -> Result<(), ApiError> {
        for precondition in preconditions {
            self.check(precondition).await?;
        }
        Ok(())
    }

    /// Compares the store with the API server, and updates the store with any difference.
    ///
    /// # Errors
    /// [`ApiError::Stale`] if something differs, or the error of the request.
    pub async fn check(&self, precondition: &Precondition) -> Result<(), ApiError> {
        let kind = precondition.kind();
        let store = self.stores.get(kind)?;
        let (path, query, likeness) = match precondition {
            Precondition::Object(_, key) => {
                key.check()?;
                let query = format!("fieldSelector=metadata.name={}", key.name);
                (kind.path(&key.namespace), query, Likeness::Spec)
            }
            Precondition::Within(_, namespace) | Precondition::NoneWithin(_, namespace) => {
                (kind.path(namespace), String::new(), Likeness::Existence)
            }
            Precondition::Every(_) => {
                let (path, query) = self.stores.list(kind);
                (path, query, Likeness::Metadata)
            }
        };
        let (mut is_found, mut is_alike) = (false, true);
        let compare = |piece: Piece<'_>| match piece {
            Piece::Whole(item) => {
                is_found = true;
                is_alike &= store.confirm(item, likeness, LIVE)?;
                Ok(())
            }
            Piece::Begin(begin) => {
                let key = Piece::key(begin);
                Err(ApiError::transient(format!("{key} in the response to {path} is too large to read")))
            }
        };
        self.writer.list(&path, &query, compare).await?;
        let is_met = match precondition {
            Precondition::Object(..) => is_alike && is_found,
            Precondition::NoneWithin(..) => !is_found,
            Precondition::Within(..) | Precondition::Every(_) => is_alike,
        };
        if is_met {
            return Ok(());
        }
        let what = kind.kind;
        Err(ApiError::Stale(format!(
            "cached {what} objects were stale: they are read again before a deletion"
        )))
    }
}
