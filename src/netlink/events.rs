//! Tells of changes of links and their addresses.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockFlag, recv};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::address::Address;
use super::link::Link;
use super::message::messages;
use super::socket;

/// The groups of messages about links, and about addresses of IPv4 and IPv6 (rtnetlink(7)).
const GROUPS: i32 = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
/// More than the largest message.
const BUFFER: usize = 32 * 1024;

/// A change in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A link has changed, appeared or ended.
    Link(Link),
    /// A link has got or lost an address.
    Address(Address),
    /// There were too many changes to tell of each.
    Lost,
}

/// Hears of the changes in a namespace.
pub struct Events {
    socket: AsyncFd<OwnedFd>,
    buffer: Vec<u8>,
}

/// A socket that hears of the changes in the namespace of this thread.
pub(super) fn open() -> io::Result<OwnedFd> {
    socket::open(GROUPS.cast_unsigned(), SockFlag::SOCK_NONBLOCK)
}

impl Events {
    /// What hears by this socket.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "it is unsound for types whose descriptor changes or is closed; this one owns it"
        )]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Self { socket, buffer: vec![0; BUFFER] })
    }

    /// The next changes. May be dropped while it waits: nothing is lost.
    pub async fn next(&mut self) -> io::Result<Vec<Event>> {
        let Self { socket, buffer } = self;
        loop {
            let mut ready = socket.readable().await?;
            let read = ready.try_io(|socket| {
                recv(socket.as_raw_fd(), buffer, MsgFlags::empty()).map_err(io::Error::from)
            });
            let length = match read {
                Err(_) => continue,
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                    return Ok(vec![Event::Lost]);
                }
                Ok(read) => read?,
            };
            let read = messages(buffer.get(..length).unwrap_or_default());
            let events = read.filter_map(|message| {
                let link = Link::read(&message).map(Event::Link);
                link.or_else(|| Address::read(&message).map(Event::Address))
            });
            return Ok(events.collect());
        }
    }
}
