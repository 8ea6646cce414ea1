//! Creates, verifies and repairs the links of one pod, in a thread that enters the pod's namespace.

use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use metrics::counter;
use tracing::{debug, info};

use super::locate::{Located, namespace_path};
use super::mark::{LinkKey, Mark, Side, names};
use super::plan::{Observed, Repair, Verdict, overlapped, problem, verify};
use super::records::DesiredLink;
use crate::api::reason::{LINK_FAILED, NAME_CONFLICT, NAME_TOO_LONG, NETWORK_OVERLAP};
use crate::controllers::pod_network::{LONGEST_NAME, LinkProblem};
use crate::netlink::{Address, Link, Namespace, NamespaceThread, NewLink, Pair, Socket, announce};

/// The number of checks, and the pause between them, until a link that was just switched on can pass packets.
const LOOKS: (u32, Duration) = (25, Duration::from_millis(2));

/// A link of a pod that can be created or verified.
#[derive(Debug, Clone)]
pub struct PodLink {
    /// The wanted link.
    pub wanted: DesiredLink,
    /// The last seen state of the node's end.
    pub host: Option<Link>,
    /// The number of the bridge.
    pub master: u32,
}

/// The process of a pod that is used to find its network namespace.
pub enum PodProcess {
    /// The process that the links are named after, or that was located before. It may have ended, and its number may
    /// have been reused. It is the pod's process only if the pod's ends of the links are in its namespace.
    Recalled(u32),
    /// The process that the container runtime has just reported.
    Located(Located),
}

impl PodProcess {
    /// Its number.
    pub fn number(&self) -> u32 {
        match self {
            Self::Recalled(process) | Self::Located(Located { process, .. }) => *process,
        }
    }
}

/// The result of the work on the links of a pod.
pub enum Done {
    /// The recalled process no longer belongs to the pod, or a link must be created: the container runtime must be
    /// queried.
    Ask,
    /// Each link is plugged, or has a problem.
    Links(Vec<(LinkKey, Result<Plugged, LinkProblem>)>),
}

/// A link that is up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugged {
    /// The mark of the link.
    pub mark: Mark,
    /// The bridge, by name and number.
    pub bridge: (String, u32),
    /// The node's end, by name and number.
    pub host: (String, u32),
    /// The name of the pod's end.
    pub pod_link: String,
    /// A problem of the plugged link.
    pub problem: Option<LinkProblem>,
}

/// The sockets on both sides.
struct Sides<'t> {
    thread: &'t mut NamespaceThread,
    here: Socket,
    there: Socket,
    pod: Namespace,
    /// The process of the pod if links may be created, because the container runtime has just reported it.
    process: Option<u32>,
}

/// Creates, verifies and repairs links of a pod. The function is idempotent: existing links are only checked.
pub fn work(
    thread: &mut NamespaceThread,
    links: &[PodLink],
    process: PodProcess,
    proc: &Path,
    node_namespace: &Path,
) -> Done {
    match Sides::open(thread, process, proc, node_namespace) {
        Ok(Some(mut sides)) => sides.links(links),
        Ok(None) => Done::Ask,
        Err(message) => failed(links, message),
    }
}

/// The result if all links of a pod fail for the same reason.
fn failed(links: &[PodLink], message: String) -> Done {
    let found = problem(LINK_FAILED, message);
    Done::Links(links.iter().map(|link| (link.key(), Err(found.clone()))).collect())
}

