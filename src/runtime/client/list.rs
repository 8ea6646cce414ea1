//! Lists that are read in between, past the stores.

use std::time::Instant;

use http::header::ACCEPT;
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use tower::{BoxError, ServiceExt};

use super::{REQUEST_TIMEOUT, Sender, Writer, refusal};
use crate::runtime::answer::{Answer, ListMetadata};
use crate::runtime::error::{ApiError, with_sources};
use crate::runtime::pieces::Piece;

/// Objects per page.
const PAGE: usize = 250;

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
        let mut next = String::new();
        loop {
            let page = format!("{path}?limit={PAGE}&{query}{next}");
            let page = self.sender.page(page.trim_end_matches('&'), &mut each).await?;
            let none = || ApiError::transient(format!("the answer to {path} is no list, or breaks off"));
            let token = page.ok_or_else(none)?.next;
            if token.is_empty() {
                return Ok(());
            }
            next = format!("&continue={token}");
        }
    }
}

impl Sender {
    /// Reads a page. Returns what is beside its items; `None` if the answer is no list.
    async fn page(
        &self,
        path: &str,
        each: &mut (impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send),
    ) -> Result<Option<ListMetadata>, ApiError> {
        let begin = Instant::now();
        let mut code = None;
        let page = self.read_page(path, &mut code, each).await;
        self.metrics.count(&Method::GET, code, begin.elapsed());
        page.map_err(|error| match error.downcast() {
            Ok(known) => *known,
            Err(error) => ApiError::transient(with_sources(&*error)),
        })
    }

    async fn read_page(
        &self,
        path: &str,
        code: &mut Option<u16>,
        each: &mut (impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send),
    ) -> Result<Option<ListMetadata>, BoxError> {
        let request = Request::get(path).header(ACCEPT, "application/json").body(Full::new(Bytes::new()))?;
        let late = |_| "the API server did not answer in time";
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.service.clone().oneshot(request));
        let answer = answer.await.map_err(late)??;
        *code = Some(answer.status().as_u16());
        if !answer.status().is_success() {
            let refused = tokio::time::timeout(REQUEST_TIMEOUT, self.read(answer)).await.map_err(late)??;
            return Err(refusal(&refused).into());
        }
        let page = Answer::new(answer.into_body()).page(|piece| each(piece).map_err(BoxError::from));
        Ok(page.await?.map(|(metadata, _)| metadata))
    }
}
