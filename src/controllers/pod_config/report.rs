//! The status of a `PodConfig`: a pure function of the state observed after the plan was carried out, and of its
//! failures.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::observe::{Member, Observed, Settings};
use super::plan::PATIENCE;
use super::sample::{SAMPLE, conflict};
use crate::api::condition::{ConditionType, DELETION_BLOCKED, NAME_CONFLICT, READY, STALLED};
use crate::api::pod_config::{PodConfigKind, PodConfigStatus, PodConfiguration};
use crate::api::{reason, shown};
use crate::controllers::pod_network::{Allocation, Link, LinkState, listed};
use crate::controllers::shared::problems;
use crate::kinds::{NetworkedPod, NetworkedPodKind, NodeKind};
use crate::runtime::ObjectKey;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::{EventNote, EventType, Regarding};
use crate::runtime::plan::{KindInfo, Plan};
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{Outcome, Report};

/// The maximum number of pods with a separate event in one report. The last event counts the others.
const NAMED: usize = 20;
/// The maximum number of explanations in the message about a blocked deletion.
const EXPLAINED: usize = 3;

/// The phases.
mod phase {
    /// No pod requests interfaces.
    pub const UNSET: &str = "unset";
    /// A pod lacks an interface, or an attachment was refused.
    pub const CONFIGURING: &str = "configuring";
    /// All pods have all interfaces.
    pub const CONFIGURED: &str = "configured";
}

/// The report of a reconcile.
pub fn report(
    observed: &Observed,
    settings: &Settings,
    plan: &Plan,
    outcome: &Outcome<()>,
    now: Timestamp,
) -> Report<PodConfigKind> {
    let config = &observed.config;
    let Some(own) = observed.own() else { return Report::new(config.status.clone(), orphaned(observed)) };
    if config.is_terminating() {
        return leaving(observed, now);
    }
    let old = &config.status;
    let mut problems = problems::problems(plan, outcome, now, problems::describe);
    for problem in &mut problems {
        if problem.component == SAMPLE && problem.reason == reason::NAME_CONFLICT {
            *problem = conflict(observed);
        }
    }
    let pods = verified(observed, own);
    let is_full = |links: &[&Link]| links.len() == own.validated.attachments.len();
    let full: Vec<&str> = pods.iter().filter(|(_, links)| is_full(links)).map(|(name, _)| *name).collect();
    let entries = pods.iter().filter(|(_, links)| !links.is_empty()).map(|(pod_name, links)| {
        let config_list = links.iter().map(|link| link.text()).collect();
        PodConfiguration { pod_name: (*pod_name).to_owned(), config_list }
    });
    let entries: Vec<PodConfiguration> = entries.collect();
    let phase = phase(own, pods.len(), full.len());
    let notes = notes(observed);
    let ready = ready(own, (pods.len(), full.len()), &problems, &notes);
    let mut events = problems::events(&old.conditions, &problems);
    events.extend(news(observed, &full, &entries));
    events.extend(noted(observed, notes));
    events.extend(orphaned(observed));
    let mut status = PodConfigStatus { phase: phase.to_owned(), pod_configurations: entries, ..old.clone() };
    status.observed_generation = config.metadata.generation;
    let well = "Addresses, records and the sample are up to date";
    let stalled_after = settings.stalled_after;
    status.conditions =
        problems::conditions(config, &old.conditions, vec![ready], &problems, well, stalled_after, now);
    let requeue_after = problems::requeue_after(&status.conditions, stalled_after, now);
    Report { requeue_after, ..Report::new(status, events) }
}

/// The pods that need all interfaces, each with the links that match their allocations, in the order of the spec.
fn verified<'a>(observed: &'a Observed, own: &'a Member) -> Vec<(&'a str, Vec<&'a Link>)> {
    let links = |pod: &'a NetworkedPod| {
        let attachments = own.validated.attachments.iter();
        attachments.filter_map(|(attachment, _)| observed.verified(pod, &attachment.name)).collect()
    };
    // A pod that is being deleted keeps its interfaces, and gets no further ones.
    let pods = own.pods.iter().filter(|pod| !pod.is_terminating());
    pods.map(|pod| (pod.name(), links(pod))).collect()
}

fn phase(own: &Member, all: usize, full: usize) -> &'static str {
    match all {
        0 => phase::UNSET,
        _ if full < all || !own.validated.problems.is_empty() => phase::CONFIGURING,
        _ => phase::CONFIGURED,
    }
}

