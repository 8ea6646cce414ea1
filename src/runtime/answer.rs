//! The answer of the API server to a request for more than one object, which is read while it arrives.

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

/// How long an answer may take from its begin to its end.
pub const LONGEST_ANSWER: Duration = Duration::from_mins(5);
/// The most bytes of a refusal that are read.
const LARGEST_REFUSAL: usize = 64 << 10;

/// What is read of a list beside its items.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMetadata {
    /// The version at which it was made.
    pub resource_version: String,
    /// The token of the next page, in base64 for URLs; empty at the end of the list.
    #[serde(rename = "continue")]
    pub next: String,
}

/// A list, or a page of one, without its items.
#[derive(Deserialize)]
pub struct ListHead {
    /// What is beside them.
    #[serde(default)]
    pub metadata: ListMetadata,
}

/// The body of an answer.
pub struct Answer<B> {
    body: B,
    until: Instant,
}

impl<B: HttpBody<Data = Bytes> + Unpin> Answer<B> {
    /// An answer that begins now.
    pub fn new(body: B) -> Self {
        Self { body, until: Instant::now() + LONGEST_ANSWER }
    }

    /// The next bytes; `None` at the end. Nothing may take as long as [`REQUEST_TIMEOUT`], nor the whole answer as long as
    /// [`LONGEST_ANSWER`]: a large one may take longer than a request, as long as it arrives.
    ///
    /// # Errors
    /// When the answer breaks off, or does not come in time.
    pub async fn next<E: From<B::Error> + From<NoAnswer>>(&mut self) -> Result<Option<Bytes>, E> {
        let until = self.until.min(Instant::now() + REQUEST_TIMEOUT);
        Ok(timeout_at(until, self.frame()).await.map_err(|_| NoAnswer)??)
    }

    /// Reads a page of a list, and gives its items to `each` while they arrive. Returns what is beside them, and the number of
    /// bytes; `None` if the answer is no list.
    ///
    /// # Errors
    /// When the answer breaks off, or does not come in time, or `each` fails.
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

    /// The next bytes, without a deadline; `None` at the end.
    ///
    /// # Errors
    /// When the answer breaks off.
    pub async fn frame(&mut self) -> Result<Option<Bytes>, B::Error> {
        while let Some(frame) = self.body.frame().await {
            // Anything else is a trailer.
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// The answer to a request.
///
/// # Errors
/// When the API server refuses it, or does not answer.
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
