//! The plan of a `PodConfig`: a pure function of the observed state.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::allocator::{AddressRequest, Without};
use super::observe::{FINALIZER, Member, Observed, Settings};
use super::pools::{PoolChange, Waits, changes};
use super::records::{LIMIT, PoolRecord};
use super::sample::plan_sample;
use crate::api::pod_config::PodConfigKind;
use crate::api::reason::{self, Reason};
use crate::controllers::pod_network::{Allocation, LinkProblem, POOL, RECORD, difference, listed};
use crate::controllers::shared::children::{Child, Parent, exactly};
use crate::kinds::{NetworkRecordKind, NodeKind};
use crate::runtime::component::Component;
use crate::runtime::plan::{KindInfo, ObjectPatch, Ownership, Plan, Precondition, Removal};
use crate::runtime::problem::Problem;
use crate::runtime::{ObjectKey, finalizer};

/// The maximum number of link problems that are named. The others are counted.
const NAMED: usize = 10;
/// How long the removal of links may take before the status reports what blocks it.
pub const PATIENCE: SignedDuration = SignedDuration::from_secs(30);
/// The reasons that nodes report.
const NODE_REASONS: [Reason; 6] = [
    reason::NAME_CONFLICT,
    reason::NAME_TOO_LONG,
    reason::NETWORK_OVERLAP,
    reason::BRIDGE_CONFLICT,
    reason::RUNTIME_UNAVAILABLE,
    reason::LINK_FAILED,
];

/// The plan of a `PodConfig`.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let own = observed.own();
    if own.is_none() && !observed.config.uid().is_empty() {
        return plan;
    }
    let (changes, waits) = changes(observed, settings, now);
    for change in &changes {
        plan_pool(change, settings, observed, &mut plan);
    }
    plan_nodes(observed, &waits, now, &mut plan);
    if changes.iter().any(|change| gives_up(observed, change)) {
        let kind = KindInfo::of::<PodConfigKind>();
        plan.preconditions.push(Precondition::Within(kind, observed.config.namespace().to_owned()));
    }
    let Some(own) = own else { return plan };
    if own.is_leaving {
        leave(observed, &changes, now, &mut plan);
        return plan;
    }
    if let Some(finalizers) = finalizer::added(&observed.config, FINALIZER) {
        // Nothing is recorded before the finalizer is set.
        let wanted = json!({"metadata": {"finalizers": finalizers}});
        plan.patches.extend(ObjectPatch::of(&observed.config, &wanted));
        plan.requeue_after(Duration::ZERO);
    }
    plan.problems.extend_from_slice(&own.validated.problems);
    if observed.config.malformed.is_some() {
        return plan;
    }
    plan.problems.extend(unserved(observed, &changes));
    plan.problems.extend(reported(observed, own));
    plan_sample(observed, settings, &mut plan);
    plan
}

/// Whether links are given up because their `PodConfig` does not exist, according to the store.
fn gives_up(observed: &Observed, change: &PoolChange<'_>) -> bool {
    let is_recorded = |uid: &str, link: &Allocation| {
        change.view.pool.entries.get(uid).is_some_and(|list| list.contains(link))
    };
    let mut released = change.next.allocations().filter(|(_, link)| link.release);
    released.any(|(uid, link)| !observed.exists(&link.pod_config_uid) && !is_recorded(uid, link))
}

/// Plans the record of a pool.
fn plan_pool(change: &PoolChange<'_>, settings: &Settings, observed: &Observed, plan: &mut Plan) {
    let PoolChange { view, next, .. } = change;
    match &view.record {
        None if next.is_unused() => {}
        None => record(next, settings, observed).ensure(plan),
        Some(record) if record.is_terminating() => {}
        Some(record) if next.is_unused() => plan.remove.push(Removal::of(&**record, Component::Whole)),
        Some(record) => {
            let patch = difference(&record.spec, &next.data());
            if !patch.is_empty() {
                plan.patches.push(ObjectPatch::exactly(&**record, json!({"data": patch})));
            }
        }
    }
}

/// The record of a new pool. It has no owner reference, because its `PodConfig`s are in another namespace.
fn record<'a>(pool: &'a PoolRecord, settings: &Settings, observed: &Observed) -> Child<'a> {
    let parent = Parent::new(&observed.config, [].into()).within(&settings.namespace).with(&[(RECORD, POOL)]);
    let data = || json!({"data": pool.data()});
    let mut child = parent.child::<NetworkRecordKind>(&pool.name(), &Component::Whole, 0, data);
    child.desired.ownership = Ownership::Kept;
    child.desired.identity = exactly(&parent.labels).collect();
    child
}