fn ready(own: &Member, (all, full): (usize, usize), problems: &[Problem], notes: &[Note]) -> Observation {
    let phase = phase(own, all, full);
    let state = match phase {
        phase::UNSET => reason::NO_PODS,
        phase::CONFIGURED => reason::CONFIGURED,
        _ => reason::CONFIGURING,
    };
    let worst = problems.iter().find(|problem| !problem.waiting).or(problems.first());
    let said = match phase {
        phase::UNSET => "no pod requests interfaces".to_owned(),
        _ => format!("{full} of {all} pods have all their interfaces"),
    };
    let is_less = phase != phase::UNSET && own.validated.is_refused;
    let said = if is_less { format!("{said} except the refused ones") } else { said };
    let see = if worst.is_some() { "; see condition Reconciled" } else { "" };
    let notes: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
    let is_ready = worst.is_none() && phase != phase::CONFIGURING;
    let and = if notes.is_empty() { "" } else { "; " };
    let message = format!("{said}{see}{and}{}", notes.join("; "));
    Observation::new(READY, is_ready, worst.map_or(state, |worst| worst.reason), message)
}

/// A case that the loop ignores and that is not a fault of the object. The condition `Ready` repeats its text, so that
/// its event is published only once.
struct Note {
    text: String,
    event: EventNote,
}

fn notes(observed: &Observed) -> Vec<Note> {
    let config = &observed.config;
    let mut notes = Vec::new();
    if !config.spec.vlans.is_empty() {
        let text = "spec.vlans is ignored".to_owned();
        let message = "spec.vlans is ignored: virtual LANs are not implemented";
        let event = EventNote::warning(reason::VLANS_NOT_IMPLEMENTED, message);
        notes.push(Note { text, event });
    }
    for pod in observed.host_network.iter().take(NAMED) {
        let message = format!(
            "PodConfig {} gives this pod no interface, because the pod uses the host network: remove hostNetwork or the \
             label podconfig from the pod",
            config.name()
        );
        let regarding = Some(Regarding {
            kind: KindInfo::of::<NetworkedPodKind>(),
            key: ObjectKey { namespace: pod.namespace.clone(), name: pod.name.clone() },
            uid: pod.uid.to_string(),
        });
        let event = EventNote { regarding, ..EventNote::warning(reason::HOST_NETWORK_POD, message) };
        notes.push(Note { text: format!("pod {} uses the host network and is ignored", pod.name), event });
    }
    notes
}

/// The events of the notes that are not in the stored condition yet.
fn noted(observed: &Observed, notes: Vec<Note>) -> impl Iterator<Item = EventNote> {
    let ready = observed.config.status.conditions.iter().find(|condition| condition.type_ == READY);
    let published = ready.map(|condition| condition.message.as_str()).unwrap_or_default();
    notes.into_iter().filter(move |note| !published.contains(&note.text)).map(|note| note.event)
}

/// The events about pods that have just got all their interfaces or no longer have them.
fn news(observed: &Observed, full: &[&str], entries: &[PodConfiguration]) -> Vec<EventNote> {
    let old = &observed.config.status.pod_configurations;
    let lists = |name: &str, all: &[PodConfiguration]| {
        all.iter().find(|entry| entry.pod_name == name).map_or(0, |entry| entry.config_list.len())
    };
    let new = full.iter().copied().filter(|name| lists(name, old) < lists(name, entries));
    let configured = new.filter_map(|name| {
        let entry = entries.iter().find(|entry| entry.pod_name == name)?;
        Some(format!("pod {name} has its interfaces: {}", entry.config_list.join(", ")))
    });
    let mut events = counted(reason::CONFIGURED, configured.collect());
    let gone = old.iter().filter(|entry| !entries.iter().any(|now| now.pod_name == entry.pod_name));
    events.extend(released(gone));
    events
}

fn released<'a>(gone: impl Iterator<Item = &'a PodConfiguration>) -> Vec<EventNote> {
    let messages = gone.map(|entry| format!("pod {} no longer has interfaces", entry.pod_name));
    counted(reason::RELEASED, messages.collect())
}

/// These messages as events. If there are too many, a last event counts the rest.
fn counted(reason: reason::Reason, mut messages: Vec<String>) -> Vec<EventNote> {
    let more = messages.len().saturating_sub(NAMED);
    messages.truncate(NAMED);
    messages.extend((more > 0).then(|| format!("the same applies to {more} more pods")));
    messages.into_iter().map(|message| EventNote::new(EventType::Normal, reason, message)).collect()
}

