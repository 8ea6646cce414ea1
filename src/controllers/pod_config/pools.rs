//! The next state of the pools of a namespace: a pure function of the requests of its `PodConfig`s, the records, and
//! the reports of nodes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use super::allocator::{AddressRequest, Input, LiveLink, Slot, Without, next};
use super::observe::{Member, NodeState, Observed, PoolView, Settings, remembered};
use super::records::{Entries, PoolRecord, address};
use super::validate::Attachment;
use crate::controllers::pod_network::{Allocation, Link, LinkState};

/// The next state of a pool.
#[derive(Debug, Clone)]
pub struct PoolChange<'a> {
    /// The pool, and its record.
    pub view: &'a PoolView,
    /// The state to record.
    pub next: PoolRecord,
    /// The requests without an address, with the reasons.
    pub without: Vec<(AddressRequest, Without)>,
}

/// The nodes whose state matters later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// The earliest time when an awaited node counts as lost.
    pub until: Option<Timestamp>,
    /// Nodes that do not exist according to the store, so the loop does not wait for them.
    pub absent: BTreeSet<String>,
}

/// Whether a reconcile of this `PodConfig` manages a pool: the `PodConfig` requests it or has allocations there, or no
/// other `PodConfig` does.
fn concerns(observed: &Observed, view: &PoolView) -> bool {
    let uid = observed.config.uid();
    let names = |member: &Member| attachments(member, &view.pool).next().is_some();
    let mut others = view.pool.allocations().map(|(_, allocation)| &allocation.pod_config_uid);
    uid.is_empty()
        || observed.own().is_some_and(names)
        || view.pool.allocations().any(|(_, allocation)| allocation.pod_config_uid == uid)
        || !observed.members.iter().any(names) && !others.any(|other| observed.exists(other))
}

/// The attachments of a `PodConfig` in a pool, in the order of its spec, each with whether it may get new addresses.
fn attachments<'a>(member: &'a Member, pool: &'a PoolRecord) -> impl Iterator<Item = &'a (Attachment, bool)> {
    let all = member.validated.attachments.iter().filter(|_| !member.is_leaving && !member.is_outside);
    all.filter(|(attachment, _)| attachment.range == pool.range)
}

/// The next states of the pools that a reconcile of this `PodConfig` manages.
pub fn changes<'a>(
    observed: &'a Observed,
    settings: &Settings,
    now: Timestamp,
) -> (Vec<PoolChange<'a>>, Waits) {
    let facts = Facts { observed, grace: settings.grace, now };
    let mut waits = Waits::default();
    let own = observed.pools.iter().filter(|view| concerns(observed, view));
    (own.map(|view| facts.change(view, &mut waits)).collect(), waits)
}

/// The inputs for the next states of pools.
struct Facts<'a> {
    observed: &'a Observed,
    /// How long a node may be not ready before it counts as lost.
    grace: SignedDuration,
    now: Timestamp,
}

