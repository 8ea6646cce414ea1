//! Events about links and their addresses. The messages are read from the socket itself, when the next ones are asked for: a connection of rtnetlink would collect them, without a bound. The kernel keeps as many as the socket's buffer takes,
//! and says when there were more.

use std::io;

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
    /// A link has changed, appeared or ended.
    Link(Link),
    /// A link has got or lost an address.
    Address(Address),
    /// There were more changes than the socket's buffer takes, or one that cannot be read.
    Lost,
}

/// Receives the events of a namespace.
pub struct Events {
    socket: TokioSocket,
    buffer: Vec<u8>,
}

impl Events {
    /// Begins to receive the events of a namespace.
    pub async fn of(namespace: Namespace) -> io::Result<Self> {
        let runtime = Handle::current();
        let socket = in_thread(move |thread| {
            thread.enter(&namespace)?;
            // The thread ends, and the runtime waits for the socket.
            let _inside = runtime.enter();
            let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
            socket.socket_mut().bind(&SocketAddr::new(0, GROUPS))?;
            Ok::<_, io::Error>(socket)
        });
        Ok(Self { socket: socket.await??, buffer: Vec::with_capacity(LARGEST) })
    }

    /// The next changes. May be dropped while it waits: nothing is lost.
    pub async fn next(&mut self) -> io::Result<Vec<Event>> {
        let Self { socket, buffer } = self;
        buffer.clear();
        match socket.recv_from(buffer).await {
            Ok(_) => Ok(messages(buffer).filter_map(event).collect()),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                // Until these are read, the kernel drops what comes, and does not say so again.
                while matches!(socket.recv_from(buffer).now_or_never(), Some(Ok(_))) {
                    buffer.clear();
                }
                Ok(vec![Event::Lost])
            }
            Err(error) => Err(error),
        }
    }
}

/// The event of a message; `None` if it is about something else.
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
