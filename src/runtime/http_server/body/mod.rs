//! The bodies of responses: whole ones, and streams.

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use hyper::body::Bytes;

/// The body of a response.
pub struct Body(pub(super) Content);

/// The content of a body.
pub(super) enum Content {
    /// The whole body.
    Whole(Bytes),
    /// Sent piece by piece.
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    /// Creates a stream. The next piece is requested when the kernel has taken the previous one. The stream is dropped
    /// when the rest is no longer needed: the client has disconnected or read nothing for
    /// [`super::Limits::send_timeout`], or the server stops.
    pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Content::Stream(pieces.boxed()))
    }

    /// Returns the bytes of a whole body; empty for a stream.
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

#[cfg(test)]
mod tests;