/// The report of a `PodConfig` that is being deleted.
fn leaving(observed: &Observed, now: Timestamp) -> Report<PodConfigKind> {
    let config = &observed.config;
    let old = &config.status;
    let mut events = released(old.pod_configurations.iter());
    events.extend(orphaned(observed));
    let mut observations =
        vec![Observation::new(READY, false, reason::DELETING, "The PodConfig is being deleted")];
    if let Some(message) = blocked(observed, now) {
        let former = old.conditions.iter().find(|condition| condition.type_ == DELETION_BLOCKED);
        let message = shown::message(&message);
        if former.is_none_or(|former| former.message != message) {
            events.push(EventNote::warning(reason::LINKS_LEFT, &*message));
        }
        observations.push(Observation::new(DELETION_BLOCKED, true, reason::LINKS_LEFT, message));
    }
    let retired: &[ConditionType] = &[NAME_CONFLICT, STALLED, DELETION_BLOCKED];
    let retired = if observations.len() > 1 { retired.get(..2).unwrap_or_default() } else { retired };
    let observed_generation = config.metadata.generation;
    let conditions = conditions::merge(&old.conditions, &observations, retired, observed_generation, now);
    let phase = phase::UNSET.to_owned();
    let status = PodConfigStatus { phase, pod_configurations: Vec::new(), observed_generation, conditions };
    Report::new(status, events)
}

/// The events about nodes that have links of deleted `PodConfig`s, because no status can report them. The reconcile of
/// one object per namespace publishes them, or the reconcile of the namespace's leftovers.
fn orphaned(observed: &Observed) -> Vec<EventNote> {
    let held = observed.members.iter().filter(|member| member.is_held());
    let first = held.min_by_key(|member| member.config.name()).map_or("", |member| member.config.uid());
    if first != observed.config.uid() {
        return Vec::new();
    }
    let all = observed.pools.iter().flat_map(|view| view.pool.allocations());
    let gone = all.filter(|(uid, link)| {
        let said = observed.link(&link.node, uid, &link.attachment);
        let is_there = said.is_none_or(|said| said.state != LinkState::Released);
        link.release && is_there && !observed.exists(&link.pod_config_uid)
    });
    let mut nodes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (_, link) in gone {
        nodes.entry(&link.node).or_default().push(format!("{} ({})", link.attachment, link.address));
    }
    let note = |(node, links): (&str, Vec<String>)| {
        let message = format!(
            "links of deleted PodConfigs of namespace {} are still to be removed on this node by podConfigNode: {}",
            observed.config.namespace(),
            listed(links, NAMED)
        );
        let (kind, key) = (KindInfo::of::<NodeKind>(), ObjectKey::new("", node));
        // The kubelet uses the name of the node as uid, too, and events are looked up by it.
        let regarding = Some(Regarding { kind, key, uid: node.to_owned() });
        EventNote { regarding, ..EventNote::warning(reason::LINKS_LEFT, message) }
    };
    nodes.into_iter().map(note).collect()
}

/// A message that names the nodes that still have links, if the removal takes long.
fn blocked(observed: &Observed, now: Timestamp) -> Option<String> {
    let deleted = observed.config.metadata.deletion_timestamp.as_ref()?;
    if now.duration_since(deleted.0) < PATIENCE {
        return None;
    }
    let all = observed.pools.iter().flat_map(|view| view.pool.allocations());
    let own = all.filter(|(_, allocation)| allocation.pod_config_uid == observed.config.uid());
    let own: Vec<(&str, &Allocation)> = own.collect();
    let nodes: BTreeSet<&str> = own.iter().map(|(_, allocation)| allocation.node.as_str()).collect();
    if nodes.is_empty() {
        return None;
    }
    let (silent, late): (BTreeSet<&str>, BTreeSet<&str>) =
        nodes.iter().partition(|node| !observed.reports.contains_key(**node));
    let list = |nodes: &BTreeSet<&str>| listed(nodes, NAMED);
    let why = late.iter().filter_map(|node| {
        let problem = observed.reports.get(*node)?.node.problem.as_ref()?;
        Some(format!("node {node}: {}", problem.message))
    });
    let of_links = own.iter().filter_map(|(uid, Allocation { node, attachment, pod, .. })| {
        let problem = observed.link(node, uid, attachment)?.problem.as_ref()?;
        Some(format!("attachment {attachment} of pod {pod} on node {node}: {}", problem.message))
    });
    let why: Vec<String> = why.chain(of_links).take(EXPLAINED).collect();
    let late = (!late.is_empty()).then(|| format!("links are still to be removed on {}", list(&late)));
    let silent = (!silent.is_empty()).then(|| {
        format!("{} has never reported: does crownlabs run there with podConfigNode?", list(&silent))
    });
    Some(late.into_iter().chain(silent).chain(why).collect::<Vec<_>>().join("; "))
}
