//! Reads all objects of a selection from the API server, bypassing the watch.

use super::Engine;
use crate::runtime::error::{ApiError, unreadable};
use crate::runtime::pieces::Piece;
use crate::runtime::plan::KindInfo;
use crate::runtime::watch::Selection;

impl Engine {
    /// Reads all objects of a selection, and updates the store. The store is then as recent as the API server, even if
    /// the watch lags behind.
    ///
    /// # Errors
    /// When the API server rejects a page, or its response is not a list.
    pub async fn read_all(&self, kind: KindInfo, selection: &Selection) -> Result<(), ApiError> {
        let store = self.stores.get(kind)?;
        store.begin_list();
        let take = |piece: Piece<'_>| match piece {
            Piece::Whole(item) => store.take_listed(item).map_err(|error| unreadable(&error)),
            Piece::Begin(begin) => {
                store.keep_listed(&Piece::key(begin));
                Ok(())
            }
        };
        self.writer.list(&kind.path(selection.namespace()), &selection.query(), take).await?;
        store.end_list();
        Ok(())
    }
}
