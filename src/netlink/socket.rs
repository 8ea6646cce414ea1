//! A socket that sends a request and waits for its answer. The requests and answers are those of rtnetlink; here is that they
//! end, and that what was not understood is an error.

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

/// How long an answer may take. Changes of links wait for each other, in the whole kernel.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a list is begun again that changed while it was read.
const ATTEMPTS: usize = 5;

/// A socket in a network namespace. It is used in the thread that opened it.
pub struct Socket {
    connection: Connection<RouteNetlinkMessage, Datagrams>,
    pub(super) handle: Handle,
    arrived: Rc<Cell<Arrived>>,
    runtime: Rc<Runtime>,
}

/// What the kernel has answered.
struct Answer<T> {
    /// What was asked for.
    found: Vec<T>,
    /// How many messages were read, with those that say something else.
    count: usize,
    /// Whether something has changed while it was put together.
    is_interrupted: bool,
}

impl Socket {
    /// A socket in the namespace of this thread.
    pub(super) fn open(runtime: Rc<Runtime>) -> io::Result<Self> {
        let socket = {
            let _inside = runtime.enter();
            Datagrams::new(NETLINK_ROUTE)?
        };
        let arrived = socket.arrived();
        // Messages that answer no request that is waited for, such as one that took too long, are dropped: there is no receiver.
        let (mut connection, handle, _) = rtnetlink::from_socket(socket);
        connection.set_forward_done(true);
        Ok(Self { connection, handle, arrived, runtime })
    }

    /// Carries out a request that changes something.
    pub(super) fn change(&mut self, request: impl Future<Output = Result<(), Error>>) -> io::Result<()> {
        self.wait(request)?.map_err(failed)
    }

    /// Asks for one object; `None` if there is no such link.
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

    /// Asks for a list, of which those are kept that `each` returns. What changes while it is read makes it begin again.
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
        Err(io::Error::new(io::ErrorKind::Interrupted, "the list changed each time while it was read"))
    }

    /// Asks, and reads the answer to its end. An answer of which a message cannot be read is an error, because what it is about
    /// would seem not to be there.
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
            "{} of {all} messages of the kernel about links, addresses or routes cannot be read: one of them has a property \
             that this version of the daemon does not know, or a text that is not UTF-8",
            all.abs_diff(answer.count),
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }

    /// Waits for what the connection brings about.
    fn wait<T>(&mut self, work: impl Future<Output = T>) -> io::Result<T> {
        let Self { connection, runtime, .. } = self;
        let work = pin!(work);
        match runtime.block_on(async { timeout(PATIENCE, select(connection, work)).await }) {
            Ok(Either::Right((result, _))) => Ok(result),
            // Its requests would seem to be carried out.
            Ok(Either::Left(((), _))) => Err(io::Error::other("the connection to the kernel has ended")),
            Err(_) => {
                let message = format!("the kernel has not answered within {} s", PATIENCE.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            }
        }
    }
}

/// The kernel's reason, if it has refused a request.
fn failed(error: Error) -> io::Error {
    match error {
        Error::NetlinkError(message) => message.to_io(),
        error => io::Error::other(error),
    }
}
