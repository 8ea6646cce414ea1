//! A socket that sends a request and waits for its answer. It adds two guarantees to rtnetlink: every request ends
//! within a time limit, and a message that cannot be parsed is an error.

use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{Either, select};
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::proto::Connection;
use rtnetlink::sys::AsyncSocket;
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::{Error, Handle};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::datagrams::{Arrived, Datagrams};

/// The time limit of an answer. The kernel serialises all changes of links.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of attempts to read a list that changes while it is read.
const ATTEMPTS: usize = 5;

/// A socket in a network namespace. It is used in the thread that opened it.
pub struct Socket {
    connection: Connection<RouteNetlinkMessage, Datagrams>,
    pub(super) handle: Handle,
    arrived: Rc<Cell<Arrived>>,
    runtime: Rc<Runtime>,
}

/// The kernel's answer to a request.
struct Answer<T> {
    /// The requested items.
    found: Vec<T>,
    /// The number of messages that were parsed, including messages without a requested item.
    count: usize,
    /// Whether a change interrupted the answer.
    is_interrupted: bool,
}

impl Socket {
    /// Opens a socket in the namespace of this thread.
    pub(super) fn open(runtime: Rc<Runtime>) -> io::Result<Self> {
        let socket = {
            let _inside = runtime.enter();
            Datagrams::new(NETLINK_ROUTE)?
        };
        let arrived = Rc::clone(&socket.arrived);
        // Messages without a waiting request, such as the answer to one that timed out, are dropped: there is no
        // receiver.
        let (mut connection, handle, _) = rtnetlink::from_socket(socket);
        connection.set_forward_done(true);
        Ok(Self { connection, handle, arrived, runtime })
    }

    /// Carries out a request that changes something.
    pub(super) fn change(&mut self, request: impl Future<Output = Result<(), Error>>) -> io::Result<()> {
        self.wait(request)?.map_err(failed)
    }

    /// Requests one object; `None` if the link does not exist.
    pub(super) fn get<T>(
        &mut self,
        request: RouteNetlinkMessage,
        each: impl FnMut(RouteNetlinkMessage) -> Option<T>,
    ) -> io::Result<Option<T>> {
        match self.ask(request, NLM_F_ACK, each) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            answer => Ok(answer?.found.pop()),
        }
    }

    /// Requests a list, and keeps the items that `each` returns. Starts again if the list changes while it is read.
    pub(super) fn list<T>(
        &mut self,
        request: &RouteNetlinkMessage,
        mut each: impl FnMut(RouteNetlinkMessage) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        for _ in 0..ATTEMPTS {
            let answer = self.ask(request.clone(), NLM_F_DUMP, &mut each)?;
            if !answer.is_interrupted {
                return Ok(answer.found);
            }
        }
        Err(io::Error::new(io::ErrorKind::Interrupted, "the list changed during every attempt to read it"))
    }

    /// Sends a request and reads the whole answer. A message that cannot be parsed is an error; otherwise its object
    /// would seem not to exist.
    fn ask<T>(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
        mut each: impl FnMut(RouteNetlinkMessage) -> Option<T>,
    ) -> io::Result<Answer<T>> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | flags;
        let mut messages = self.handle.request(message).map_err(failed)?;
        let answer = self.wait(async {
            let mut answer = Answer { found: Vec::new(), count: 0, is_interrupted: false };
            while let Some(message) = messages.next().await {
                answer.is_interrupted |= message.header.flags & NLM_F_DUMP_INTR != 0;
                match message.payload {
                    NetlinkPayload::InnerMessage(message) => {
                        answer.count += 1;
                        answer.found.extend(each(message));
                    }
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::Done(end) if end.code != 0 => {
                        return Err(io::Error::from_raw_os_error(end.code.saturating_abs()));
                    }
                    _ => {}
                }
            }
            Ok(answer)
        })??;
        // The last message ends the answer.
        let all = self.arrived.get().count.saturating_sub(1);
        if answer.count == all {
            return Ok(answer);
        }
        let message = format!(
            "{} of {all} kernel messages about links, addresses or routes cannot be parsed: one of them has an attribute \
             that this version of the daemon does not support, or a text that is not UTF-8",
            all.abs_diff(answer.count),
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }

    /// Drives the connection until `work` completes.
    fn wait<T>(&mut self, work: impl Future<Output = T>) -> io::Result<T> {
        let Self { connection, runtime, .. } = self;
        let work = pin!(work);
        match runtime.block_on(async { timeout(PATIENCE, select(connection, work)).await }) {
            Ok(Either::Right((result, _))) => Ok(result),
            // Otherwise its requests would seem to have been carried out.
            Ok(Either::Left(((), _))) => Err(io::Error::other("the connection to the kernel has closed")),
            Err(_) => {
                let message = format!("the kernel did not answer within {} s", PATIENCE.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            }
        }
    }
}

/// Returns the kernel's error, if the kernel rejected the request.
fn failed(error: Error) -> io::Error {
    match error {
        Error::NetlinkError(message) => message.to_io(),
        error => io::Error::other(error),
    }
}
