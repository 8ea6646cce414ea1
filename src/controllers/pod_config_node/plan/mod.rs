//! The plan of the node: which of its links are to be deleted, changed or made. A pure function of what there is, and of what
//! the pools ask for. It is made again after it was carried out, until nothing is left to do; nothing that is not ours is
//! ever part of it.
//!
//! | file | what is planned |
//! |---|---|
//! | `ends.rs` | the node's ends of veth pairs: which stay, which go |
//! | `bridges.rs` | the bridges, with their gateways; which pairs are plugged into which |
//! | `pod.rs` | the pairs of one pod, once its namespace is open |

mod bridges;
mod ends;
mod pod;

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::mark::{LinkKey, Mark};
use super::records::Desired;
use crate::api::ip_range::overlap;
use crate::api::reason::Reason;
use crate::controllers::pod_network::LinkProblem;
use crate::netlink::{Address, Link, Mac, Route};

pub use pod::{Repair, Verdict, overlapped, verify};

/// The links of the node, or of a pod.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// All links.
    pub links: Vec<Link>,
    /// All addresses.
    pub addresses: Vec<Address>,
    /// The routes into certain ranges: on the node into those of [`Plan::routes`]; `None` if they were not read.
    pub routes: Option<Vec<Route>>,
}

impl Observed {
    /// The link of that number.
    pub fn link(&self, index: u32) -> Option<&Link> {
        self.links.iter().find(|link| link.index == index)
    }

    /// The address or route that a range overlaps, in words with `article` before the link, on a link other than those that
    /// `is_left_out` names; an error where the routes were not read.
    fn overlap(
        &self,
        range: &IpNet,
        article: &str,
        is_left_out: impl Fn(u32) -> bool,
    ) -> Result<Option<String>, ()> {
        let name = |index: u32| {
            self.link(index)
                .map_or_else(|| "no link".to_owned(), |link| format!("{article} link {}", link.name))
        };
        let mut addresses = self.addresses.iter().filter(|address| !is_left_out(address.link));
        if let Some(found) = addresses.find(|address| overlap(&address.net, range)) {
            return Ok(Some(format!("the address {} on {}", found.net, name(found.link))));
        }
        let mut routes = self.routes.as_ref().ok_or(())?.iter().filter(|route| !is_left_out(route.link));
        let found = routes.find(|route| overlap(&route.range, range));
        Ok(found.map(|route| format!("the route to {} by {}", route.range, name(route.link))))
    }
}

/// What does not change while the process runs.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The name of the node.
    pub node: String,
    /// The bridges of others that get ports.
    pub allowed_bridges: BTreeSet<String>,
}

/// A change on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkChange {
    /// Delete the node's end of a pair, and the pod's end with it.
    DeletePair {
        /// Its number.
        index: u32,
        /// Its mark.
        mark: Mark,
    },
    /// Delete a bridge.
    DeleteBridge {
        /// Its number.
        index: u32,
        /// Its name.
        name: String,
    },
    /// Create a bridge.
    CreateBridge {
        /// Its name.
        name: String,
        /// Its hardware address.
        mac: Mac,
    },
    /// Give a link of ours its alias.
    SetAlias {
        /// Its number.
        index: u32,
        /// The alias.
        alias: String,
    },
    /// Give a bridge of ours its hardware address back.
    SetMac {
        /// Its number.
        index: u32,
        /// The hardware address.
        mac: Mac,
    },
    /// Switch a link of ours on.
    SetUp {
        /// Its number.
        index: u32,
    },
    /// Plug the node's end of a pair into a bridge.
    SetMaster {
        /// Its number.
        index: u32,
        /// That of the bridge.
        master: u32,
        /// The link, which fails if this does.
        key: LinkKey,
    },
    /// Give a bridge of ours the gateway of a range.
    AddGateway(Address),
    /// Take the gateway of a range that is not used any more from a bridge of ours.
    RemoveGateway(Address),
}

/// What is to be done, or, once it was carried out, what is left of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The changes, in this order.
    pub changes: Vec<LinkChange>,
    /// The ranges into which the routes have to be read before more can be planned.
    pub routes: Vec<IpNet>,
    /// The node's ends that stay, each for a link that is wanted.
    pub ends: BTreeMap<LinkKey, Link>,
    /// The node's ends that stay although no pool names them, because none says anything about them.
    pub unknown: BTreeMap<LinkKey, Unknown>,
    /// The bridges into which links may be plugged.
    pub bridges: BTreeMap<String, u32>,
    /// The bridges of ours that no pool names any more and that stay, each with the reason, as the end of a sentence.
    pub kept: BTreeMap<String, String>,
    /// What keeps a link from being made or removed.
    pub problems: BTreeMap<LinkKey, LinkProblem>,
    /// The links that should be gone and are not although it was carried out.
    pub left: BTreeSet<LinkKey>,
    /// Whether something failed that is to be tried again.
    pub has_failed: bool,
}

/// The node's end of a link of which no pool says anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its mark.
    pub mark: Mark,
    /// Its name.
    pub name: String,
    /// The name of the bridge that it is plugged into; empty if it is in none.
    pub bridge: String,
}

/// The plan. The links of the pods in `busy` are being changed by others at the moment.
pub fn plan(observed: &Observed, desired: &Desired, settings: &Settings, busy: &BTreeSet<String>) -> Plan {
    let mut plan = Plan::default();
    ends::plan(observed, desired, busy, &mut plan);
    bridges::plan(observed, desired, settings, busy, &mut plan);
    plan
}

/// A problem of a link.
pub fn problem(reason: Reason, message: impl Into<String>) -> LinkProblem {
    LinkProblem { reason: reason.as_str().to_owned(), message: message.into() }
}
