//! The bridges, their gateways, and the pairs plugged into each of them.

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

/// The kind of a bridge.
enum Bridge<'o> {
    /// Ours, or about to be created (`None`), for this namespace.
    Ours(Option<&'o Link>, String),
    /// A foreign bridge that the configuration allows.
    Allowed(&'o Link),
    /// A bridge that must not be used.
    Refused(LinkProblem),
}

pub(super) fn plan(view: &View<'_>, busy: &BTreeSet<String>, plan: &mut Plan) {
    let View { desired, settings, .. } = view;
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

/// Plugs in the pairs that are plugged in elsewhere or nowhere.
fn plug(master: u32, links: &[&DesiredLink], busy: &BTreeSet<String>, plan: &mut Plan) {
    for DesiredLink { mark, .. } in links {
        let is_busy = busy.contains(&mark.key.pod_uid) || plan.problems.contains_key(&mark.key);
        if let Some(end) = plan.ends.get(&mark.key).filter(|end| end.master != master && !is_busy) {
            plan.changes.push(LinkChange::SetMaster { index: end.index, master, key: mark.key.clone() });
        }
    }
}

/// Whether the link exists or will be created, so that its bridge is needed.
fn can_be_there(wanted: &DesiredLink, plan: &Plan) -> bool {
    let key = &wanted.mark.key;
    !plan.problems.contains_key(key) && (!wanted.is_ending || plan.ends.contains_key(key))
}

/// The node, and the state that it should have.
pub(super) struct View<'o> {
    pub observed: &'o Observed,
    pub desired: &'o Desired,
    pub settings: &'o Settings,
}

impl<'o> View<'o> {
    /// The kind of the bridge with this name.
    fn bridge(&self, name: &str, users: &Users) -> Bridge<'o> {
        let refused = |what: String| Bridge::Refused(problem(BRIDGE_CONFLICT, what));
        let (node, first) = (&self.settings.node, users.keys().next().cloned().unwrap_or_default());
        let is_allowed = self.settings.allowed_bridges.contains(name);
        let Some(link) = self.observed.links.iter().find(|link| link.name == name) else {
            return if is_allowed {
                refused(format!("the bridge {name} is listed in allowedBridges but does not exist on {node}"))
            } else {
                Bridge::Ours(None, first)
            };
        };
        if link.kind != "bridge" {
            return refused(format!("the link {name} of {node} is not a bridge"));
        }
        match self.owner(link) {
            // It stays with its namespace while a pool of that namespace names it.
            Some(namespace) if users.contains_key(namespace) => {
                Bridge::Ours(Some(link), namespace.to_owned())
            }
            Some(_) => Bridge::Ours(Some(link), first),
            None if is_allowed => Bridge::Allowed(link),
            None => refused(format!(
                "the bridge {name} of {node} was not created by the daemon and is not listed in allowedBridges"
            )),
        }
    }

    /// The namespace of a bridge of ours, empty while the bridge has no alias yet; `None` for a foreign bridge.
    fn owner(&self, link: &'o Link) -> Option<&'o str> {
        let is_new = link.alias.is_empty() && link.mac == Some(bridge_mac(&self.settings.node, &link.name));
        bridge_namespace(&link.alias).or(is_new.then_some(""))
    }

    /// Keeps a bridge of ours up to date.
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

    /// Refuses links whose range is used elsewhere on the node, unless links in that range already exist.
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
            if let Ok(Some(what)) = self.overlap(bridge, &range, plan) {
                let message = format!("{range} overlaps {what} of {}", self.settings.node);
                let refused = problem(NETWORK_OVERLAP, message);
                let refused = of_range().map(|wanted| (wanted.mark.key.clone(), refused.clone()));
                plan.problems.extend(refused);
            }
        }
    }

    /// Describes the address or route of the node that a range overlaps, on any link except this bridge. An error if
    /// the routes were not read yet.
    fn overlap(&self, bridge: u32, range: &IpNet, plan: &mut Plan) -> Result<Option<String>, ()> {
        let found = self.observed.overlap(range, "the", |index| index == bridge && bridge != 0);
        found.inspect_err(|()| plan.routes.push(range.trunc()))
    }

    /// Deletes our bridges that no pool names and that have no ports. A bridge that is about to lose its last port is
    /// deleted by the next plan. A bridge with a foreign port stays.
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
                foreign.map(|port| (link.name.clone(), format!("has the foreign port {}", port.name))),
            );
        }
    }
}

/// Whether an address is the first host address of its range, as the gateways on our bridges are. Other addresses may
/// have been added by an administrator.
fn is_gateway(net: &IpNet) -> bool {
    net.addr() == gateway(net)
}
