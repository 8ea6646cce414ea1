//! An API server response with more than one object, read while it arrives.

use std::time::Duration;

use http_body_util::{BodyExt, Collected, Limited};
use hyper::body::{Body as HttpBody, Bytes};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde::Deserialize;
use tokio::time::{Instant, timeout, timeout_at};

use super::client::{NoAnswer, REQUEST_TIMEOUT};
use super::pieces::{Items, Piece};

/// The time limit for a whole response.
pub const LONGEST_ANSWER: Duration = Duration::from_mins(5);
/// The maximum size of an error response, in bytes. The rest is not read.
const LARGEST_REFUSAL: usize = 64 << 10;

/// The metadata of a list.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMetadata {
    /// The resource version of the list.
    pub resource_version: String,
    /// The token of the next page, in URL-safe base64; empty for the last page.
    #[serde(rename = "continue")]
    pub next: String,
    /// The number of objects on the further pages. The API server states it for lists without selectors.
    #[serde(rename = "remainingItemCount")]
    pub remaining: u64,
}

/// A list, or a page of one, without its items.
#[derive(Deserialize)]
pub struct ListHead {
    /// The metadata of the list.
    #[serde(default)]
    pub metadata: ListMetadata,
}

/// The body of a response.
pub struct Answer<B> {
    body: B,
    until: Instant,
}

impl<B: HttpBody<Data = Bytes> + Unpin> Answer<B> {
    /// Starts the time limit of a response.
    pub fn new(body: B) -> Self {
        Self { body, until: Instant::now() + LONGEST_ANSWER }
    }

    /// Returns the next bytes; `None` at the end. Each chunk must arrive within [`REQUEST_TIMEOUT`], and the whole
    /// response within [`LONGEST_ANSWER`]: a large response may take longer than a request as long as data keeps
    /// arriving.
    ///
    /// # Errors
    /// When the response breaks off or times out.
    pub async fn next<E: From<B::Error> + From<NoAnswer>>(&mut self) -> Result<Option<Bytes>, E> {
        let until = self.until.min(Instant::now() + REQUEST_TIMEOUT);
        Ok(timeout_at(until, self.frame()).await.map_err(|_| NoAnswer)??)
    }

    /// Reads a page of a list, and passes its items to `each` while they arrive. Returns the metadata of the list and
    /// the number of bytes; `None` if the response is not a list.
    ///
    /// # Errors
    /// When the response breaks off or times out, or `each` fails.
    pub async fn page<E: From<B::Error> + From<NoAnswer>>(
        mut self,
        mut each: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<Option<(ListMetadata, usize)>, E> {
        let (mut items, mut length) = (Items::default(), 0);
        while let Some(chunk) = self.next::<E>().await? {
            length += chunk.len();
            let mut taken = Ok(());
            items.feed(&chunk, |piece| {
                if taken.is_ok() {
                    taken = each(piece);
                }
            });
            taken?;
        }
        let head = items.head().filter(|_| items.is_list());
        let head = head.and_then(|head| serde_json::from_slice(head).ok());
        Ok(head.map(|ListHead { metadata }| (metadata, length)))
    }

    /// Returns the next bytes, without a time limit; `None` at the end.
    ///
    /// # Errors
    /// When the response breaks off.
    pub async fn frame(&mut self) -> Result<Option<Bytes>, B::Error> {
        while let Some(frame) = self.body.frame().await {
            // Any other frame holds trailers.
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// Sends a request and returns the response.
///
/// # Errors
/// When the API server rejects the request or does not respond.
pub async fn ask(client: &Client, request: http::Request<Vec<u8>>) -> kube::Result<Answer<Body>> {
    let answer = client.send(request.map(Body::from)).await?;
    let (code, body) = (answer.status(), answer.into_body());
    if code.is_success() {
        return Ok(Answer::new(body));
    }
    let read = timeout(REQUEST_TIMEOUT, Limited::new(body, LARGEST_REFUSAL).collect()).await;
    let text = read.map_err(|_| NoAnswer)?.map_or_else(|_| Bytes::new(), Collected::to_bytes);
    let status = serde_json::from_slice::<Status>(&text).ok().filter(|status| status.code != 0);
    let status = status.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(&text);
        Status::failure(text.trim(), "Failed to parse error data").with_code(code.as_u16())
    });
    Err(kube::Error::Api(status.boxed()))
}
