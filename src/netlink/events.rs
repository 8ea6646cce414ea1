//! Events about links and their addresses. The messages are read from the socket directly, when the next events are
//! requested: an rtnetlink connection would collect them without a limit. The kernel keeps as many messages as fit in
//! the socket's buffer, and reports when it dropped some.

use std::io;
use std::path::PathBuf;

use futures::FutureExt;
use rtnetlink::constants::{RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR, RTMGRP_LINK};
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use tokio::runtime::Handle;

use super::address::Address;
use super::datagrams::{LARGEST, messages};
use super::link::Link;
use super::namespace::{Namespace, in_thread};

/// The groups of messages about links, and about addresses of IPv4 and IPv6 (rtnetlink(7)).
const GROUPS: u32 = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;

/// A change in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A link was changed, added or removed.
    Link(Link),
    /// An address was added to a link or removed from it.
    Address(Address),
    /// The socket's buffer overflowed, or a message could not be parsed.
    Lost,
}

/// Receives the events of a namespace.
pub struct Events {
    socket: TokioSocket,
    buffer: Vec<u8>,
}

impl Events {
    /// Starts to receive the events of the namespace at this path.
    pub async fn of(namespace: PathBuf) -> io::Result<Self> {
        let runtime = Handle::current();
        let socket = in_thread(move |thread| {
            thread.enter(&Namespace::open(&namespace)?)?;
            // The thread ends, and the runtime of the caller polls the socket.
            let _inside = runtime.enter();
            let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
            socket.socket_mut().bind(&SocketAddr::new(0, GROUPS))?;
            Ok::<_, io::Error>(socket)
        });
        Ok(Self { socket: socket.await??, buffer: Vec::with_capacity(LARGEST) })
    }

    /// Waits for the next changes. Cancel safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> io::Result<Vec<Event>> {
        let Self { socket, buffer } = self;
        buffer.clear();
        match socket.recv_from(buffer).await {
            Ok(_) => Ok(messages(buffer).filter_map(event).collect()),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                // Until these are read, the kernel drops new messages without another error.
                while matches!(socket.recv_from(buffer).now_or_never(), Some(Ok(_))) {
                    buffer.clear();
                }
                Ok(vec![Event::Lost])
            }
            Err(error) => Err(error),
        }
    }
}

/// The event in a message; `None` if the message is about something else.
fn event(message: &[u8]) -> Option<Event> {
    let Ok(message) = NetlinkMessage::deserialize(message) else { return Some(Event::Lost) };
    match message.payload {
        NetlinkPayload::InnerMessage(
            RouteNetlinkMessage::NewLink(link) | RouteNetlinkMessage::DelLink(link),
        ) => Some(Event::Link(Link::from(link))),
        NetlinkPayload::InnerMessage(
            RouteNetlinkMessage::NewAddress(address) | RouteNetlinkMessage::DelAddress(address),
        ) => Address::read(&address).map(Event::Address),
        _ => None,
    }
}