impl<'t> Sides<'t> {
    /// Opens both namespaces; `None` if the process must be located first. The error is a sentence.
    fn open(
        thread: &'t mut NamespaceThread,
        process: PodProcess,
        proc: &Path,
        node_namespace: &Path,
    ) -> Result<Option<Self>, String> {
        let failed = |error: io::Error| {
            format!("the network namespace {} cannot be used: {error}", node_namespace.display())
        };
        let node = Namespace::open(node_namespace).map_err(failed)?;
        let (pod, process) = match process {
            PodProcess::Located(Located { process, namespace }) => (namespace, Some(process)),
            PodProcess::Recalled(process) => match Namespace::open(&namespace_path(proc, process)) {
                Ok(namespace) => (namespace, None),
                Err(_) => return Ok(None),
            },
        };
        if pod.id == node.id {
            let message = "the pod uses the host network and gets no link".to_owned();
            return process.map_or(Ok(None), |_| Err(message));
        }
        let here = thread.socket(&node).map_err(failed)?;
        // The thread stays in the pod's namespace, because it announces addresses from there.
        let there =
            thread.socket(&pod).map_err(|error| format!("the pod's network cannot be entered: {error}"))?;
        Ok(Some(Self { thread, here, there, pod, process }))
    }

    fn links(&mut self, items: &[PodLink]) -> Done {
        let inside = match self.inside(items) {
            Ok(inside) => inside,
            Err(error) => return failed(items, format!("the links of the pod cannot be read: {error}")),
        };
        let mut done = Vec::new();
        for item in items {
            match self.link(item, &inside) {
                Ok(Some(plugged)) => done.push((item.key(), Ok(plugged))),
                Ok(None) => return Done::Ask,
                Err(problem) => done.push((item.key(), Err(problem))),
            }
        }
        Done::Links(done)
    }

    fn inside(&mut self, items: &[PodLink]) -> io::Result<Observed> {
        let ranges: Vec<_> = items.iter().map(|item| item.wanted.mark.net.trunc()).collect();
        let (links, addresses) = (self.there.links()?, self.there.addresses()?);
        Ok(Observed { links, addresses, routes: Some(self.there.routes_into(&ranges)?) })
    }

    /// Creates or verifies a link; `None` if the link must be created and the process is not located.
    fn link(&mut self, item: &PodLink, inside: &Observed) -> Result<Option<Plugged>, LinkProblem> {
        let mark = &item.wanted.mark;
        let failed = |error: io::Error| problem(LINK_FAILED, format!("the link cannot be changed: {error}"));
        let host = self.host(item, &inside.links).map_err(failed)?;
        let verdict = host.as_ref().map(|host| (host, verify(mark, host, &inside.links, &inside.addresses)));
        let range = mark.net.trunc();
        let overlap = overlapped(inside, &range).map(|what| {
            let message = format!("the pod already uses {range} through {what}: choose another range");
            problem(NETWORK_OVERLAP, message)
        });
        let (host, end, repairs) = match (verdict, self.process) {
            (Some((host, Verdict::Repair(end, repairs))), _) => (host.clone(), end, repairs),
            (_, None) => return Ok(None),
            (rebuilt, Some(process)) => {
                may_be_made(&item.wanted, overlap.as_ref())?;
                if let Some((host, _)) = rebuilt {
                    self.here.delete_link(host.index).map_err(failed)?;
                    counter!("pod_network_links_removed_total").increment(1);
                }
                let (host, end) = self.make(item, process)?;
                (host, end, vec![Repair::Alias, Repair::Address, Repair::Up])
            }
        };
        self.repair(mark, &host, &end, &repairs).map_err(failed)?;
        let (bridge, host) = ((item.wanted.bridge.clone(), item.master), (host.name, host.index));
        Ok(Some(Plugged { mark: mark.clone(), bridge, host, pod_link: end.name, problem: overlap }))
    }

    /// The current state of the node's end. The previously seen end may be gone, and its number may have been reused.
    /// If the link was created since then, the pod's end leads to it.
    fn host(&mut self, item: &PodLink, inside: &[Link]) -> io::Result<Option<Link>> {
        let mark = &item.wanted.mark;
        let is_end = |link: &Link, side: Side| {
            link.alias == mark.alias(side) || link.alias.is_empty() && link.mac == Some(mark.mac(side))
        };
        let ends = inside.iter().filter(|end| is_end(end, Side::Pod)).map(|end| end.peer);
        for index in item.host.iter().map(|host| host.index).chain(ends) {
            if let Some(host) = self.here.link(index)?.filter(|host| is_end(host, Side::Node)) {
                return Ok(Some(host));
            }
        }
        Ok(None)
    }

