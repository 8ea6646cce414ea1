//! Lists that are read in between, past the stores.

use std::time::{Duration, Instant};

use http::header::ACCEPT;
use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::time::timeout;
use tower::{BoxError, ServiceExt};

use super::{LATE, REQUEST_TIMEOUT, Sender, Writer, refusal};
use crate::runtime::answer::{Answer, LONGEST_ANSWER, ListMetadata};
use crate::runtime::error::{ApiError, with_sources};
use crate::runtime::pieces::Piece;

/// Objects in a page of a list that is given on object by object.
const PAGE: usize = 250;

/// A list that is read in pages.
pub struct Listing<'a> {
    /// The path of the collection.
    pub path: &'a str,
    /// The parameters that select its objects, encoded.
    pub query: &'a str,
    /// Objects per page.
    pub page: usize,
    /// The headers by which the API server knows the user who asks; none if it is the daemon.
    pub user: &'a HeaderMap,
    /// How long a page may take.
    pub limit: Duration,
}

impl Writer {
    /// Gives all objects of a list to `each`, one after the other, while the answers arrive. `query` selects them.
    ///
    /// # Errors
    /// When the API server refuses a page, its answer is no list, or `each` fails.
    pub async fn list(
        &self,
        path: &str,
        query: &str,
        mut each: impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send,
    ) -> Result<(), ApiError> {
        let listing = Listing { path, query, page: PAGE, user: &HeaderMap::new(), limit: LONGEST_ANSWER };
        self.sender.list(&listing, &mut each).await
    }
}

impl Sender {
    /// Gives all objects of a list to `each`, as [`Writer::list`].
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
            let none = || ApiError::transient(format!("the answer to {path} is no list, or breaks off"));
            let token = page.ok_or_else(none)?.next;
            if token.is_empty() {
                return Ok(());
            }
            next = format!("&continue={token}");
        }
    }

    /// Reads a page. Returns what is beside its items; `None` if the answer is no list.
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
        let answer = timeout(REQUEST_TIMEOUT, self.service.clone().oneshot(request));
        let answer = answer.await.map_err(late)??;
        *code = Some(answer.status().as_u16());
        if !answer.status().is_success() {
            let refused = timeout(REQUEST_TIMEOUT, self.read(answer)).await.map_err(late)??;
            return Err(refusal(&refused).into());
        }
        let page = Answer::new(answer.into_body()).page(|piece| each(piece).map_err(BoxError::from));
        Ok(page.await?.map(|(metadata, _)| metadata))
    }
}
