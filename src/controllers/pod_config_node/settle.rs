//! Carries out the plan of the node, until nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use metrics::counter;
use tracing::{debug, info, warn};

use super::mark::{LinkKey, Mark};
use super::plan::{Change, Observed, Plan, Settings, Unknown, plan, problem};
use super::records::Desired;
use crate::api::reason::LINK_FAILED;
use crate::controllers::pod_network::LinkProblem;
use crate::netlink::{End, Link, Namespace, NamespaceThread, Socket};

/// How often the plan is made and carried out: a bridge is created, gets its alias and gateways, and is there; one that loses
/// its last port goes after that. The rest is for what changes meanwhile.
const ROUNDS: usize = 6;

/// The node as it is once the plan was carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The node's ends of the links that are wanted.
    pub ends: BTreeMap<LinkKey, Link>,
    /// Those of which no pool says anything.
    pub unknown: BTreeMap<LinkKey, Unknown>,
    /// The bridges into which links may be plugged.
    pub bridges: BTreeMap<String, u32>,
    /// See [`Plan::kept`].
    pub kept: BTreeMap<String, String>,
    /// What keeps a link from being made or removed.
    pub problems: BTreeMap<LinkKey, LinkProblem>,
    /// The links that should be gone and are not.
    pub left: BTreeSet<LinkKey>,
    /// Whether something failed that is to be tried again.
    pub has_failed: bool,
}

/// Brings the node to what is desired. The links of the pods in `busy` are left alone.
///
/// # Errors
/// When the links cannot be read.
pub fn settle(
    thread: &mut NamespaceThread,
    path: &Path,
    desired: &Desired,
    settings: &Settings,
    busy: &BTreeSet<String>,
) -> io::Result<Settled> {
    let mut socket = thread.socket(&Namespace::open(path)?)?;
    let mut failed = BTreeMap::new();
    let mut has_failed = false;
    let mut round = 0;
    loop {
        let plan = planned(&mut socket, desired, settings, busy)?;
        if plan.changes.is_empty() || has_failed || round == ROUNDS {
            return Ok(settled(plan, failed, has_failed));
        }
        round += 1;
        for change in &plan.changes {
            let Err(error) = carry_out(&mut socket, change) else { continue };
            has_failed = true;
            warn!(?change, %error, "the kernel refuses a change of a link");
            counter!("pod_network_failures_total", "reason" => LINK_FAILED.as_str()).increment(1);
            if let Change::DeletePair { mark: Mark { key, .. }, .. } | Change::SetMaster { key, .. } = change
            {
                let message = format!("{}: {error}", described(change));
                failed.insert(key.clone(), problem(LINK_FAILED, message));
            }
        }
    }
}

fn settled(plan: Plan, failed: BTreeMap<LinkKey, LinkProblem>, has_failed: bool) -> Settled {
    let Plan { changes, ends, unknown, bridges, mut kept, mut problems, .. } = plan;
    let mut left = BTreeSet::new();
    for change in changes {
        match change {
            Change::DeletePair { mark, .. } => {
                left.insert(mark.key);
            }
            Change::DeleteBridge { name, .. } => {
                kept.insert(name, "cannot be removed".to_owned());
            }
            _ => {}
        }
    }
    problems.extend(failed);
    Settled { ends, unknown, bridges, kept, problems, left, has_failed }
}

/// The plan of the node as it is now. Routes are read only where something is to be made.
fn planned(
    socket: &mut Socket,
    desired: &Desired,
    settings: &Settings,
    busy: &BTreeSet<String>,
) -> io::Result<Plan> {
    let (links, addresses) = (socket.links()?, socket.addresses()?);
    let mut observed = Observed { links, addresses, routes: None };
    let first = plan(&observed, desired, settings, busy);
    if first.routes.is_empty() {
        return Ok(first);
    }
    observed.routes = Some(socket.routes_into(&first.routes)?);
    Ok(plan(&observed, desired, settings, busy))
}

fn carry_out(socket: &mut Socket, change: &Change) -> io::Result<()> {
    debug!(?change, "changing a link");
    match change {
        Change::DeletePair { index, mark } => {
            socket.delete_link(*index)?;
            let Mark { namespace, key: LinkKey { pod_uid, attachment }, net, .. } = mark;
            info!(namespace, pod_uid, attachment, %net, "the link of a pod is removed");
            counter!("pod_network_links_removed_total").increment(1);
            Ok(())
        }
        Change::DeleteBridge { index, name } => {
            socket.delete_link(*index)?;
            info!(bridge = name, "a bridge is removed that no PodConfig uses");
            Ok(())
        }
        Change::CreateBridge { name, mac } => {
            socket.create_bridge(&End { name: name.clone(), mac: *mac })?;
            info!(bridge = name, "a bridge is made");
            Ok(())
        }
        Change::SetAlias { index, alias } => socket.set_alias(*index, alias),
        Change::SetMac { index, mac } => socket.set_mac(*index, *mac),
        Change::SetUp { index } => socket.set_up(*index),
        Change::SetMaster { index, master, .. } => socket.set_master(*index, *master),
        Change::AddGateway(address) => socket.add_address(address),
        Change::RemoveGateway(address) => socket.remove_address(address),
    }
}

/// What failed, for a sentence.
fn described(change: &Change) -> &'static str {
    match change {
        Change::DeletePair { .. } => "the link cannot be removed",
        Change::SetMaster { .. } => "the link cannot be plugged into its bridge",
        _ => "the link cannot be changed",
    }
}
