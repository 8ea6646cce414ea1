//! The report: a pure function of what is asked for, and of what was made.

use std::collections::{BTreeMap, BTreeSet};

use super::mark::{LinkKey, Mark};
use super::plan::{Unknown, problem};
use super::records::{Desired, Wanted};
use super::settle::Settled;
use super::work::Plugged;
use crate::api::reason::{LINK_FAILED, RUNTIME_UNAVAILABLE};
use crate::controllers::pod_network::{Link, LinkProblem, LinkState, NODE_KEY, Node};

/// How many links are named of those that should not be there.
const NAMED: usize = 5;

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
    for (LinkKey { pod_uid, attachment }, unknown) in &sources.settled.unknown {
        // The leader makes its pool again from it.
        let links = entries.entry(pod_uid).or_default();
        if links.iter().all(|link| link.attachment != *attachment) {
            links.push(sources.unknown(unknown));
        }
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

    /// A link of which no pool says anything: what was said of it before, or else what it says itself.
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
                let wanted = Wanted { mark, pod, pod_config, bridge, is_ending: false };
                let (host_link, bridge) = (name.clone(), wanted.bridge.clone());
                Link { host_link, address, bridge, ..pending(&wanted, None) }
            }
        }
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
        ..pending(wanted, plugged.problem.clone())
    }
}

/// What is still on the node although nobody asks for it, or cannot be told from that; `None` if nothing is.
pub fn leftovers(desired: &Desired, settled: &Settled) -> Option<String> {
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
            "records of pod networks cannot be read, and their links stay as they are, until the leader has made them \
             again, or somebody has deleted what is no record of a PodConfig: ",
            listed(unreadable),
        ),
        (
            "links are kept of which no record says whether they are wanted, until the leader (podConfig) does: ",
            listed(unknown),
        ),
        ("links that are to be removed are still there: ", listed(left)),
        ("bridges that no PodConfig uses are still there: ", listed(kept)),
    ];
    let said = sentences.into_iter().filter_map(|(begin, names)| Some(format!("{begin}{}", names?)));
    Some(said.collect::<Vec<_>>().join("; ")).filter(|said| !said.is_empty())
}

/// The first of these, and how many there are in addition; `None` if there are none.
fn listed(names: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = names.collect();
    let (first, more) = (all.get(..NAMED).unwrap_or(&all), all.len().saturating_sub(NAMED));
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!all.is_empty()).then(|| format!("{}{more}", first.join(", ")))
}

/// The problem of the node as a whole.
pub fn node_problem(runtime: Option<&str>, namespace: Option<&str>) -> Option<LinkProblem> {
    let of_namespace = namespace.map(|why| problem(LINK_FAILED, why));
    of_namespace.or_else(|| runtime.map(|why| problem(RUNTIME_UNAVAILABLE, why)))
}
