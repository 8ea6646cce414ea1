//! The input of the plan and the report of an image list.

use std::sync::Arc;

use derive_more::{AsMut, AsRef};
use jiff::Timestamp;

use crate::api::condition::{Condition, STALE};
use crate::api::image_list::ImageList;
use crate::clients::registry::{Listing, QueryError};
use crate::controllers::shared::queries::LastQuery;

/// Everything that plan and report depend on, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The list; without uid if it does not exist.
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
    /// How many queries in a row have failed, with this one.
    pub failures: u32,
    /// How many queries in a row have found a registry that offers nothing, with this one.
    pub empty: u32,
    /// When the last query before this one ended whose images are those of the list.
    pub last_success: Option<Timestamp>,
    /// The time of its end, and what the registry offers; `None` while it is under way.
    pub result: Option<(Timestamp, Result<Arc<Listing>, QueryError>)>,
    /// Whether a reconcile has acted upon the result: before that there is no other query, however slow the registry is.
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

    /// The condition [`STALE`] of the list.
    pub fn stored_condition(&self) -> Option<&Condition> {
        self.list.status.conditions.iter().find(|condition| condition.type_ == STALE)
    }
}
