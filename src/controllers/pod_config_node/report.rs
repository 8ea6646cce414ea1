//! The report: a pure function of the requests and the results.

use std::collections::{BTreeMap, BTreeSet};

use super::mark::{LinkKey, Mark};
use super::plan::{Plan, Unknown, problem};
use super::records::{Desired, DesiredLink};
use super::work::Plugged;
use crate::api::reason::{LINK_FAILED, RUNTIME_UNAVAILABLE};
use crate::controllers::pod_network::{Link, LinkProblem, LinkState, NODE_KEY, Node, listed};

/// The maximum number of unwanted links that a message names.
const NAMED: usize = 5;

/// The results for the links of pods.
pub type Results = BTreeMap<LinkKey, Result<Plugged, LinkProblem>>;

/// The inputs of a report.
pub struct Sources<'s> {
    /// The requests of the pools.
    pub desired: &'s Desired,
    /// The plan that was carried out, with the node's ends.
    pub settled: &'s Plan,
    /// The results for the links.
    pub results: &'s Results,
    /// The pods whose links are being changed.
    pub busy: &'s BTreeSet<String>,
    /// The stored report.
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
    for (LinkKey { pod_uid, attachment }, unknown) in &sources.settled.unknown {
        // The leader restores the pool from this entry.
        let links = entries.entry(pod_uid).or_default();
        if links.iter().all(|link| link.attachment != *attachment) {
            links.push(sources.unknown(unknown));
        }
    }
    let entries = entries.into_iter().filter_map(|(pod_uid, mut links)| {
        links.sort_by(|one, other| one.attachment.cmp(&other.attachment));
        Some((pod_uid.to_owned(), serde_json::to_string(&links).ok()?))
    });
    entries.chain(own_entry(node)).collect()
}

/// The data of the report if this process has not been able to read the links of the node yet. The stored report of an
/// earlier process still holds, because no link was changed since.
pub fn unread(node: &Node, stored: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    stored.clone().into_iter().chain(own_entry(node)).collect()
}

/// The entry about the node as a whole.
fn own_entry(node: &Node) -> Option<(String, String)> {
    serde_json::to_string(node).ok().map(|text| (NODE_KEY.to_owned(), text))
}

impl Sources<'_> {
    /// The stored entries for a pod.
    fn before(&self, pod_uid: &str) -> Vec<Link> {
        let text = self.stored.get(pod_uid);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The entry for a link that no pool covers: the stored entry if it matches, otherwise one derived from the link
    /// itself.
    fn unknown(&self, Unknown { mark, name, bridge }: &Unknown) -> Link {
        let is_this = |link: &Link| {
            link.attachment == mark.key.attachment && link.pod_config_uid == mark.pod_config_uid
        };
        let before = self.before(&mark.key.pod_uid).into_iter().find(is_this);
        let address = mark.net.to_string();
        match before {
            Some(link) if link.state == LinkState::Plugged && link.address == address => link,
            other => {
                let (pod_config, pod) = other.map(|link| (link.pod_config, link.pod)).unwrap_or_default();
                let (mark, bridge) = (mark.clone(), bridge.clone());
                let wanted = DesiredLink { mark, pod, pod_config, bridge, is_ending: false };
                let (host_link, bridge) = (name.clone(), wanted.bridge.clone());
                Link { host_link, address, bridge, ..pending(&wanted, None) }
            }
        }
    }

    fn wanted(&self, wanted: &DesiredLink) -> Link {
        let key = &wanted.mark.key;
        if let Some(problem) = self.settled.problems.get(key) {
            return pending(wanted, Some(problem.clone()));
        }
        let is_wanted = |plugged: &Plugged| plugged.mark == wanted.mark && plugged.bridge.0 == wanted.bridge;
        let result = self.results.get(key).filter(|result| result.as_ref().map_or(true, is_wanted));
        match result {
            Some(Ok(plugged)) => link(wanted, plugged),
            Some(Err(problem)) if problem.reason != RUNTIME_UNAVAILABLE.as_str() => {
                pending(wanted, Some(problem.clone()))
            }
            // The link is not verified yet, or cannot be verified. The stored entry holds while the node's end exists.
            other => self
                .kept(wanted)
                .unwrap_or_else(|| pending(wanted, other.and_then(|result| result.as_ref().err().cloned()))),
        }
    }

    /// The stored entry of a plugged link, if it does not contradict the current state.
    fn kept(&self, wanted: &DesiredLink) -> Option<Link> {
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

    fn released(&self, released: &DesiredLink) -> Link {
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

/// The entry of a link that is not plugged.
fn pending(wanted: &DesiredLink, problem: Option<LinkProblem>) -> Link {
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

/// The entry of a plugged link.
fn link(wanted: &DesiredLink, plugged: &Plugged) -> Link {
    Link {
        state: LinkState::Plugged,
        pod_link: plugged.pod_link.clone(),
        host_link: plugged.host.0.clone(),
        address: plugged.mark.net.to_string(),
        bridge: plugged.bridge.0.clone(),
        ..pending(wanted, plugged.problem.clone())
    }
}

/// Describes the links and bridges that remain on the node without a request, or possibly without one. Returns
/// `None` if there are no such links or bridges.
pub fn leftovers(desired: &Desired, settled: &Plan) -> Option<String> {
    let unreadable = desired.unreadable.iter().cloned();
    let unknown =
        settled.unknown.values().map(|Unknown { name, mark: Mark { net, namespace, .. }, .. }| {
            format!("{name} with {net} of namespace {namespace}")
        });
    let left = settled.left.iter().map(|key| {
        let why = settled.problems.get(key).map(|problem| format!(" ({})", problem.message));
        format!("{} of the pod with uid {}{}", key.attachment, key.pod_uid, why.unwrap_or_default())
    });
    let kept = settled.kept.iter().map(|(bridge, why)| format!("{bridge}, which {why}"));
    let sentences = [
        (
            "records of pod networks cannot be parsed; their links stay unchanged until the leader has restored the \
             records or an administrator has deleted those that do not belong to a PodConfig: ",
            listed(unreadable, NAMED),
        ),
        (
            "links without a record are kept until the leader (podConfig) decides about them: ",
            listed(unknown, NAMED),
        ),
        ("links to be removed still exist: ", listed(left, NAMED)),
        ("bridges that no PodConfig uses still exist: ", listed(kept, NAMED)),
    ];
    let said = sentences.into_iter().filter(|(_, names)| !names.is_empty());
    let said = said.map(|(begin, names)| format!("{begin}{names}"));
    Some(said.collect::<Vec<_>>().join("; ")).filter(|said| !said.is_empty())
}

/// The problem that affects the whole node, if any.
pub fn node_problem(runtime: Option<&str>, namespace: Option<&str>) -> Option<LinkProblem> {
    let of_namespace = namespace.map(|why| problem(LINK_FAILED, why));
    of_namespace.or_else(|| runtime.map(|why| problem(RUNTIME_UNAVAILABLE, why)))
}
