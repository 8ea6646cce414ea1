//! Carries out the plan of the node until no change is left.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use metrics::counter;
use tracing::{debug, info, warn};

use super::mark::{LinkKey, Mark};
use super::plan::{LinkChange, Observed, Plan, problem};
use crate::api::reason::LINK_FAILED;
use crate::controllers::pod_network::LinkProblem;
use crate::netlink::{Namespace, NamespaceThread, NewLink, Socket};

/// The maximum number of rounds of planning and changing. A bridge needs several rounds: it is created, then gets its
/// alias and gateways, and is used after that. A bridge that loses its last port is deleted one round later. The
/// remaining rounds are for concurrent changes.
const ROUNDS: usize = 6;

/// Brings the node to the desired state, for which `plan` returns the changes, and returns the remaining plan.
///
/// # Errors
/// If the links cannot be read.
pub fn settle<P: Fn(&Observed) -> Plan>(
    thread: &mut NamespaceThread,
    path: &Path,
    plan: P,
) -> io::Result<Plan> {
    let mut socket = thread.socket(&Namespace::open(path)?)?;
    let mut failed = BTreeMap::new();
    // A change that the kernel refused is not retried here, and does not block the other changes.
    let mut refused: Vec<LinkChange> = Vec::new();
    let mut round = 0;
    loop {
        let mut plan = planned(&mut socket, &plan)?;
        let changes: Vec<LinkChange> =
            plan.changes.iter().filter(|change| !refused.contains(change)).cloned().collect();
        if changes.is_empty() || round == ROUNDS {
            plan.finish(failed, !refused.is_empty());
            return Ok(plan);
        }
        round += 1;
        for change in &changes {
            let Err(error) = carry_out(&mut socket, change) else { continue };
            refused.push(change.clone());
            warn!(?change, %error, "the kernel rejects a change of a link");
            counter!("pod_network_failures_total", "reason" => LINK_FAILED.as_str()).increment(1);
            let (key, what) = match change {
                LinkChange::DeletePair { mark, .. } => (&mark.key, "the link cannot be removed"),
                LinkChange::SetMaster { key, .. } => (key, "the link cannot be plugged into its bridge"),
                _ => continue,
            };
            failed.insert(key.clone(), problem(LINK_FAILED, format!("{what}: {error}")));
        }
    }
}

impl Plan {
    /// Records the remaining changes and the failures after the plan was carried out.
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

/// The plan for the current state of the node. Routes are read only if something is to be created.
fn planned(socket: &mut Socket, plan: impl Fn(&Observed) -> Plan) -> io::Result<Plan> {
    let (links, addresses) = (socket.links()?, socket.addresses()?);
    let mut observed = Observed { links, addresses, routes: None };
    let first = plan(&observed);
    if first.routes.is_empty() {
        return Ok(first);
    }
    observed.routes = Some(socket.routes_into(&first.routes)?);
    Ok(plan(&observed))
}

fn carry_out(socket: &mut Socket, change: &LinkChange) -> io::Result<()> {
    debug!(?change, "changing a link");
    match change {
        LinkChange::DeletePair { index, mark } => {
            socket.delete_link(*index)?;
            let Mark { namespace, key: LinkKey { pod_uid, attachment }, net, .. } = mark;
            info!(namespace, pod_uid, attachment, %net, "the link of a pod is removed");
            counter!("pod_network_links_removed_total").increment(1);
        }
        LinkChange::DeleteBridge { index, name } => {
            socket.delete_link(*index)?;
            info!(bridge = name, "a bridge that no PodConfig uses is removed");
        }
        LinkChange::CreateBridge { name, mac } => {
            socket.create_bridge(&NewLink { name: name.clone(), mac: *mac })?;
            info!(bridge = name, "a bridge is created");
        }
        LinkChange::SetAlias { index, alias } => socket.set_alias(*index, alias)?,
        LinkChange::SetMac { index, mac } => socket.set_mac(*index, *mac)?,
        LinkChange::SetUp { index } => socket.set_up(*index)?,
        LinkChange::SetMaster { index, master, .. } => socket.set_master(*index, *master)?,
        LinkChange::AddGateway(address) => socket.add_address(address)?,
        LinkChange::RemoveGateway(address) => socket.remove_address(address)?,
    }
    Ok(())
}