impl<'a> Facts<'a> {
    fn change(&self, view: &'a PoolView, waits: &mut Waits) -> PoolChange<'a> {
        let (pool, members) = (&view.pool, &self.observed.members);
        let wanted = wanted(members, view);
        let is_frozen = |member: &&Member| member.is_outside || member.config.malformed.is_some();
        let frozen: BTreeSet<&str> =
            members.iter().filter(is_frozen).map(|member| member.config.uid()).collect();
        let next = next(&Input {
            range: pool.range,
            entries: &pool.entries,
            wanted: &wanted,
            live: &self.live(pool),
            busy: &self.busy(pool, &wanted),
            is_frozen: &|allocation| frozen.contains(&*allocation.pod_config_uid),
            is_gone: &|uid, allocation| self.is_released(uid, allocation) || self.is_given_up(allocation),
        });
        self.wait(pool, &next.entries, waits);
        let named = members.iter().flat_map(|member| attachments(member, pool));
        let mut bridges: BTreeSet<&String> = named.map(|(attachment, _)| &attachment.bridge).collect();
        if !frozen.is_empty() {
            bridges.extend(&pool.bridges);
        }
        // A pool is created when its first address is needed.
        if view.record.is_none() && next.entries.is_empty() {
            bridges.clear();
        }
        let bridges = bridges.into_iter().cloned().collect();
        let without = next.without.into_iter();
        PoolChange {
            view,
            without: without.filter_map(|(place, why)| Some((wanted.get(place)?.clone(), why))).collect(),
            next: PoolRecord { bridges, entries: next.entries, is_damaged: false, ..pool.clone() },
        }
    }

    fn is_lost(&self, node: &str) -> bool {
        self.observed.node(node).is_lost(self.grace, self.now)
    }

    /// The live links in the range of a pool, as reported by nodes that are not lost.
    fn live(&self, pool: &PoolRecord) -> Vec<LiveLink> {
        let reports = self.observed.reports.iter().filter(|(node, _)| !self.is_lost(node));
        let links = reports.flat_map(|(node, report)| {
            report.links.iter().flat_map(move |(uid, list)| list.iter().map(move |link| (node, uid, link)))
        });
        links
            .filter(|(.., link)| link.namespace == pool.namespace)
            .filter_map(|(node, uid, link)| {
                let (address, prefix) = address(link).filter(|(address, _)| pool.range.contains(address))?;
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
                Some(LiveLink { uid: uid.clone(), allocation, is_own: prefix == pool.range.prefix_len() })
            })
            .collect()
    }

    /// The attachments that cannot get an address in a pool yet. Such an attachment has an address in another pool, or
    /// its former link is still reported, either as released or with an address of another pool whose record may be
    /// lost.
    fn busy(&self, pool: &PoolRecord, wanted: &[AddressRequest]) -> BTreeSet<Slot> {
        let pools = self.observed.pools.iter().map(|view| &view.pool);
        let others = pools.filter(|other| other.range != pool.range).flat_map(PoolRecord::allocations);
        let slots = others.map(|(uid, allocation)| (uid.to_owned(), allocation.attachment.clone()));
        let is_own = |(address, prefix): (IpAddr, u8)| {
            pool.range.contains(&address) && pool.range.prefix_len() == prefix
        };
        let released = wanted.iter().filter(|wanted| {
            let Allocation { node, attachment, .. } = &wanted.allocation;
            self.observed.link(node, &wanted.uid, attachment).is_some_and(|link| {
                link.state == LinkState::Released || address(link).is_some_and(|found| !is_own(found))
            })
        });
        slots.chain(released.map(AddressRequest::slot)).collect()
    }

    /// Whether the node of an allocation reports its link as released. This applies only to allocations to be released;
    /// about others, the node was not asked yet.
    fn is_released(&self, uid: &str, allocation: &Allocation) -> bool {
        let link = self.observed.link(&allocation.node, uid, &allocation.attachment);
        let is_this = |link: &&Link| link.pod_config_uid == allocation.pod_config_uid;
        allocation.release && link.filter(is_this).is_some_and(|link| link.state == LinkState::Released)
    }

    /// Whether the loop no longer waits for the node of an allocation: the node is lost, or it has never reported
    /// anything and the `PodConfig` was deleted longer ago than the grace period for lost nodes.
    fn is_given_up(&self, allocation: &Allocation) -> bool {
        let mut configs = self.observed.members.iter().map(|member| &member.config);
        let config = configs.find(|config| config.uid() == allocation.pod_config_uid);
        let deleted = config.and_then(|config| config.metadata.deletion_timestamp.as_ref());
        let is_silent = !self.observed.reports.contains_key(&allocation.node)
            && deleted.is_some_and(|deleted| self.now.duration_since(deleted.0) >= self.grace);
        is_silent || self.is_lost(&allocation.node)
    }

    /// Records the nodes that the next state waits for, and the missing nodes that it does not wait for.
    fn wait(&self, pool: &PoolRecord, next: &Entries, waits: &mut Waits) {
        let observed = self.observed;
        for node in next.values().flatten().filter(|left| left.release).map(|left| &left.node) {
            let not_ready =
                if let NodeState::NotReady(since) = observed.node(node) { Some(since) } else { None };
            let deleted = observed.config.metadata.deletion_timestamp.as_ref();
            let silent = deleted.filter(|_| !observed.reports.contains_key(node)).map(|deleted| deleted.0);
            for since in not_ready.into_iter().chain(silent) {
                let at = since.checked_add(self.grace).unwrap_or(Timestamp::MAX).max(self.now);
                waits.until = Some(waits.until.map_or(at, |earlier| earlier.min(at)));
            }
        }
        let is_kept = |uid: &str, allocation: &Allocation| {
            next.get(uid).is_some_and(|list| list.iter().any(|kept| kept.address == allocation.address))
        };
        let dropped = pool.allocations().filter(|(uid, allocation)| !is_kept(uid, allocation));
        let absent = dropped.filter(|(_, allocation)| observed.node(&allocation.node) == NodeState::Absent);
        waits.absent.extend(absent.map(|(_, allocation)| allocation.node.clone()));
    }
}

/// The addresses that pods need from a pool, ordered by pod name.
fn wanted(members: &[Member], view: &PoolView) -> Vec<AddressRequest> {
    let is_lost = view.record.is_none() || view.pool.is_damaged;
    let mut wanted: Vec<(usize, AddressRequest)> = Vec::new();
    for member in members.iter().filter(|member| member.is_held() && member.config.malformed.is_none()) {
        let config = &member.config;
        for pod in member.pods.iter().filter(|pod| !pod.spec.node_name.is_empty()) {
            for (place, (attachment, may_begin)) in attachments(member, &view.pool).enumerate() {
                let remembered = is_lost
                    .then(|| remembered(config, pod.name(), &attachment.name, &attachment.bridge))
                    .flatten();
                let allocation = Allocation {
                    pod: pod.name().to_owned(),
                    node: pod.spec.node_name.to_string(),
                    pod_config: config.name().to_owned(),
                    pod_config_uid: config.uid().to_owned(),
                    attachment: attachment.name.clone(),
                    bridge: attachment.bridge.clone(),
                    address: view.pool.range.gateway(),
                    ending: pod.is_terminating(),
                    release: false,
                };
                let may_begin = *may_begin && !pod.is_terminating();
                let uid = pod.uid().to_owned();
                wanted.push((place, AddressRequest { uid, allocation, may_begin, remembered }));
            }
        }
    }
    wanted.sort_by(|(place, one), (other_place, other)| {
        (&one.allocation.pod, place, &one.uid).cmp(&(&other.allocation.pod, other_place, &other.uid))
    });
    wanted.into_iter().map(|(_, one)| one).collect()
}