/// Plans the steps that depend on the state of nodes: confirms that missing nodes do not exist, removes their reports,
/// and requeues for the time when an awaited node counts as lost.
fn plan_nodes(observed: &Observed, waits: &Waits, now: Timestamp, plan: &mut Plan) {
    let former = observed.former.iter().filter(|(_, record)| !record.is_terminating());
    plan.remove.extend(former.clone().map(|(_, record)| Removal::of(&**record, Component::Whole)));
    let absent: BTreeSet<&String> = waits.absent.iter().chain(former.map(|(node, _)| node)).collect();
    let kind = KindInfo::of::<NodeKind>();
    plan.confirm.extend(absent.into_iter().map(|node| (kind, ObjectKey::new("", node.as_str()))));
    if let Some(until) = waits.until {
        plan.requeue_after(remaining(until, now));
    }
}

/// The time until `until`.
fn remaining(until: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or_default()
}

/// Plans the end of a `PodConfig`. The finalizer is removed when nothing is recorded for the `PodConfig`.
fn leave(observed: &Observed, changes: &[PoolChange<'_>], now: Timestamp, plan: &mut Plan) {
    let Some(deleted) = &observed.config.metadata.deletion_timestamp else { return };
    let uid = observed.config.uid();
    let mut next = changes.iter().flat_map(|change| change.next.allocations());
    if !next.any(|(_, allocation)| allocation.pod_config_uid == uid) {
        plan.remove_finalizer = Some(FINALIZER);
    } else if let Some(late) = deleted.0.checked_add(PATIENCE).ok().filter(|late| *late > now) {
        plan.requeue_after(remaining(late, now));
    }
}

/// The problems of pods of this `PodConfig` without an address: one for each pool, attachment and cause.
fn unserved(observed: &Observed, changes: &[PoolChange<'_>]) -> Vec<Problem> {
    let mut groups: BTreeMap<(String, &str, Without), (&PoolChange<'_>, Vec<&str>)> = BTreeMap::new();
    for change in changes {
        for (AddressRequest { allocation, .. }, why) in &change.without {
            if allocation.pod_config_uid == observed.config.uid() {
                let key = (change.next.range.to_string(), &*allocation.attachment, *why);
                groups.entry(key).or_insert_with(|| (change, Vec::new())).1.push(&allocation.pod);
            }
        }
    }
    let problem = |((range, attachment, why), (change, pods)): (_, (&PoolChange<'_>, Vec<&str>))| {
        let word = if pods.len() == 1 { "pod" } else { "pods" };
        let begin = format!("attachment {attachment} of {word} {}", listed(pods, 3));
        let exhausted = |message| Problem::elsewhere(Component::Whole, reason::POOL_EXHAUSTED, message);
        match why {
            Without::Leaving => {
                let message = format!("{begin}: a former link of the same name is still being removed");
                Problem::waiting(Component::Whole, reason::LINK_LEAVING, message)
            }
            Without::Exhausted => {
                let all = change.next.range.capacity();
                exhausted(format!(
                    "{begin}: no address of {range} is free, all {all} are in use: choose a larger range, or run fewer pods"
                ))
            }
            Without::Full => exhausted(format!(
                "{begin}: {range} has reached the limit of one pool, which is {LIMIT} addresses, or fewer if names are long: use an additional range"
            )),
        }
    };
    groups.into_iter().map(problem).collect()
}

/// The problems that nodes report about the pods of this `PodConfig`.
fn reported(observed: &Observed, own: &Member) -> Vec<Problem> {
    let nodes: BTreeSet<&str> = own.pods.iter().map(|pod| &*pod.spec.node_name).collect();
    let of_nodes = nodes.into_iter().filter_map(|node| {
        let problem = observed.reports.get(node)?.node.problem.as_ref()?;
        Some(problem_of(problem, &format!("node {node}")))
    });
    let uid = observed.config.uid();
    let of_links = own.pods.iter().flat_map(|pod| {
        let report = observed.reports.get(&*pod.spec.node_name);
        let links = report.and_then(|report| report.links.get(pod.uid()));
        let own = links.into_iter().flatten().filter(move |link| link.pod_config_uid == uid);
        own.filter_map(move |link| {
            let problem = link.problem.as_ref()?;
            Some(problem_of(problem, &format!("attachment {} of pod {}", link.attachment, pod.name())))
        })
    });
    let mut all: Vec<Problem> = of_nodes.chain(of_links).collect();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    if more > 0 {
        let message = format!("{more} further interfaces have problems");
        all.push(Problem::elsewhere(Component::Whole, reason::LINK_FAILED, message));
    }
    all
}

/// Converts the problem of a node; `what` names the subject. An unknown reason comes from another version.
fn problem_of(problem: &LinkProblem, what: &str) -> Problem {
    let known = NODE_REASONS.into_iter().find(|reason| reason.as_str() == problem.reason);
    let (reason, message) = (known.unwrap_or(reason::LINK_FAILED), format!("{what}: {}", problem.message));
    Problem::elsewhere(Component::Whole, reason, message)
}
