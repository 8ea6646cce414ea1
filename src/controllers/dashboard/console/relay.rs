//! The bytes between the page and the screen, which are passed unchanged: the messages of VNC in frames of a WebSocket.

use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::Notify;
use tokio::time::timeout;

/// The size of the buffer of each direction, in bytes.
const BUFFER: usize = 16 << 10;
/// The maximum time that one side takes nothing of a buffer.
const STALLED: Duration = Duration::from_secs(30);
/// The maximum time without any byte. The page sends some every 25 seconds, or every minute while it is hidden.
const IDLE: Duration = Duration::from_mins(3);
/// The time to pass the last bytes after one side has ended.
const LAST: Duration = Duration::from_secs(1);

/// Passes the bytes of both directions until one side ends, takes nothing, or sends nothing for too long.
pub async fn relay<B, M>(browser: B, machine: M)
where
    B: AsyncRead + AsyncWrite,
    M: AsyncRead + AsyncWrite,
{
    let (from_browser, to_browser) = split(browser);
    let (from_machine, to_machine) = split(machine);
    let used = Notify::new();
    let both = async {
        let mut forth = pin!(copy(from_browser, to_machine, &used));
        let mut back = pin!(copy(from_machine, to_browser, &used));
        tokio::select! {
            () = forth.as_mut() => drop(timeout(LAST, back.as_mut()).await),
            () = back.as_mut() => drop(timeout(LAST, forth.as_mut()).await),
        }
    };
    tokio::select! {
        () = both => {}
        () = idle(&used) => {}
    }
}

/// Copies the bytes of one direction until its end.
async fn copy<R, W>(mut from: R, mut to: W, used: &Notify)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let written = async {
            to.write_all(&buffer[..length]).await?;
            to.flush().await
        };
        if !matches!(timeout(STALLED, written).await, Ok(Ok(()))) {
            return;
        }
        used.notify_one();
    }
    // The other side learns the end, unless it takes nothing.
    let _ = timeout(LAST, to.shutdown()).await;
}

/// Completes after [`IDLE`] without any byte.
async fn idle(used: &Notify) {
    while timeout(IDLE, used.notified()).await.is_ok() {}
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use tokio::io::duplex;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Returns the bytes that arrive at both ends of a relay whose ends send these bytes and then close.
    fn passed(forth: &[u8], back: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let ((mut browser, of_browser), (mut machine, of_machine)) = (duplex(64), duplex(64));
            let relayed = relay(of_browser, of_machine);
            let talk = async |stream: &mut tokio::io::DuplexStream, sent: &[u8], length: usize| {
                let (mut reader, mut writer) = tokio::io::split(stream);
                let mut received = vec![0; length];
                let (read, written) = tokio::join!(reader.read_exact(&mut received), writer.write_all(sent));
                assert!(read.is_ok() && written.is_ok());
                received
            };
            let both = async {
                let received = tokio::join!(
                    talk(&mut machine, back, forth.len()),
                    talk(&mut browser, forth, back.len())
                );
                drop((browser, machine));
                received
            };
            let ((), received) = tokio::join!(relayed, both);
            received
        })
    }

    proptest! {
        #[test]
        fn the_bytes_of_both_directions_arrive_unchanged(
            forth in vec(any::<u8>(), 0..2_000),
            back in vec(any::<u8>(), 0..2_000),
        ) {
            prop_assert_eq!(passed(&forth, &back), (forth, back));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_bytes_of_a_side_that_ends_are_passed() {
        let ((mut browser, of_browser), (mut machine, of_machine)) = (duplex(64), duplex(64));
        machine.write_all(b"the last frame").await.expect("room");
        drop(machine);
        let mut received = Vec::new();
        let ((), read) = tokio::join!(relay(of_browser, of_machine), browser.read_to_end(&mut received));
        assert_eq!((read.expect("no error"), received.as_slice()), (14, &b"the last frame"[..]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_side_that_takes_nothing_ends_the_relay() {
        let ((browser, of_browser), (mut machine, of_machine)) = (duplex(64), duplex(64));
        let begin = Instant::now();
        // The browser reads nothing, and sends nothing.
        let flood = async { while machine.write_all(&[0; 64]).await.is_ok() {} };
        tokio::join!(relay(of_browser, of_machine), flood);
        assert!((STALLED..IDLE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
        drop(browser);
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_without_any_byte_ends_and_a_byte_keeps_it() {
        let ((mut browser, of_browser), (mut machine, of_machine)) = (duplex(64), duplex(64));
        let begin = Instant::now();
        let sends = async {
            for _ in 0..3 {
                sleep(IDLE.saturating_sub(Duration::from_secs(1))).await;
                browser.write_all(b"x").await.expect("room");
                machine.read_u8().await.expect("it is passed");
            }
        };
        tokio::join!(relay(of_browser, of_machine), sends);
        assert_eq!(begin.elapsed().as_secs(), 3 * (IDLE.as_secs() - 1) + IDLE.as_secs());
    }
}
