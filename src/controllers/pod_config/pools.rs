//! The next state of the pools of a namespace: a pure function of what its `PodConfig`s ask for, what is recorded, and
//! what nodes report.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use super::allocator::{Input, Seen, Slot, Wanted, Without, next};
use super::observe::{Member, NodeState, Observed, PoolView, Settings, remembered};
use super::records::{PoolRecord, address};
use super::validate::Attachment;
use crate::controllers::pod_network::{Allocation, Link, LinkState};

/// The next state of a pool.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    /// The pool, and its record.
    pub view: &'a PoolView,
    /// What is to be recorded.
    pub next: PoolRecord,
    /// What has no address, and why.
    pub without: Vec<(Wanted, Without)>,
}

/// When and by what the state of a node matters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// The earliest time at which a node will count as lost.
    pub until: Option<Timestamp>,
    /// Nodes that do not exist, as far as is known, and therefore are not waited for.
    pub absent: BTreeSet<String>,
}

/// Whether a pool is looked after in a reconcile of this `PodConfig`: it names it, it has allocations there, or nobody else does.
fn concerns(observed: &Observed, view: &PoolView) -> bool {
    let uid = observed.config.uid();
    let names = |member: &Member| attachments(member, &view.pool).next().is_some();
    let mut others = view.pool.allocations().map(|(_, allocation)| &allocation.pod_config_uid);
    uid.is_empty()
        || observed.own().is_some_and(names)
        || view.pool.allocations().any(|(_, allocation)| allocation.pod_config_uid == uid)
        || !observed.members.iter().any(names) && !others.any(|other| observed.exists(other))
}

/// The attachments of a `PodConfig` that are in a pool, in the order of its spec, each with whether it may begin.
fn attachments<'a>(member: &'a Member, pool: &'a PoolRecord) -> impl Iterator<Item = (&'a Attachment, bool)> {
    let verdicts = member.verdicts.iter().filter(|_| !member.is_leaving);
    verdicts
        .filter_map(|verdict| Some((verdict.attachment()?, verdict.problem().is_none())))
        .filter(|(attachment, _)| attachment.range == pool.range)
}

/// The next states of the pools of the namespace that this `PodConfig` looks after.
pub fn changes<'a>(observed: &'a Observed, settings: &Settings, now: Timestamp) -> (Vec<Change<'a>>, Waits) {
    let mut waits = Waits::default();
    let own = observed.pools.iter().filter(|view| concerns(observed, view));
    let changes = own.map(|view| change(observed, view, &observed.members, settings, now, &mut waits));
    (changes.collect(), waits)
}

fn change<'a>(
    observed: &'a Observed,
    view: &'a PoolView,
    members: &[Member],
    settings: &Settings,
    now: Timestamp,
    waits: &mut Waits,
) -> Change<'a> {
    let pool = &view.pool;
    let wanted = wanted(members, view);
    let seen = seen(observed, pool, settings, now);
    let busy = busy(observed, pool, &wanted);
    let frozen = |uid: &str| {
        members.iter().any(|member| member.config.malformed.is_some() && member.config.uid() == uid)
    };
    let is_gone = |uid: &str, allocation: &Allocation| {
        is_released(observed, uid, allocation) || is_given_up(observed, members, allocation, settings, now)
    };
    let input = Input {
        range: pool.range,
        entries: &pool.entries,
        wanted: &wanted,
        seen: &seen,
        busy: &busy,
        is_frozen: &|allocation| frozen(&allocation.pod_config_uid),
        is_gone: &is_gone,
    };
    let next = next(&input);
    wait(observed, pool, &next.entries, settings, now, waits);
    let bridges: BTreeSet<&String> = members
        .iter()
        .flat_map(|member| attachments(member, pool).map(|(attachment, _)| &attachment.bridge))
        .collect();
    let mut bridges: Vec<String> = bridges.into_iter().cloned().collect();
    if members.iter().any(|member| frozen(member.config.uid())) {
        bridges.extend(
            pool.bridges.iter().filter(|bridge| !bridges.contains(bridge)).cloned().collect::<Vec<_>>(),
        );
        bridges.sort();
    }
    // A pool is made when the first address of it is needed.
    if view.record.is_none() && next.entries.is_empty() {
        bridges.clear();
    }
    let without = next.without.into_iter().filter_map(|(place, why)| Some((wanted.get(place)?.clone(), why)));
    Change {
        view,
        without: without.collect(),
        next: PoolRecord { bridges, entries: next.entries, is_damaged: false, ..pool.clone() },
    }
}

/// What pods are to have from a pool, in the order of their names.
fn wanted(members: &[Member], view: &PoolView) -> Vec<Wanted> {
    let is_lost = view.record.is_none() || view.pool.is_damaged;
    let mut wanted: Vec<(&str, usize, Wanted)> = Vec::new();
    for member in members.iter().filter(|member| member.is_held() && member.config.malformed.is_none()) {
        let config = &member.config;
        let attachments: Vec<_> = attachments(member, &view.pool).collect();
        for pod in member.pods.iter().filter(|pod| !pod.node.is_empty()) {
            for (place, (attachment, may_begin)) in attachments.iter().enumerate() {
                let remembered = || {
                    remembered(config, &pod.name, &attachment.name, &attachment.bridge).filter(|_| is_lost)
                };
                let one = Wanted {
                    uid: pod.uid.clone(),
                    pod: pod.name.clone(),
                    node: pod.node.clone(),
                    pod_config: config.name().to_owned(),
                    pod_config_uid: config.uid().to_owned(),
                    attachment: attachment.name.clone(),
                    bridge: attachment.bridge.clone(),
                    may_begin: *may_begin && !pod.is_ending,
                    ending: pod.is_ending,
                    remembered: remembered(),
                };
                wanted.push((&pod.name, place, one));
            }
        }
    }
    wanted.sort_by(|one, other| (one.0, one.1, &one.2.uid).cmp(&(other.0, other.1, &other.2.uid)));
    wanted.into_iter().map(|(_, _, one)| one).collect()
}

