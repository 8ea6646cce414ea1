//! The bridges, with their gateways, and which pairs are plugged into which.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::{LinkChange, Observed, Plan, Settings, problem};
use crate::api::ip_range::gateway;
use crate::api::reason::{BRIDGE_CONFLICT, NETWORK_OVERLAP};
use crate::controllers::pod_config_node::mark::{Mark, bridge_alias, bridge_mac, bridge_namespace};
use crate::controllers::pod_config_node::records::{Desired, DesiredLink};
use crate::controllers::pod_network::LinkProblem;
use crate::netlink::{Address, Link};

/// The namespaces that use a bridge, each with its gateways.
type Users = BTreeMap<String, BTreeSet<IpNet>>;

/// What a bridge is.
enum Bridge<'o> {
    /// Ours, or about to be made (`None`), for this namespace.
    Ours(Option<&'o Link>, String),
    /// A foreign one that the configuration allows.
    Allowed(&'o Link),
    /// Not to be used.
    Refused(LinkProblem),
}

pub(super) fn plan(
    observed: &Observed,
    desired: &Desired,
    settings: &Settings,
    busy: &BTreeSet<String>,
    plan: &mut Plan,
) {
    let view = View { observed, desired, settings };
    for (name, users) in &desired.bridges {
        let links: Vec<&DesiredLink> =
            desired.wanted.values().filter(|wanted| wanted.bridge == *name).collect();
        match view.bridge(name, users) {
            Bridge::Refused(problem) => {
                plan.problems.extend(links.iter().map(|wanted| (wanted.mark.key.clone(), problem.clone())));
            }
            Bridge::Allowed(link) => {
                plan.bridges.insert(name.clone(), link.index);
                view.refuse_overlaps(link.index, &links, plan);
                plug(link.index, &links, busy, plan);
            }
            Bridge::Ours(link, namespace) => {
                let (own, others): (Vec<_>, Vec<_>) =
                    links.into_iter().partition(|wanted| wanted.mark.namespace == namespace);
                for wanted in others {
                    let message = format!("the bridge {name} is used by the namespace {namespace}");
                    plan.problems.insert(wanted.mark.key.clone(), problem(BRIDGE_CONFLICT, message));
                }
                view.refuse_overlaps(link.map_or(0, |link| link.index), &own, plan);
                if let Some(link) = link {
                    view.keep(link, &namespace, users, plan);
                    plan.bridges.insert(name.clone(), link.index);
                    plug(link.index, &own, busy, plan);
                } else if own.iter().any(|wanted| can_be_there(wanted, plan)) && plan.routes.is_empty() {
                    let mac = bridge_mac(&settings.node, name);
                    plan.changes.push(LinkChange::CreateBridge { name: name.clone(), mac });
                }
            }
        }
    }
    view.sweep(plan);
}

/// Plugs those pairs in that are plugged in elsewhere, or nowhere.
fn plug(master: u32, links: &[&DesiredLink], busy: &BTreeSet<String>, plan: &mut Plan) {
    for DesiredLink { mark, .. } in links {
        let is_busy = busy.contains(&mark.key.pod_uid) || plan.problems.contains_key(&mark.key);
        if let Some(end) = plan.ends.get(&mark.key).filter(|end| end.master != master && !is_busy) {
            plan.changes.push(LinkChange::SetMaster { index: end.index, master, key: mark.key.clone() });
        }
    }
}

/// Whether there is or will be a link, so that its bridge is needed.
fn can_be_there(wanted: &DesiredLink, plan: &Plan) -> bool {
    let key = &wanted.mark.key;
    !plan.problems.contains_key(key) && (!wanted.is_ending || plan.ends.contains_key(key))
}

struct View<'o> {
    observed: &'o Observed,
    desired: &'o Desired,
    settings: &'o Settings,
}

