//! A socket that sends a request and reads its answer. The kernel answers before `send` returns, or after it has waited
//! for other changes of links.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket,
};
use nix::sys::time::TimeVal;

use super::message::{Message, Request, messages, number};

/// The largest answer: the kernel divides lists into parts of at most 32 KiB, and a single message is smaller.
const BUFFER: usize = 64 * 1024;
/// How long an answer may take, in seconds. Changes of links wait for each other, in the whole kernel.
const PATIENCE: i64 = 10;
/// How often a list is begun again that changed while it was read.
const ATTEMPTS: usize = 5;

/// A socket in a network namespace.
pub struct Socket {
    descriptor: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// A socket of rtnetlink in the namespace of this thread, which also gets the messages of these groups.
pub(super) fn open(groups: u32, flags: SockFlag) -> io::Result<OwnedFd> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    let descriptor = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(descriptor)
}

impl Socket {
    /// A socket in the namespace of this thread.
    pub(super) fn open() -> io::Result<Self> {
        let descriptor = open(0, SockFlag::empty())?;
        setsockopt(&descriptor, ReceiveTimeout, &TimeVal::new(PATIENCE, 0))?;
        Ok(Self { descriptor, sequence: 0, buffer: vec![0; BUFFER] })
    }

    /// Sends a request that changes something, and waits until it is done.
    pub(super) fn change(
        &mut self,
        kind: u16,
        flags: i32,
        body: super::message::Attributes,
    ) -> io::Result<()> {
        let request = Request::new(kind, libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags, body);
        self.send(&request)?;
        loop {
            if let Some(end) = self.receive(|_| {})? {
                return end;
            }
        }
    }

    /// Asks for one object, and calls `each` with the answer.
    pub(super) fn get(
        &mut self,
        kind: u16,
        body: super::message::Attributes,
        mut each: impl FnMut(&Message<'_>),
    ) -> io::Result<()> {
        self.send(&Request::new(kind, libc::NLM_F_REQUEST | libc::NLM_F_ACK, body))?;
        loop {
            if let Some(end) = self.receive(|message| each(message))? {
                return end;
            }
        }
    }

    /// Asks for a list. What changes while it is read makes it begin again.
    pub(super) fn list<T>(
        &mut self,
        kind: u16,
        body: &super::message::Attributes,
        mut each: impl FnMut(&Message<'_>) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        let request = Request::new(kind, libc::NLM_F_REQUEST | libc::NLM_F_DUMP, body.clone());
        for _ in 0..ATTEMPTS {
            let (mut found, mut is_interrupted) = (Vec::new(), false);
            self.send(&request)?;
            let end = loop {
                let end = self.receive(|message| {
                    is_interrupted |= i32::from(message.flags) & libc::NLM_F_DUMP_INTR != 0;
                    found.extend(each(message));
                })?;
                if let Some(end) = end {
                    break end;
                }
            };
            end?;
            if !is_interrupted {
                return Ok(found);
            }
        }
        Err(io::Error::new(io::ErrorKind::Interrupted, "the list changed each time while it was read"))
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = request.encode(self.sequence);
        let sent = send(self.descriptor.as_raw_fd(), &bytes, MsgFlags::empty())?;
        if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Reads once. Returns how the request has ended, if it has. Answers to earlier requests are left out.
    #[allow(clippy::type_complexity, reason = "the inner result is that of the request")]
    fn receive(&mut self, mut each: impl FnMut(&Message<'_>)) -> io::Result<Option<io::Result<()>>> {
        let length = recv(self.descriptor.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
        for message in messages(self.buffer.get(..length).unwrap_or_default()) {
            if message.sequence != self.sequence {
                continue;
            }
            match i32::from(message.kind) {
                libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                    // A negative error number, or 0.
                    let code = number(message.payload).map_or(0, u32::cast_signed);
                    return Ok(Some(if code == 0 {
                        Ok(())
                    } else {
                        Err(io::Error::from_raw_os_error(code.wrapping_neg()))
                    }));
                }
                libc::NLMSG_NOOP => {}
                _ => each(&message),
            }
        }
        Ok(None)
    }
}
