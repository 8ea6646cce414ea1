//! Responses that are streams. Each leaves the HTTP library, whose buffers take 16 KiB for each connection, and continues
//! in a small task of its own.

use std::io;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::Response;
use hyper::body::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tracing::debug;

use crate::runtime::connections::Connection;

/// A response with its pieces.
pub type Streaming = Response<BoxStream<'static, Bytes>>;

/// Sends a response until its stream ends, its client disconnects, or the server stops. The connection then closes, which
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

async fn write<S>(response: Streaming, mut socket: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (head, mut pieces) = response.into_parts();
    let mut piece = format!("HTTP/1.1 {}\r\nconnection: close\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        piece.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    piece.extend(b"\r\n");
    let mut piece = Bytes::from(piece);
    let mut ignored = [0; 64];
    loop {
        socket.write_all(&piece).await?;
        socket.flush().await?;
        piece = loop {
            tokio::select! {
                next = pieces.next() => match next {
                    Some(piece) => break piece,
                    None => return socket.shutdown().await,
                },
                read = socket.read(&mut ignored) => if read? == 0 {
                    return Ok(());
                },
            }
        };
    }
}
