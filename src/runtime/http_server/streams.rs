//! Responses that are streams, or late. Each leaves the HTTP library, whose buffers take 16 KiB for each connection,
//! and continues in a small task of its own.

use std::io;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::response::Parts;
use hyper::body::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tracing::debug;

use super::Body;
use crate::runtime::connections::Connection;

/// The bytes of a response, with its head.
pub type Streaming = BoxStream<'static, Bytes>;

/// Returns the bytes of a response. A response to a `HEAD` request has no body.
pub fn streaming(head: &Parts, body: Body, is_head: bool) -> Streaming {
    let head = lines(head);
    match body {
        Body::Whole(bytes) => stream::iter([head, bytes]).boxed(),
        Body::Stream(pieces) => stream::iter([head]).chain(pieces).boxed(),
        Body::Late(body) => stream::once(async move {
            let body = body.await;
            if is_head { head } else { [&head[..], &body[..]].concat().into() }
        })
        .boxed(),
    }
}

/// Returns the head of a response as it is sent.
fn lines(head: &Parts) -> Bytes {
    let mut lines = format!("HTTP/1.1 {}\r\nconnection: close\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        lines.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    lines.extend(b"\r\n");
    lines.into()
}

/// Sends a response until it ends, its client disconnects, or the server stops. The connection then closes, which
/// ends the response.
pub async fn send<S>(response: Streaming, socket: S, connection: Arc<Connection>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tokio::select! {
        sent = write(response, socket) => if let Err(error) = sent {
            debug!(%error, "a stream ended early");
        },
        () = connection.stopping() => {}
    }
}

async fn write<S>(mut response: Streaming, mut socket: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut ignored = [0; 64];
    loop {
        let piece = tokio::select! {
            biased;
            piece = response.next() => match piece {
                Some(piece) => piece,
                None => return socket.shutdown().await,
            },
            read = socket.read(&mut ignored) => match read? {
                0 => return Ok(()),
                _ => continue,
            },
        };
        socket.write_all(&piece).await?;
        socket.flush().await?;
    }
}
