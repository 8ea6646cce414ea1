//! The bodies of responses: whole ones, streams, and late ones.

use std::future::Future;

use futures::FutureExt;
use futures::future::BoxFuture;
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
    /// Sent with the head of the response when it is complete.
    Late(BoxFuture<'static, Bytes>),
}

impl Body {
    /// Creates a stream. The next piece is requested when the kernel has taken the previous one. The stream is dropped
    /// when the rest is no longer needed: the client has disconnected or read nothing for
    /// [`super::Limits::send_timeout`], or the server stops.
    pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::Stream(pieces.boxed())
    }

    /// Creates a body for a client that has to wait before it gets a response. The connection needs no slot while it
    /// waits, and closes after the response.
    pub fn late(body: impl Future<Output = Bytes> + Send + 'static) -> Self {
        Self::Late(body.boxed())
    }

    /// Returns the bytes of a whole body; empty for others.
    pub fn whole(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) => bytes,
            Self::Stream(_) | Self::Late(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests;
