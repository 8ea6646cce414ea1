//! The socket below a connection of rtnetlink, which sees what the library only logs: it passes over a message that it cannot
//! read, so a list would be shorter than it is.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BufMut;
use rtnetlink::packet_core::NetlinkBuffer;
use rtnetlink::sys::{AsyncSocket, Socket, SocketAddr, TokioSocket};

/// More than the largest datagram: the kernel divides lists into parts of at most 32 KiB, and a single message is smaller.
pub(super) const LARGEST: usize = 64 * 1024;

/// How many messages of an answer have arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// The number of the request that they answer, the last one.
    sequence: u32,
    /// How many, with the one that ends the answer.
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

/// A socket that counts the messages that arrive. Of those that wait it reads one datagram each time that the connection is
/// polled: what is in it is taken before the next one is read, so a long list is never in memory as a whole.
pub(super) struct Datagrams {
    socket: TokioSocket,
    buffer: Cell<Vec<u8>>,
    arrived: Rc<Cell<Arrived>>,
    has_read: Cell<bool>,
}

impl Datagrams {
    /// Where the messages are counted.
    pub fn arrived(&self) -> Rc<Cell<Arrived>> {
        Rc::clone(&self.arrived)
    }
}

impl AsyncSocket for Datagrams {
    fn socket_ref(&self) -> &Socket {
        self.socket.socket_ref()
    }

    fn socket_mut(&mut self) -> &mut Socket {
        self.socket.socket_mut()
    }

    fn new(protocol: isize) -> io::Result<Self> {
        Ok(Self {
            socket: TokioSocket::new(protocol)?,
            buffer: Cell::new(Vec::with_capacity(LARGEST)),
            arrived: Rc::default(),
            has_read: Cell::new(false),
        })
    }

    fn poll_send(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_send(context, bytes)
    }

    fn poll_send_to(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
        address: &SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_send_to(context, bytes, address)
    }

    fn poll_recv<B: BufMut>(&self, context: &mut Context<'_>, into: &mut B) -> Poll<io::Result<()>> {
        self.poll_recv_from(context, into).map_ok(|_| ())
    }

    fn poll_recv_from<B: BufMut>(
        &self,
        context: &mut Context<'_>,
        into: &mut B,
    ) -> Poll<io::Result<SocketAddr>> {
        if self.has_read.replace(false) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut buffer = self.buffer.take();
        buffer.clear();
        let read = self.socket.poll_recv_from(context, &mut buffer);
        if let Poll::Ready(Ok(_)) = read {
            self.has_read.set(true);
            self.arrived.set(self.arrived.get().count(&buffer));
            into.put_slice(&buffer);
        }
        self.buffer.set(buffer);
        read
    }

    fn poll_recv_from_full(&self, context: &mut Context<'_>) -> Poll<io::Result<(Vec<u8>, SocketAddr)>> {
        self.socket.poll_recv_from_full(context)
    }
}

/// The messages of a datagram, each with its header. What has no proper header is one message, which cannot be decoded.
pub(super) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if datagram.is_empty() {
            return None;
        }
        let length = NetlinkBuffer::new_checked(datagram).map_or(datagram.len(), |header| {
            // It is checked to be no more than there is.
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

    /// A message of that length, which answers the request of that number.
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
        // The end of an answer for which nobody waits any more, and the answer.
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
