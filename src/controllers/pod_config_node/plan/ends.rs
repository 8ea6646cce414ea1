//! The node's ends of veth pairs: which of them stay, and which are deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::{LinkChange, Observed, Plan, Unknown};
use crate::controllers::pod_config_node::mark::{Mark, Side};
use crate::controllers::pod_config_node::records::Desired;
use crate::netlink::{Link, Mac};

/// The decision about an end.
enum Fate {
    /// It belongs to a wanted link.
    Stays,
    /// No pool requests it.
    Goes,
    /// It is not known whether it is wanted.
    Unknown,
}

pub(super) fn plan(observed: &Observed, desired: &Desired, busy: &BTreeSet<String>, plan: &mut Plan) {
    let known = known(desired);
    for link in observed.links.iter().filter(|link| link.kind == "veth") {
        let Some((side, mark)) = recognised(link, &known) else { continue };
        let index = link.index;
        if busy.contains(&mark.key.pod_uid) {
            plan.ends.entry(mark.key).or_insert_with(|| link.clone());
            continue;
        }
        match fate(side, &mark, desired, plan) {
            Fate::Stays => {
                if link.alias.is_empty() {
                    plan.changes.push(LinkChange::SetAlias { index, alias: mark.alias(side) });
                }
                if !link.is_up {
                    plan.changes.push(LinkChange::SetUp { index });
                }
                plan.ends.insert(mark.key, link.clone());
            }
            Fate::Goes => plan.changes.push(LinkChange::DeletePair { index, mark }),
            Fate::Unknown => {
                let bridge = observed.link(link.master).map(|bridge| bridge.name.clone()).unwrap_or_default();
                let unknown = Unknown { mark: mark.clone(), name: link.name.clone(), bridge };
                plan.unknown.insert(mark.key, unknown);
            }
        }
    }
}

/// The marks of the allocations, by the hardware address of the node's end. A process that dies between creating a link
/// and setting its alias leaves a link without an alias.
fn known(desired: &Desired) -> BTreeMap<Mac, &Mark> {
    let all = desired.wanted.values().chain(desired.released.values());
    all.map(|wanted| (wanted.mark.mac(Side::Node), &wanted.mark)).collect()
}

/// The mark of a link; `None` if it is not ours.
fn recognised(link: &Link, known: &BTreeMap<Mac, &Mark>) -> Option<(Side, Mark)> {
    let adopted = || {
        let mark = known.get(&link.mac?).filter(|_| link.alias.is_empty())?;
        Some((Side::Node, Mark::clone(mark)))
    };
    Mark::read(&link.alias).or_else(adopted)
}

fn fate(side: Side, mark: &Mark, desired: &Desired, plan: &Plan) -> Fate {
    let key = &mark.key;
    if side == Side::Pod {
        // A pod with sufficient privileges has moved it here. It belongs into the pod, so the pair is recreated.
        return Fate::Goes;
    }
    if desired.unreadable_pods.contains(&key.pod_uid) {
        return Fate::Unknown;
    }
    if let Some(wanted) = desired.wanted.get(key) {
        let is_it = wanted.mark == *mark && !plan.ends.contains_key(key);
        return if is_it { Fate::Stays } else { Fate::Goes };
    }
    let pool = (mark.namespace.clone(), mark.net.trunc());
    if desired.released.contains_key(key) || desired.pools.contains(&pool) {
        return Fate::Goes;
    }
    // The record of the pool was lost, or the `PodConfig` was deleted while this node was unavailable. The leader knows
    // which, and restores the pool from the reports of nodes.
    Fate::Unknown
}