/// The live links in the range of a pool, according to nodes that are not lost.
fn seen(observed: &Observed, pool: &PoolRecord, settings: &Settings, now: Timestamp) -> Vec<Seen> {
    let live = observed.reports.iter().filter(|(node, _)| !observed.node(node).is_lost(settings.grace, now));
    let links = live.flat_map(|(node, report)| {
        report.links.iter().flat_map(move |(uid, list)| list.iter().map(move |link| (node, uid, link)))
    });
    let in_pool = |link: &Link| {
        let found = address(link).filter(|_| link.namespace == pool.namespace);
        found.filter(|(address, _)| pool.range.net().contains(address))
    };
    links
        .filter_map(|(node, uid, link)| {
            let (address, prefix) = in_pool(link)?;
            let allocation = Allocation {
                pod: link.pod.clone(),
                node: node.clone(),
                pod_config: link.pod_config.clone(),
                pod_config_uid: link.pod_config_uid.clone(),
                attachment: link.attachment.clone(),
                bridge: link.bridge.clone(),
                address,
                ending: false,
                release: false,
            };
            Some(Seen { uid: uid.clone(), allocation, is_own: prefix == pool.range.prefix() })
        })
        .collect()
}

/// What cannot get an address in a pool yet: it has one in another pool, or its former link is still reported, as released or
/// with an address of another pool, whose record may be lost.
fn busy(observed: &Observed, pool: &PoolRecord, wanted: &[Wanted]) -> BTreeSet<Slot> {
    let others = observed.pools.iter().map(|view| &view.pool).filter(|other| other.range != pool.range);
    let slots = others.flat_map(PoolRecord::allocations);
    let slots = slots.map(|(uid, allocation)| (uid.to_owned(), allocation.attachment.clone()));
    let is_own = |(address, prefix): (IpAddr, u8)| {
        pool.range.net().contains(&address) && pool.range.prefix() == prefix
    };
    let released = wanted.iter().filter(|wanted| {
        let link = observed.link(&wanted.node, &wanted.uid, &wanted.attachment);
        link.is_some_and(|link| {
            link.state == LinkState::Released || address(link).is_some_and(|found| !is_own(found))
        })
    });
    slots.chain(released.map(|wanted| (wanted.uid.clone(), wanted.attachment.clone()))).collect()
}

/// Whether the node of an allocation says that nothing is left of its link. What is not to be released yet, nobody has
/// been asked about.
fn is_released(observed: &Observed, uid: &str, allocation: &Allocation) -> bool {
    let link = observed.link(&allocation.node, uid, &allocation.attachment);
    let is_this = |link: &&Link| link.pod_config_uid == allocation.pod_config_uid;
    allocation.release && link.filter(is_this).is_some_and(|link| link.state == LinkState::Released)
}

/// Whether nobody waits for the node of an allocation: it is lost; or it has never reported anything, and the `PodConfig`
/// has been deleted for as long as a lost node is waited for.
fn is_given_up(
    observed: &Observed,
    members: &[Member],
    allocation: &Allocation,
    settings: &Settings,
    now: Timestamp,
) -> bool {
    let deleted = members
        .iter()
        .find(|member| member.config.uid() == allocation.pod_config_uid)
        .and_then(|member| member.config.metadata.deletion_timestamp.as_ref());
    let is_silent = !observed.reports.contains_key(&allocation.node)
        && deleted.is_some_and(|deleted| now.duration_since(deleted.0) >= settings.grace);
    is_silent || observed.node(&allocation.node).is_lost(settings.grace, now)
}

/// Notes what nodes the next state waits for, or does not wait for although they may be there.
fn wait(
    observed: &Observed,
    pool: &PoolRecord,
    next: &super::records::Entries,
    settings: &Settings,
    now: Timestamp,
    waits: &mut Waits,
) {
    let left = next.values().flatten().filter(|allocation| allocation.release);
    let mut until = |since: Timestamp, grace: SignedDuration| {
        let at = since.checked_add(grace).unwrap_or(Timestamp::MAX).max(now);
        waits.until = Some(waits.until.map_or(at, |earlier| earlier.min(at)));
    };
    for allocation in left {
        if let NodeState::NotReady(since) = observed.node(&allocation.node) {
            until(since, settings.grace);
        }
        if let Some(deleted) = observed
            .config
            .metadata
            .deletion_timestamp
            .as_ref()
            .filter(|_| !observed.reports.contains_key(&allocation.node))
        {
            until(deleted.0, settings.grace);
        }
    }
    let is_kept = |uid: &str, allocation: &Allocation| {
        next.get(uid).is_some_and(|list| list.iter().any(|kept| kept.address == allocation.address))
    };
    let dropped = pool.allocations().filter(|(uid, allocation)| !is_kept(uid, allocation));
    let absent = dropped.filter(|(_, allocation)| observed.node(&allocation.node) == NodeState::Absent);
    waits.absent.extend(absent.map(|(_, allocation)| allocation.node.clone()));
}
