//! Reads all objects of a selection from the API server, past the watch.

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::Engine;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::plan::KindInfo;
use crate::runtime::watch::Selection;

/// Objects in a page of a list.
const LIMIT: u32 = 250;

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Vec<Value>,
}

/// The part of the metadata of a list that says where it continues.
#[derive(Default, Deserialize)]
struct PageMetadata {
    /// The token of the next page, in base64 for URLs; empty at the end of the list.
    #[serde(default, rename = "continue")]
    next: String,
}

impl Engine {
    /// Reads all objects of a selection, and updates the store with them: it is as recent as the API server is
    /// now, whatever the watch has shown.
    ///
    /// # Errors
    /// When the API server refuses a page, or its answer is no list.
    pub async fn read_all(&self, kind: KindInfo, selection: &Selection) -> Result<(), ApiError> {
        let store = self.stores.get(kind)?;
        let mut next = String::new();
        store.begin_list();
        loop {
            let path =
                format!("{}?limit={LIMIT}&{}{next}", kind.path(selection.namespace()), selection.query());
            let path = path.trim_end_matches('&');
            let page: Page = decoded(&self.send(Method::GET, path, None).await?)?;
            for item in page.items {
                let unread = |error| ApiError::transient(format!("an item cannot be read: {error}"));
                store.list_object(&item).map_err(unread)?;
            }
            if page.metadata.next.is_empty() {
                store.end_list();
                return Ok(());
            }
            next = format!("&continue={}", page.metadata.next);
        }
    }
}
