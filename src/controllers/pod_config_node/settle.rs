//! Carries out the plan of the node, until nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use metrics::counter;
use tracing::{debug, info, warn};

use super::mark::{LinkKey, Mark};
use super::plan::{LinkChange, Observed, Plan, Settings, plan, problem};
use super::records::Desired;
use crate::api::reason::LINK_FAILED;
use crate::controllers::pod_network::LinkProblem;
use crate::netlink::{Namespace, NamespaceThread, NewLink, Socket};

/// How often the plan is made and carried out: a bridge is created, gets its alias and gateways, and is there; one that loses
/// its last port goes after that. The rest is for what changes meanwhile.
const ROUNDS: usize = 6;

/// Brings the node to what is desired, and returns the plan that is left. The links of the pods in `busy` are left alone.
///
/// # Errors
/// When the links cannot be read.
pub fn settle(
    thread: &mut NamespaceThread,
    path: &Path,
    desired: &Desired,
    settings: &Settings,
    busy: &BTreeSet<String>,
) -> io::Result<Plan> {
    let mut socket = thread.socket(&Namespace::open(path)?)?;
    let mut failed = BTreeMap::new();
    let mut has_failed = false;
    let mut round = 0;
    loop {
        let mut plan = planned(&mut socket, desired, settings, busy)?;
        if plan.changes.is_empty() || has_failed || round == ROUNDS {
            plan.finish(failed, has_failed);
            return Ok(plan);
        }
        round += 1;
        for change in &plan.changes {
            let Err(error) = carry_out(&mut socket, change) else { continue };
            has_failed = true;
            warn!(?change, %error, "the kernel refuses a change of a link");
            counter!("pod_network_failures_total", "reason" => LINK_FAILED.as_str()).increment(1);
            if let LinkChange::DeletePair { mark: Mark { key, .. }, .. } | LinkChange::SetMaster { key, .. } =
                change
            {
                let message = format!("{}: {error}", described(change));
                failed.insert(key.clone(), problem(LINK_FAILED, message));
            }
        }
    }
}

impl Plan {
    /// Notes what is left after it was carried out: its last changes, and what failed.
    fn finish(&mut self, failed: BTreeMap<LinkKey, LinkProblem>, has_failed: bool) {
        for change in &self.changes {
            match change {
                LinkChange::DeletePair { mark, .. } => {
                    self.left.insert(mark.key.clone());
                }
                LinkChange::DeleteBridge { name, .. } => {
                    self.kept.insert(name.clone(), "cannot be removed".to_owned());
                }
                _ => {}
            }
        }
        self.problems.extend(failed);
        self.has_failed = has_failed;
    }
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

fn carry_out(socket: &mut Socket, change: &LinkChange) -> io::Result<()> {
    debug!(?change, "changing a link");
    match change {
        LinkChange::DeletePair { index, mark } => {
            socket.delete_link(*index)?;
            let Mark { namespace, key: LinkKey { pod_uid, attachment }, net, .. } = mark;
            info!(namespace, pod_uid, attachment, %net, "the link of a pod is removed");
            counter!("pod_network_links_removed_total").increment(1);
            Ok(())
        }
        LinkChange::DeleteBridge { index, name } => {
            socket.delete_link(*index)?;
            info!(bridge = name, "a bridge is removed that no PodConfig uses");
            Ok(())
        }
        LinkChange::CreateBridge { name, mac } => {
            socket.create_bridge(&NewLink { name: name.clone(), mac: *mac })?;
            info!(bridge = name, "a bridge is made");
            Ok(())
        }
        LinkChange::SetAlias { index, alias } => socket.set_alias(*index, alias),
        LinkChange::SetMac { index, mac } => socket.set_mac(*index, *mac),
        LinkChange::SetUp { index } => socket.set_up(*index),
        LinkChange::SetMaster { index, master, .. } => socket.set_master(*index, *master),
        LinkChange::AddGateway(address) => socket.add_address(address),
        LinkChange::RemoveGateway(address) => socket.remove_address(address),
    }
}

/// What failed, for a sentence.
fn described(change: &LinkChange) -> &'static str {
    match change {
        LinkChange::DeletePair { .. } => "the link cannot be removed",
        LinkChange::SetMaster { .. } => "the link cannot be plugged into its bridge",
        _ => "the link cannot be changed",
    }
}
