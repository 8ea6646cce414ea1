//! The time of the last activity of a connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The time at which bytes were last transferred. Clones share it.
#[derive(Debug, Clone)]
pub struct Activity(Arc<Mutex<Instant>>);

impl Default for Activity {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Activity {
    /// Returns the time without a transfer.
    pub fn idle(&self) -> Duration {
        self.0.lock().elapsed()
    }

    fn note(&self) {
        *self.0.lock() = Instant::now();
    }
}

/// A connection that notes its activity.
pub struct Watched<S> {
    stream: S,
    activity: Activity,
}

impl<S> Watched<S> {
    /// Notes the transfers of a connection.
    pub fn new(stream: S, activity: Activity) -> Self {
        Self { stream, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.activity.note();
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.activity.note();
        Poll::Ready(written)
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::advance;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn transfers_in_both_directions_are_activity_and_waiting_is_none() {
        let activity = Activity::default();
        let (stream, mut other) = duplex(4);
        let mut watched = Watched::new(stream, activity.clone());
        advance(MINUTE).await;
        assert_eq!(activity.idle(), MINUTE);
        watched.write_all(b"1234").await.expect("written");
        assert_eq!(activity.idle(), Duration::ZERO);
        advance(MINUTE).await;
        other.write_all(b"5").await.expect("written");
        assert_eq!(activity.idle(), MINUTE, "the other side does not count");
        assert_eq!(watched.read_u8().await.expect("a byte"), b'5');
        assert_eq!(activity.idle(), Duration::ZERO);
        let stalled = tokio::time::timeout(MINUTE, watched.write_all(b"6")).await;
        assert!(stalled.is_err(), "the other side reads nothing");
        assert_eq!(activity.idle(), MINUTE);
    }
}
