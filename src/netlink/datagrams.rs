//! The socket below an rtnetlink connection. The library only logs and skips a message that it cannot parse, so a list
//! would silently lack an entry. This socket counts the messages that arrive.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BufMut;
use rtnetlink::packet_core::NetlinkBuffer;
use rtnetlink::sys::{AsyncSocket, Socket, SocketAddr, TokioSocket};

/// More than the largest datagram: the kernel splits lists into parts of at most 32 KiB, and a single message is
/// smaller.
pub(super) const LARGEST: usize = 64 * 1024;

/// The number of messages of an answer that have arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// The sequence number of the latest request.
    sequence: u32,
    /// The number of messages, including the one that ends the answer.
    pub count: usize,
}

impl Arrived {
    /// Counts the messages of a datagram.
    fn count(mut self, datagram: &[u8]) -> Self {
        for message in messages(datagram) {
            let sequence = NetlinkBuffer::new_checked(message).map_or(0, |header| header.sequence_number());
            if sequence != self.sequence {
                self = Self { sequence, count: 0 };
            }
            self.count += 1;
        }
        self
    }
}

/// A socket that counts the messages that arrive. It reads one datagram each time the connection is polled, and the
/// messages in it are processed before the next datagram is read. A long list is therefore never in memory as a whole.
pub(super) struct Datagrams {
    socket: TokioSocket,
    buffer: Cell<Vec<u8>>,
    /// The counter of messages.
    pub arrived: Rc<Cell<Arrived>>,
    has_read: Cell<bool>,
}

impl AsyncSocket for Datagrams {
    fn socket_ref(&self) -> &Socket {
        self.socket.socket_ref()
    }

    fn socket_mut(&mut self) -> &mut Socket {
        self.socket.socket_mut()
    }

    fn new(protocol: isize) -> io::Result<Self> {
        let (socket, buffer) = (TokioSocket::new(protocol)?, Cell::new(Vec::with_capacity(LARGEST)));
        Ok(Self { socket, buffer, arrived: Rc::default(), has_read: Cell::new(false) })
    }

    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_send(cx, bytes)
    }

    fn poll_send_to(&self, cx: &mut Context<'_>, buf: &[u8], addr: &SocketAddr) -> Poll<io::Result<usize>> {
        self.socket.poll_send_to(cx, buf, addr)
    }

    fn poll_recv<B: BufMut>(&self, cx: &mut Context<'_>, into: &mut B) -> Poll<io::Result<()>> {
        self.poll_recv_from(cx, into).map_ok(|_| ())
    }

    fn poll_recv_from<B: BufMut>(&self, cx: &mut Context<'_>, into: &mut B) -> Poll<io::Result<SocketAddr>> {
        if self.has_read.replace(false) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut buffer = self.buffer.take();
        buffer.clear();
        let read = self.socket.poll_recv_from(cx, &mut buffer);
        if let Poll::Ready(Ok(_)) = read {
            self.has_read.set(true);
            self.arrived.set(self.arrived.get().count(&buffer));
            into.put_slice(&buffer);
        }
        self.buffer.set(buffer);
        read
    }

    fn poll_recv_from_full(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Vec<u8>, SocketAddr)>> {
        self.socket.poll_recv_from_full(cx)
    }
}

/// Splits a datagram into its messages, including their headers. A remainder without a valid header is returned as one
/// message, which fails to decode.
pub(super) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if datagram.is_empty() {
            return None;
        }
        let length = NetlinkBuffer::new_checked(datagram).map_or(datagram.len(), |header| {
            // `new_checked` has verified that the length does not exceed the buffer.
            usize::try_from(header.length()).unwrap_or(usize::MAX)
        });
        let (message, rest) = datagram.split_at_checked(length)?;
        datagram = rest;
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message of the given length that answers the request with the given number.
    fn message(length: u8, sequence: u8) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(length)];
        bytes[..4].copy_from_slice(&u32::from(length).to_ne_bytes());
        bytes[8..12].copy_from_slice(&u32::from(sequence).to_ne_bytes());
        bytes
    }

    #[test]
    fn messages_are_counted_for_the_request_that_they_answer() {
        let arrived = Arrived::default().count(&[message(20, 1), message(16, 1)].concat());
        assert_eq!(arrived, Arrived { sequence: 1, count: 2 });
        let arrived = arrived.count(&message(16, 1));
        assert_eq!(arrived, Arrived { sequence: 1, count: 3 });
        // The end of an answer that is no longer awaited, and the next answer.
        let arrived = arrived.count(&message(16, 2)).count(&[message(24, 3), message(16, 3)].concat());
        assert_eq!(arrived, Arrived { sequence: 3, count: 2 });
    }

    proptest! {
        #[test]
        fn any_bytes_are_divided_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let divided: Vec<&[u8]> = messages(&bytes).collect();
            prop_assert!(divided.iter().all(|message| !message.is_empty()));
            prop_assert_eq!(divided.concat(), bytes);
        }
    }
}
