//! Lists that are read directly from the API server, bypassing the stores.

use std::time::{Duration, Instant};

use http::header::ACCEPT;
use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::time::timeout;
use tower::BoxError;

use super::{LATE, REQUEST_TIMEOUT, Sender, Writer, refusal};
use crate::runtime::answer::{Answer, LONGEST_ANSWER, ListMetadata};
use crate::runtime::error::{ApiError, with_sources};
use crate::runtime::pieces::Piece;

/// The number of objects in a page of a list that is processed object by object.
const PAGE: usize = 250;

/// A list that is read in pages.
pub struct Listing<'a> {
    /// The path of the collection.
    pub path: &'a str,
    /// The encoded parameters that select its objects.
    pub query: &'a str,
    /// Objects per page.
    pub page: usize,
    /// The headers that authenticate the user; empty for the daemon itself.
    pub user: &'a HeaderMap,
    /// The time limit for a page.
    pub limit: Duration,
}

impl Writer {
    /// Passes all objects of a list to `each`, one after the other, while the responses arrive. `query` selects them.
    ///
    /// # Errors
    /// When the API server rejects a page, its response is not a list, or `each` fails.
    pub async fn list(
        &self,
        path: &str,
        query: &str,
        mut each: impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send,
    ) -> Result<(), ApiError> {
        let listing = Listing { path, query, page: PAGE, user: &HeaderMap::new(), limit: LONGEST_ANSWER };
        self.sender.list(&listing, &mut each).await
    }

    /// Passes the objects of the first page of a list, at most `page` of them, to `each` while the response arrives.
    ///
    /// # Errors
    /// When the API server rejects the page or does not respond within `limit`, its response is not a list, or `each`
    /// fails.
    pub async fn first_page(
        &self,
        path: &str,
        page: usize,
        limit: Duration,
        mut each: impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send,
    ) -> Result<(), ApiError> {
        let listing = Listing { path, query: "", page, user: &HeaderMap::new(), limit };
        let read = self.sender.page(&format!("{path}?limit={page}"), &listing, &mut each).await?;
        read.map(drop).ok_or_else(|| no_list(path))
    }
}

/// The error for a response that is not a list.
fn no_list(path: &str) -> ApiError {
    ApiError::transient(format!("the response to {path} is not a list, or is truncated"))
}

impl Sender {
    /// Passes all objects of a list to `each`, like [`Writer::list`].
    pub(super) async fn list(
        &self,
        listing: &Listing<'_>,
        each: &mut (impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send),
    ) -> Result<(), ApiError> {
        let Listing { path, query, page: size, .. } = listing;
        let mut next = String::new();
        loop {
            let page = format!("{path}?limit={size}&{query}{next}");
            let page = self.page(page.trim_end_matches('&'), listing, each).await?;
            let token = page.ok_or_else(|| no_list(path))?.next;
            if token.is_empty() {
                return Ok(());
            }
            next = format!("&continue={token}");
        }
    }

    /// Passes the objects of the first page of a list to `each`. Returns the metadata of the page.
    pub(super) async fn first_page(
        &self,
        listing: &Listing<'_>,
        each: &mut (impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send),
    ) -> Result<ListMetadata, ApiError> {
        let Listing { path, query, page: size, .. } = listing;
        let page = format!("{path}?limit={size}&{query}");
        let page = self.page(page.trim_end_matches('&'), listing, each).await?;
        page.ok_or_else(|| no_list(path))
    }

    /// Reads a page. Returns the metadata of the list; `None` if the response is not a list.
    async fn page(
        &self,
        path: &str,
        listing: &Listing<'_>,
        each: &mut (impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send),
    ) -> Result<Option<ListMetadata>, ApiError> {
        let request = Request::get(path).header(ACCEPT, "application/json").body(Full::new(Bytes::new()));
        let mut request = request.map_err(|error| ApiError::Invalid(error.to_string()))?;
        request.headers_mut().extend(listing.user.clone());
        let begin = Instant::now();
        let mut code = None;
        let page = timeout(listing.limit, self.read_page(request, &mut code, each)).await;
        let page = page.unwrap_or_else(|_| Err(LATE.into()));
        self.metrics.count(&Method::GET, code, begin.elapsed());
        page.map_err(|error| match error.downcast() {
            Ok(known) => *known,
            Err(error) => ApiError::transient(with_sources(&*error)),
        })
    }

    async fn read_page(
        &self,
        request: Request<Full<Bytes>>,
        code: &mut Option<u16>,
        each: &mut (impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send),
    ) -> Result<Option<ListMetadata>, BoxError> {
        let late = |_| LATE;
        let answer = timeout(REQUEST_TIMEOUT, self.begin(request)).await.map_err(late)??;
        *code = Some(answer.status().as_u16());
        if !answer.status().is_success() {
            let refused = timeout(REQUEST_TIMEOUT, self.read(answer)).await.map_err(late)??;
            return Err(refusal(&refused).into());
        }
        let page = Answer::new(answer.into_body()).page(|piece| each(piece).map_err(BoxError::from));
        Ok(page.await?.map(|(metadata, _)| metadata))
    }
}
