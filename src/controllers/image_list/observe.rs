//! The input of the plan and the report of an image list.

use std::sync::Arc;

use derive_more::{AsMut, AsRef};
use jiff::Timestamp;

use crate::api::image_list::ImageList;
use crate::clients::registry::{Listing, QueryError};
use crate::controllers::shared::queries::LastQuery;

/// The complete input of plan and report, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The list; without a uid if it does not exist.
    #[as_ref(ImageList)]
    #[as_mut]
    pub list: Arc<ImageList>,
    /// The last query of its registry by this process.
    pub query: Option<Query>,
}

/// A query of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// When it began.
    pub begun: Timestamp,
    /// The number of consecutive failures, including this query.
    pub failures: u32,
    /// The number of consecutive queries that found an empty registry, including this one.
    pub empty: u32,
    /// When the last successful query before this one ended. The images of the list come from that query.
    pub last_success: Option<Timestamp>,
    /// The time of its end, and the result; `None` while it is running.
    pub result: Option<(Timestamp, Result<Arc<Listing>, QueryError>)>,
    /// Whether a reconcile has processed the result. No other query starts before that, however slow the registry is.
    pub is_settled: bool,
}

impl LastQuery for Query {
    type Answer = Result<Arc<Listing>, QueryError>;

    fn end(&mut self, at: Timestamp, result: Self::Answer) {
        let is_empty = result.as_ref().is_ok_and(|listing| listing.images.is_empty());
        let counted = |count: u32, holds: bool| if holds { count.saturating_add(1) } else { 0 };
        self.failures = counted(self.failures, result.is_err());
        self.empty = counted(self.empty, is_empty);
        self.result = Some((at, result));
    }
}

impl Observed {
    /// Whether the list exists.
    pub fn exists(&self) -> bool {
        !self.list.uid().is_empty()
    }
}
