//! The bodies of responses: whole ones, and streams.

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use hyper::body::Bytes;

/// The body of a response.
#[derive(derive_more::From)]
pub enum Body {
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
        Self::Stream(pieces.boxed())
    }

    /// Returns the bytes of a whole body; empty for a stream.
    pub fn whole(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) => bytes,
            Self::Stream(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests;
