//! Connections that fail if their client reads nothing for some time.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// The kernel's send buffer for data that a client has not read, in bytes. This is the kernel's initial size
/// (`net.ipv4.tcp_wmem`), which it would otherwise let grow to megabytes. The kernel also counts its own overhead, and
/// doubles the number to allow for it (socket(7)).
const SEND_BUFFER: usize = 16 << 10;

/// The longest timeout that we set in the kernel, which accepts at most 24 days.
#[cfg(target_os = "linux")]
const LONGEST: Duration = Duration::from_hours(24);

/// A connection that fails to write if its client reads nothing for some time. Its clones share the connection: one of
/// them stays when the HTTP library is done with another.
pub struct Progress<S>(Arc<Mutex<Inner<S>>>);

struct Inner<S> {
    stream: S,
    limit: Duration,
    /// The deadline of a waiting write.
    late: Option<Pin<Box<Sleep>>>,
}

/// Prepares an accepted connection. The kernel's data for its client is bounded in size and, also after the connection is
/// closed, in time.
///
/// # Errors
/// When the connection is already broken.
pub fn prepare(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    // A piece of a stream does not wait until the client has acknowledged the previous one.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_send_buffer_size(SEND_BUFFER)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(limit.min(LONGEST)))?;
    Ok(())
}

impl<S> Progress<S> {
    /// Applies the limit to a connection.
    pub fn new(stream: S, limit: Duration) -> Self {
        Self(Arc::new(Mutex::new(Inner { stream, limit, late: None })))
    }
}

impl<S> Clone for Progress<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Inner<S> {
    /// Applies the time limit to the result of a write. A waiting write is polled again at its deadline.
    fn in_time(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.late = None;
            return written;
        }
        let limit = self.limit;
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(limit)));
        late.as_mut().poll(context).map(|()| {
            let message = format!("the client has read nothing for {} s", limit.as_secs_f64());
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Progress<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progress<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.0.lock();
        let written = Pin::new(&mut inner.stream).poll_write(context, bytes);
        inner.in_time(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.0.lock();
        let written = Pin::new(&mut inner.stream).poll_write_vectored(context, slices);
        inner.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const MOMENT: Duration = Duration::from_millis(1);

    /// Returns a connection with a buffer of four bytes, and its client.
    fn connection() -> (Progress<DuplexStream>, DuplexStream) {
        let (stream, client) = duplex(4);
        (Progress::new(stream, LIMIT), client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_has_thirty_seconds() {
        let (mut connection, mut client) = connection();
        let begin = tokio::time::Instant::now();
        let error = connection.write_all(b"12345").await.expect_err("the fifth byte does not fit");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "the client has read nothing for 30 s");
        assert!((LIMIT..LIMIT + 2 * MOMENT).contains(&begin.elapsed()), "{:?}", begin.elapsed());
        // Unread data does not count while there is nothing to write.
        assert_eq!(client.read_u8().await.expect("the first byte"), b'1');
        tokio::time::advance(LIMIT * 2).await;
        let slices = [io::IoSlice::new(b"6")];
        let mut write =
            |context: &mut Context<'_>| Pin::new(&mut connection).poll_write_vectored(context, &slices);
        assert_eq!(poll_fn(&mut write).await.expect("space for one"), 1);
        let error = poll_fn(&mut write).await.expect_err("no more space");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_but_steady_client_gets_the_whole_response() {
        let (mut connection, mut client) = connection();
        let sent = tokio::spawn(async move { connection.write_all(b"a long answer").await });
        let mut taken = String::new();
        while taken.len() < "a long answer".len() {
            tokio::time::sleep(LIMIT * 9 / 10).await;
            taken.push(char::from(client.read_u8().await.expect("a byte")));
        }
        assert_eq!(taken, "a long answer");
        sent.await.expect("no panic").expect("all is sent");
    }
}
