//! The plan of the node: which of its links are to be deleted, changed or created. It is a pure function of the
//! existing links and of the requests of the pools. After the plan was carried out, it is computed again until no
//! change is left. It never contains foreign links.
//!
//! | file | content |
//! |---|---|
//! | `ends.rs` | the node's ends of veth pairs: which of them stay, and which are deleted |
//! | `bridges.rs` | the bridges, their gateways, and the pairs plugged into each of them |
//! | `pod.rs` | the pairs of one pod, once its namespace is open |

mod bridges;
mod ends;
mod pod;

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use bridges::View;

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
    /// The routes into certain ranges (on the node: the ranges in [`Plan::routes`]); `None` if they were not read.
    pub routes: Option<Vec<Route>>,
}

impl Observed {
    /// The link with this number.
    pub fn link(&self, index: u32) -> Option<&Link> {
        self.links.iter().find(|link| link.index == index)
    }

    /// Describes the address or route that a range overlaps, with `article` before the link's name. Links selected by
    /// `is_left_out` are skipped. An error if the routes were not read.
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

/// The settings, which do not change while the process runs.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The name of the node.
    pub node: String,
    /// The foreign bridges that links may be plugged into.
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
    /// Set the alias of a link of ours.
    SetAlias {
        /// Its number.
        index: u32,
        /// The alias.
        alias: String,
    },
    /// Restore the hardware address of a bridge of ours.
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
        /// The number of the bridge.
        master: u32,
        /// The link that fails if this change fails.
        key: LinkKey,
    },
    /// Add the gateway of a range to a bridge of ours.
    AddGateway(Address),
    /// Remove the gateway of an unused range from a bridge of ours.
    RemoveGateway(Address),
}

/// The changes to make, or, after the plan was carried out, the remaining ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The changes, in order.
    pub changes: Vec<LinkChange>,
    /// The ranges that routes must be read for before planning can continue.
    pub routes: Vec<IpNet>,
    /// The node's ends that stay, each for a wanted link.
    pub ends: BTreeMap<LinkKey, Link>,
    /// The node's ends that stay although no pool names them, because no pool covers their range.
    pub unknown: BTreeMap<LinkKey, Unknown>,
    /// The bridges that links may be plugged into.
    pub bridges: BTreeMap<String, u32>,
    /// Our bridges that stay although no pool names them, each with the reason, as the end of a sentence.
    pub kept: BTreeMap<String, String>,
    /// The problems that prevent links from being created or removed.
    pub problems: BTreeMap<LinkKey, LinkProblem>,
    /// The links that should be gone but still exist after the plan was carried out.
    pub left: BTreeSet<LinkKey>,
    /// Whether something failed and must be retried.
    pub has_failed: bool,
}

/// The node's end of a link that no pool covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its mark.
    pub mark: Mark,
    /// Its name.
    pub name: String,
    /// The name of the bridge that it is plugged into, or empty.
    pub bridge: String,
}

/// Plans the changes. The links of the pods in `busy` are being changed by other tasks.
pub fn plan(observed: &Observed, desired: &Desired, settings: &Settings, busy: &BTreeSet<String>) -> Plan {
    let mut plan = Plan::default();
    ends::plan(observed, desired, busy, &mut plan);
    bridges::plan(&View { observed, desired, settings }, busy, &mut plan);
    plan
}

/// A problem of a link.
pub fn problem(reason: Reason, message: impl Into<String>) -> LinkProblem {
    LinkProblem { reason: reason.as_str().to_owned(), message: message.into() }
}
