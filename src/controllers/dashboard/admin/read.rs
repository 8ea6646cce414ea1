//! The reads that the pages of administrators share.

use futures::join;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::student::Known;
use crate::controllers::dashboard::student::read::{Own, Reads};
use crate::runtime::client::Page;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// A part of a page, or the reason why it could not be read.
pub type Part<T> = Result<T, String>;

/// The maximum number of objects that are counted one by one.
const MOST_COUNTED: usize = 500;

/// A number of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The number of objects that were counted.
    pub count: u64,
    /// Whether there are more.
    pub is_more: bool,
}

/// Returns a part of a page. A refusal concerns only the part; an outage concerns the page.
pub fn part<T>(read: Result<T, ApiError>) -> Result<Part<T>, ApiError> {
    match read {
        Ok(found) => Ok(Ok(found)),
        Err(error) if error.is_away() => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}

impl Reads<'_> {
    /// Reads the Tenant of the user, who may have none, and the rights in the namespace of the installation.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn administrator(&self, namespace: &str) -> Result<Own, ApiError> {
        let (tenant, rules) = join!(self.tenant(), self.rules(namespace));
        let ((tenant, without_tenant), rules) = (tenant?, rules?);
        let known = Known::new(tenant, Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let topics = vec![Topic::Tenant(self.user.name.clone()), Topic::Workspaces];
        Ok(Own { known, without_tenant, rules, topics })
    }

    /// Counts the objects of a kind in the whole cluster. The API server states the number.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn count_all(&self, kind: KindInfo) -> Result<Count, ApiError> {
        let page = self.one_page::<IgnoredAny>(kind, "", "", 1).await?;
        let counted = u64::try_from(page.objects.len()).unwrap_or(u64::MAX);
        let is_more = page.remaining == 0 && !page.next.is_empty();
        Ok(Count { count: counted.saturating_add(page.remaining), is_more })
    }

    /// Counts the objects of a kind that a query selects, at most [`MOST_COUNTED`]. The API server does not state the
    /// number of selected objects.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn count_selected(
        &self,
        kind: KindInfo,
        namespace: &str,
        query: &str,
    ) -> Result<Count, ApiError> {
        let page = self.one_page::<IgnoredAny>(kind, namespace, query, MOST_COUNTED).await?;
        let count = u64::try_from(page.objects.len()).unwrap_or(u64::MAX);
        Ok(Count { count, is_more: !page.next.is_empty() })
    }

    /// Reads a page of a list.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn one_page<A: DeserializeOwned + Send>(
        &self,
        kind: KindInfo,
        namespace: &str,
        query: &str,
        most: usize,
    ) -> Result<Page<A>, ApiError> {
        let found = self.users.client.page_as(&self.user.credential, kind, namespace, query, most);
        Box::pin(found).await
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_refusal_concerns_a_part_and_an_outage_the_page() {
        assert_eq!(part::<u8>(Ok(1)), Ok(Ok(1)));
        let refused = part::<u8>(Err(ApiError::Forbidden("nodes".to_owned())));
        assert_eq!(refused, Ok(Err("the API server rejected the request: nodes".to_owned())));
        assert_eq!(part::<u8>(Err(ApiError::Silent)), Err(ApiError::Silent));
    }
}
