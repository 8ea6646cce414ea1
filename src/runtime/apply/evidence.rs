//! What deletions are founded on. It is read from the API server right before, because stores may be late: a watch can be
//! silent although objects change.

use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Engine;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::plan::Evidence;
use crate::runtime::store::{AnyStore, Likeness};

/// Objects per page.
const PAGE: usize = 250;
/// The origin of changes that a check has found, see [`crate::runtime::store::Change::origin`]: no loop has this name.
const LIVE: &str = "check";

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    /// An answer without them is no list.
    items: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    metadata: PageMetadata,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    /// Where the next page begins; empty on the last.
    #[serde(rename = "continue", default)]
    next: String,
}

impl Engine {
    /// Compares the store with the API server. The store takes what it had not seen.
    ///
    /// # Errors
    /// [`ApiError::Stale`] if something differs, or the error of the request.
    pub async fn check(&self, evidence: &Evidence) -> Result<(), ApiError> {
        let kind = evidence.kind();
        let store = self.stores.get(kind)?;
        let (path, query, likeness) = match evidence {
            Evidence::Object(_, key) => {
                super::check_names(key)?;
                let query = format!("fieldSelector=metadata.name={}", key.name);
                (kind.path(&key.namespace), query, Likeness::Spec)
            }
            Evidence::Within(_, namespace) => (kind.path(namespace), String::new(), Likeness::Existence),
            Evidence::Every(_) => {
                let (path, query) = self.stores.list(kind);
                (path, query, Likeness::Metadata)
            }
        };
        let (found, is_alike) = self.compare(&**store, &path, &query, likeness).await?;
        if is_alike && (found > 0 || !matches!(evidence, Evidence::Object(..))) {
            return Ok(());
        }
        let what = kind.kind;
        Err(ApiError::Stale(format!(
            "what is known of {what} objects was old: it is read again before a deletion"
        )))
    }

    /// The number of objects that the API server lists, and whether the store has each of them.
    async fn compare(
        &self,
        store: &dyn AnyStore,
        path: &str,
        query: &str,
        likeness: Likeness,
    ) -> Result<(usize, bool), ApiError> {
        let (mut found, mut is_alike, mut next) = (0, true, String::new());
        loop {
            let page = format!("{path}?limit={PAGE}&{query}{next}");
            let answer = self.send(Method::GET, page.trim_end_matches('&'), None).await?;
            let Page { items, metadata } = decoded(&answer)?;
            let items =
                items.ok_or_else(|| ApiError::transient(format!("the answer to {path} is no list")))?;
            found += items.len();
            for item in &items {
                is_alike &= store.confirm(item.get().as_bytes(), likeness, LIVE)?;
            }
            if metadata.next.is_empty() {
                return Ok((found, is_alike));
            }
            next = format!("&continue={}", metadata.next);
        }
    }
}
