//! Lists that are read in between, past the stores.

use std::time::Instant;

use http::header::ACCEPT;
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Deserialize;
use tower::{BoxError, ServiceExt};

use super::{Answered, REQUEST_TIMEOUT, Sender, Writer, refusal};
use crate::runtime::answer::Answer;
use crate::runtime::error::{ApiError, decoded, with_sources};
use crate::runtime::pieces::{Items, Piece};

/// Objects per page.
const PAGE: usize = 250;

/// What is read of a list beside its items.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: HeadMetadata,
}

#[derive(Default, Deserialize)]
struct HeadMetadata {
    /// The token of the next page, in base64 for URLs; empty at the end of the list.
    #[serde(default, rename = "continue")]
    next: String,
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
        let mut next = String::new();
        loop {
            let page = format!("{path}?limit={PAGE}&{query}{next}");
            let (head, is_list) = self.sender.page(page.trim_end_matches('&'), &mut each).await?;
            let Head { metadata } = head.as_deref().map_or_else(|| Err(none(path)), decoded)?;
            if !is_list {
                return Err(none(path));
            }
            if metadata.next.is_empty() {
                return Ok(());
            }
            next = format!("&continue={}", metadata.next);
        }
    }
}

fn none(path: &str) -> ApiError {
    ApiError::transient(format!("the answer to {path} is no list, or breaks off"))
}

/// What a page came to.
enum Page {
    Refused(Answered),
    /// What is beside its items, if all of it has come, and whether it has any.
    Read(Option<Vec<u8>>, bool),
}

impl Sender {
    /// Reads a page.
    async fn page(
        &self,
        path: &str,
        each: &mut (impl FnMut(Piece<'_>) -> Result<(), ApiError> + Send),
    ) -> Result<(Option<Vec<u8>>, bool), ApiError> {
        let begin = Instant::now();
        let mut code = None;
        let mut fault = Ok(());
        let answer = self.read_page(path, &mut code, |piece| {
            if fault.is_ok() {
                fault = each(piece);
            }
        });
        let answer = answer.await;
        self.metrics.count(&Method::GET, code, begin.elapsed());
        fault?;
        match answer {
            Ok(Page::Read(head, is_list)) => Ok((head, is_list)),
            Ok(Page::Refused(answered)) => Err(refusal(&answered)),
            Err(error) => Err(ApiError::transient(with_sources(&*error))),
        }
    }

    async fn read_page(
        &self,
        path: &str,
        code: &mut Option<u16>,
        mut each: impl FnMut(Piece<'_>) + Send,
    ) -> Result<Page, BoxError> {
        let request = Request::get(path).header(ACCEPT, "application/json").body(Full::new(Bytes::new()))?;
        let late = |_| "the API server did not answer in time";
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.service.clone().oneshot(request));
        let answer = answer.await.map_err(late)??;
        *code = Some(answer.status().as_u16());
        if !answer.status().is_success() {
            let refused = tokio::time::timeout(REQUEST_TIMEOUT, self.read(answer)).await.map_err(late)??;
            return Ok(Page::Refused(refused));
        }
        let (mut items, mut body) = (Items::default(), Answer::new(answer.into_body()));
        while let Some(chunk) = body.next::<BoxError>().await? {
            items.feed(&chunk, &mut each);
        }
        Ok(Page::Read(items.head().map(<[u8]>::to_vec), items.is_list()))
    }
}
