//! Connections whose client has to take something from time to time.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What the kernel is to keep of what a client has not taken, in bytes: that with which it begins by itself
/// (`net.ipv4.tcp_wmem`), and would let grow to megabytes. It counts its own overhead too, and doubles the number for it
/// (socket(7)).
const SEND_BUFFER: usize = 16 << 10;

/// The longest time that is set in the kernel, which takes at most 24 days.
#[cfg(target_os = "linux")]
const LONGEST: Duration = Duration::from_hours(24);

/// A connection on which a write fails if its client takes nothing of it for a time.
pub struct Progress<S> {
    stream: S,
    limit: Duration,
    /// The end of that time, while a write waits.
    late: Option<Pin<Box<Sleep>>>,
}

impl Progress<TcpStream> {
    /// A connection that has been accepted. What the kernel keeps for its client is bounded, in bytes and, also after the
    /// connection was closed, in time.
    ///
    /// # Errors
    /// When the connection is broken already.
    pub fn new(stream: TcpStream, limit: Duration) -> io::Result<Self> {
        // A piece of a stream does not wait until the client has confirmed the one before.
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        socket.set_send_buffer_size(SEND_BUFFER)?;
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(Some(limit.min(LONGEST)))?;
        Ok(Self { stream, limit, late: None })
    }
}

impl<S> Progress<S> {
    /// The result of a write. One that waits is polled again at the end of its time.
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
            let message = format!("the client has taken nothing for {} s", limit.as_secs_f64());
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Progress<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progress<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const MOMENT: Duration = Duration::from_millis(1);

    /// A connection with room for four bytes, and its client.
    fn connection() -> (Progress<DuplexStream>, DuplexStream) {
        let (stream, client) = duplex(4);
        (Progress { stream, limit: LIMIT, late: None }, client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_has_thirty_seconds() {
        let (mut connection, mut client) = connection();
        let begin = tokio::time::Instant::now();
        let error = connection.write_all(b"12345").await.expect_err("the fifth byte is not taken");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "the client has taken nothing for 30 s");
        assert!((LIMIT..LIMIT + 2 * MOMENT).contains(&begin.elapsed()), "{:?}", begin.elapsed());
        // What it has not taken does not count as long as there is nothing to be written.
        assert_eq!(client.read_u8().await.expect("the first byte"), b'1');
        tokio::time::advance(LIMIT * 2).await;
        let slices = [io::IoSlice::new(b"6")];
        let mut write =
            |context: &mut Context<'_>| Pin::new(&mut connection).poll_write_vectored(context, &slices);
        assert_eq!(poll_fn(&mut write).await.expect("room for one"), 1);
        let error = poll_fn(&mut write).await.expect_err("no more room");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_slow_and_steady_gets_all() {
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