impl<'o> View<'o> {
    /// What the bridge of that name is.
    fn bridge(&self, name: &str, users: &Users) -> Bridge<'o> {
        let refused = |what: String| Bridge::Refused(problem(BRIDGE_CONFLICT, what));
        let (node, first) = (&self.settings.node, users.keys().next().cloned().unwrap_or_default());
        let is_allowed = self.settings.allowed_bridges.contains(name);
        let Some(link) = self.observed.links.iter().find(|link| link.name == name) else {
            return if is_allowed {
                refused(format!("the bridge {name}, which allowedBridges names, does not exist on {node}"))
            } else {
                Bridge::Ours(None, first)
            };
        };
        if link.kind != "bridge" {
            return refused(format!("the link {name} of {node} is not a bridge"));
        }
        match self.owner(link) {
            // It stays with its namespace as long as a pool of that names it.
            Some(namespace) if users.contains_key(namespace) => {
                Bridge::Ours(Some(link), namespace.to_owned())
            }
            Some(_) => Bridge::Ours(Some(link), first),
            None if is_allowed => Bridge::Allowed(link),
            None => refused(format!(
                "the bridge {name} of {node} is not one of the daemon's, and allowedBridges does not name it"
            )),
        }
    }

    /// The namespace of a bridge of ours, empty while it has no alias yet; `None` for one of others.
    fn owner(&self, link: &'o Link) -> Option<&'o str> {
        let is_new = link.alias.is_empty() && link.mac == Some(bridge_mac(&self.settings.node, &link.name));
        bridge_namespace(&link.alias).or(is_new.then_some(""))
    }

    /// Keeps a bridge of ours as it should be.
    fn keep(&self, link: &Link, namespace: &str, users: &Users, plan: &mut Plan) {
        let (index, mac) = (link.index, bridge_mac(&self.settings.node, &link.name));
        let alias = bridge_alias(namespace);
        if link.alias != alias {
            plan.changes.push(LinkChange::SetAlias { index, alias });
        }
        if link.mac != Some(mac) {
            plan.changes.push(LinkChange::SetMac { index, mac });
        }
        if !link.is_up {
            plan.changes.push(LinkChange::SetUp { index });
        }
        let none = BTreeSet::new();
        let gateways = users.get(namespace).unwrap_or(&none);
        let found: Vec<&Address> =
            self.observed.addresses.iter().filter(|address| address.link == index).collect();
        for net in gateways.iter().filter(|net| !found.iter().any(|address| address.net == **net)) {
            if let Ok(None) = self.overlap(index, net, plan) {
                plan.changes.push(LinkChange::AddGateway(Address { link: index, net: *net }));
            }
        }
        for address in found.into_iter().filter(|address| !gateways.contains(&address.net)) {
            if is_gateway(&address.net) && self.desired.unreadable.is_empty() {
                plan.changes.push(LinkChange::RemoveGateway(*address));
            }
        }
    }

    /// Refuses links whose range is used elsewhere on the node, unless there are links of that range already.
    fn refuse_overlaps(&self, bridge: u32, links: &[&DesiredLink], plan: &mut Plan) {
        let gateways = |range: &IpNet| {
            let found = |address: &&Address| address.link == bridge && address.net.trunc() == *range;
            self.observed.addresses.iter().any(|address| found(&address) && is_gateway(&address.net))
        };
        let ranges: BTreeSet<IpNet> = links.iter().map(|wanted| wanted.mark.net.trunc()).collect();
        for range in ranges {
            let of_range = || links.iter().filter(|wanted| wanted.mark.net.trunc() == range);
            let is_used = of_range().any(|wanted| plan.ends.contains_key(&wanted.mark.key));
            if is_used || gateways(&range) {
                continue;
            }
            match self.overlap(bridge, &range, plan) {
                Ok(None) | Err(()) => {}
                Ok(Some(what)) => {
                    let message = format!("{range} overlaps {what} of {}", self.settings.node);
                    let refused = problem(NETWORK_OVERLAP, message);
                    let keys: Vec<_> = of_range().map(|wanted| wanted.mark.key.clone()).collect();
                    plan.problems.extend(keys.into_iter().map(|key| (key, refused.clone())));
                }
            }
        }
    }

    /// The address or route of the node on a link other than this bridge that a range overlaps, in words; an error where the
    /// routes were not read yet.
    fn overlap(&self, bridge: u32, range: &IpNet, plan: &mut Plan) -> Result<Option<String>, ()> {
        let found = self.observed.overlap(range, "the", |index| index == bridge && bridge != 0);
        found.inspect_err(|()| plan.routes.push(range.trunc()))
    }

    /// Deletes the bridges of ours that no pool names, and that have no ports. Those that lose their last port now go when the
    /// plan is made again; those with a port of others stay.
    fn sweep(&self, plan: &mut Plan) {
        if !self.desired.unreadable.is_empty() {
            return;
        }
        for link in self.observed.links.iter().filter(|link| link.kind == "bridge") {
            let is_unused = !self.desired.bridges.contains_key(&link.name) && self.owner(link).is_some();
            if !is_unused {
                continue;
            }
            let ports = || self.observed.links.iter().filter(|port| port.master == link.index);
            if ports().next().is_none() {
                plan.changes.push(LinkChange::DeleteBridge { index: link.index, name: link.name.clone() });
            }
            let foreign = ports().find(|port| Mark::read(&port.alias).is_none());
            plan.kept.extend(
                foreign.map(|port| (link.name.clone(), format!("has the port {} of others", port.name))),
            );
        }
    }
}

/// Whether an address is the first of its range that a host can have, as the gateways on bridges of ours are. An administrator may have
/// given them others.
fn is_gateway(net: &IpNet) -> bool {
    net.addr() == gateway(net)
}