    /// Creates a pair, and returns both ends.
    fn make(&mut self, item: &PodLink, process: u32) -> Result<(Link, Link), LinkProblem> {
        let (mark, attachment) = (&item.wanted.mark, &item.wanted.mark.key.attachment);
        let (there, here) = names(attachment, process);
        if here.len() > LONGEST_NAME {
            let message = format!(
                "the link name {here} of attachment {attachment} has more than {LONGEST_NAME} bytes: give the \
                 attachment a name of at most {} characters",
                (LONGEST_NAME + attachment.len()).saturating_sub(here.len())
            );
            return Err(problem(NAME_TOO_LONG, message));
        }
        let end = |name: &String, side: Side| NewLink { name: name.clone(), mac: mark.mac(side) };
        let pair = Pair { here: end(&here, Side::Node), master: item.master, there: end(&there, Side::Pod) };
        let failed =
            |error: io::Error| problem(LINK_FAILED, format!("the link {here} cannot be created: {error}"));
        match self.here.create_pair(&pair, &self.pod) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_here = self.here.link_named(&here).map_err(failed)?.is_some();
                let (name, place) = if is_here { (&here, "of the node") } else { (&there, "in the pod") };
                let message = format!("a link {place} already has the name {name} and is not changed");
                return Err(problem(NAME_CONFLICT, message));
            }
            created => created.map_err(failed)?,
        }
        counter!("pod_network_links_made_total").increment(1);
        let gone = || problem(LINK_FAILED, format!("the link {here} was removed while it was being created"));
        let host = self.here.link_named(&here).map_err(failed)?.ok_or_else(gone)?;
        let end = self.there.link(host.peer).map_err(failed)?.ok_or_else(gone)?;
        self.here.set_alias(host.index, &mark.alias(Side::Node)).map_err(failed)?;
        let Mark { namespace, key: LinkKey { pod_uid, .. }, net, .. } = mark;
        info!(namespace, pod = item.wanted.pod, pod_uid, attachment, %net, link = here, "the link of a pod is created");
        Ok((host, end))
    }

    /// Repairs the pod's end.
    fn repair(&mut self, mark: &Mark, host: &Link, end: &Link, repairs: &[Repair]) -> io::Result<()> {
        for repair in repairs {
            match repair {
                Repair::Alias => self.there.set_alias(end.index, &mark.alias(Side::Pod))?,
                Repair::Address => self.there.add_address(&Address { link: end.index, net: mark.net })?,
                Repair::Up => self.there.set_up(end.index)?,
            }
        }
        if repairs.contains(&Repair::Address) {
            let (looks, pause) = LOOKS;
            let mut looks = 0..looks;
            while !self.here.link(host.index)?.is_none_or(|host| host.is_operational)
                && looks.next().is_some()
            {
                sleep(pause);
            }
            // Neighbours that miss the announcement learn the address later on their own.
            if let Err(error) = announce(self.thread, mark.net) {
                debug!(%error, link = end.name, "an address cannot be announced");
            }
        }
        Ok(())
    }
}

/// Checks whether a link may be created, given the pod's network that its range overlaps, if any.
fn may_be_made(wanted: &DesiredLink, overlap: Option<&LinkProblem>) -> Result<(), LinkProblem> {
    if wanted.is_ending {
        let message = "the pod is being deleted, so its damaged link is not recreated";
        return Err(problem(LINK_FAILED, message));
    }
    overlap.cloned().map_or(Ok(()), Err)
}

impl PodLink {
    /// The link.
    pub fn key(&self) -> LinkKey {
        self.wanted.mark.key.clone()
    }
}
