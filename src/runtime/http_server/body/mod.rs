//! The bodies of answers: whole ones, and streams.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};

use super::unsent::Unsent;
use crate::runtime::connections::Connection;

/// The body of an answer.
pub struct Body(Content);

enum Content {
    /// All of it; empty once it is taken.
    Whole(Bytes),
    /// Piece by piece.
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    /// A stream. The connection asks for the next piece when it has room: of those that it has taken, at most 16 wait for the
    /// client, or 64 KiB and one more. The stream is dropped once nobody takes the rest: the client has left or took nothing for
    /// [`super::Limits::send_timeout`], or the server stops.
    pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Content::Stream(pieces.boxed()))
    }

    /// The bytes of a whole body; none of a stream.
    pub fn whole(&self) -> &[u8] {
        match &self.0 {
            Content::Whole(bytes) => bytes,
            Content::Stream(_) => &[],
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Content::Whole(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.0 {
            Content::Whole(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            Content::Stream(pieces) => ready!(pieces.poll_next_unpin(context)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// A body on its connection, which serves as long as a stream goes on, and waits for its next request after that. A whole
/// body is handed over at once.
pub struct Served {
    body: Body,
    stream: Option<Streaming>,
}

/// A connection as long as it streams.
struct Streaming {
    place: Arc<Connection>,
    /// Completes when the server is asked to stop.
    stopping: BoxFuture<'static, ()>,
}

impl Served {
    /// The body of the answer to the request that the connection serves.
    pub fn new(body: Body, place: Arc<Connection>, unsent: &Arc<Unsent>) -> Self {
        let body = match body.0 {
            Content::Whole(bytes) => {
                place.wait();
                return Self { body: unsent.count(bytes, &place).into(), stream: None };
            }
            stream @ Content::Stream(_) => Body(stream),
        };
        place.stream();
        let stops = Arc::clone(&place);
        let stopping = async move { stops.stopping().await }.boxed();
        Self { body, stream: Some(Streaming { place, stopping }) }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.place.wait();
    }
}

impl HttpBody for Served {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Asked first: whoever always has one more piece delays no stop.
        let stops = self.stream.as_mut().is_some_and(|stream| stream.stopping.poll_unpin(context).is_ready());
        if stops {
            // The stream is dropped at once.
            self.body = Bytes::new().into();
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() {
            self.stream = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
