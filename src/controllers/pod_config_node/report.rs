//! The report: a pure function of what is asked for, and of what was made.

use std::collections::{BTreeMap, BTreeSet};

use super::mark::LinkKey;
use super::plan::problem;
use super::records::{Desired, Wanted};
use super::settle::Settled;
use super::work::Plugged;
use crate::api::reason::{LINK_FAILED, RUNTIME_UNAVAILABLE};
use crate::controllers::shared::pod_network::{Link, LinkProblem, LinkState, NODE_KEY, Node};

/// What was made of the links of pods.
pub type Results = BTreeMap<LinkKey, Result<Plugged, LinkProblem>>;

/// What a report is made of.
pub struct Sources<'s> {
    /// What is asked for.
    pub desired: &'s Desired,
    /// The node's ends.
    pub settled: &'s Settled,
    /// What was made.
    pub results: &'s Results,
    /// The pods whose links are being changed.
    pub busy: &'s BTreeSet<String>,
    /// The report as it is stored.
    pub stored: &'s BTreeMap<String, String>,
}

/// The data of the report.
pub fn report(node: &Node, sources: &Sources<'_>) -> BTreeMap<String, String> {
    let mut entries: BTreeMap<&str, Vec<Link>> = BTreeMap::new();
    for wanted in sources.desired.wanted.values() {
        entries.entry(&wanted.mark.key.pod_uid).or_default().push(sources.wanted(wanted));
    }
    for released in sources.desired.released.values() {
        entries.entry(&released.mark.key.pod_uid).or_default().push(sources.released(released));
    }
    for LinkKey { pod_uid, attachment } in sources.settled.unknown.keys() {
        // What was said of it before: the leader makes a pool that was lost again from it.
        let known = sources.before(pod_uid).into_iter().find(|link| link.attachment == *attachment);
        let links = entries.entry(pod_uid).or_default();
        links.extend(known.filter(|_| links.iter().all(|link| link.attachment != *attachment)));
    }
    let mut data: BTreeMap<String, String> = entries
        .into_iter()
        .filter(|(_, links)| !links.is_empty())
        .filter_map(|(pod_uid, mut links)| {
            links.sort_by(|one, other| one.attachment.cmp(&other.attachment));
            Some((pod_uid.to_owned(), serde_json::to_string(&links).ok()?))
        })
        .collect();
    data.extend(own_entry(node));
    data
}

/// The data of the report of a node whose links this process has not been able to read yet: what an earlier one said of them
/// holds, because none was changed since.
pub fn unread(node: &Node, stored: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut data = stored.clone();
    data.extend(own_entry(node));
    data
}

/// The entry about the node as a whole.
fn own_entry(node: &Node) -> Option<(String, String)> {
    serde_json::to_string(node).ok().map(|text| (NODE_KEY.to_owned(), text))
}

impl Sources<'_> {
    /// What the stored report says of a pod.
    fn before(&self, pod_uid: &str) -> Vec<Link> {
        let text = self.stored.get(pod_uid);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    fn wanted(&self, wanted: &Wanted) -> Link {
        let key = &wanted.mark.key;
        if let Some(problem) = self.settled.problems.get(key) {
            return pending(wanted, Some(problem.clone()));
        }
        let result = self.results.get(key).filter(|result| {
            result
                .as_ref()
                .map_or(true, |plugged| plugged.mark == wanted.mark && plugged.bridge.0 == wanted.bridge)
        });
        match result {
            Some(Ok(plugged)) => link(wanted, plugged),
            Some(Err(problem)) if problem.reason != RUNTIME_UNAVAILABLE.as_str() => {
                pending(wanted, Some(problem.clone()))
            }
            // It is not verified yet, or cannot be. What was said of it before holds as long as its end is there.
            other => self
                .kept(wanted)
                .unwrap_or_else(|| pending(wanted, other.and_then(|result| result.as_ref().err().cloned()))),
        }
    }

    /// What the stored report says of a link that is plugged, if nothing speaks against it.
    fn kept(&self, wanted: &Wanted) -> Option<Link> {
        let key = &wanted.mark.key;
        let end = self.settled.ends.get(key)?;
        let stored = self.before(&key.pod_uid).into_iter().find(|link| link.attachment == key.attachment)?;
        let now = Link { problem: None, ..stored };
        let is_right = now.state == LinkState::Plugged
            && now.host_link == end.name
            && now.address == wanted.mark.net.to_string()
            && now.bridge == wanted.bridge
            && now.pod_config_uid == wanted.mark.pod_config_uid;
        is_right.then_some(now)
    }

    fn released(&self, released: &Wanted) -> Link {
        let key = &released.mark.key;
        let is_left = self.settled.left.contains(key)
            || self.settled.ends.contains_key(key)
            || self.busy.contains(&key.pod_uid);
        if is_left {
            let problem = self.settled.problems.get(key).cloned();
            return pending(released, problem);
        }
        Link { state: LinkState::Released, ..pending(released, None) }
    }
}

/// A link that is not plugged.
fn pending(wanted: &Wanted, problem: Option<LinkProblem>) -> Link {
    Link {
        namespace: wanted.mark.namespace.clone(),
        pod_config: wanted.pod_config.clone(),
        pod_config_uid: wanted.mark.pod_config_uid.clone(),
        pod: wanted.pod.clone(),
        attachment: wanted.mark.key.attachment.clone(),
        state: LinkState::Pending,
        pod_link: String::new(),
        host_link: String::new(),
        address: String::new(),
        bridge: String::new(),
        problem,
    }
}

/// A link that is plugged.
fn link(wanted: &Wanted, plugged: &Plugged) -> Link {
    Link {
        state: LinkState::Plugged,
        pod_link: plugged.pod_link.clone(),
        host_link: plugged.host.0.clone(),
        address: plugged.mark.net.to_string(),
        bridge: plugged.bridge.0.clone(),
        ..pending(wanted, None)
    }
}

/// The problem of the node as a whole.
pub fn node_problem(runtime: Option<&str>, namespace: Option<&str>) -> Option<LinkProblem> {
    let of_namespace = namespace.map(|why| problem(LINK_FAILED, why));
    of_namespace.or_else(|| runtime.map(|why| problem(RUNTIME_UNAVAILABLE, why)))
}
