//! The state of an installation as JSON.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{DaemonPod, Definition, Installation, KindCount, LeaderLease, NotRead, Problem, SHOWN_PROBLEMS};
use crate::explain::obstacle;
use crate::runtime::readiness::state::VERSION;

/// Returns the state as JSON, with all problems, or with the oldest ones.
pub fn value(found: &Installation, all: bool, now: Timestamp) -> Value {
    let shown = if all { usize::MAX } else { SHOWN_PROBLEMS };
    let problem = |problem: &Problem| obstacle::value(&problem.about(), &problem.condition);
    let unread = |NotRead { what, reason }: &NotRead| json!({"what": what, "reason": reason});
    json!({
        "clientVersion": VERSION,
        "apiServerVersion": found.api_server,
        "leases": found.leases.iter().map(|it| lease(it, now)).collect::<Vec<_>>(),
        "pods": found.pods.iter().map(pod).collect::<Vec<_>>(),
        "loops": found.pods.iter().flat_map(loops).collect::<Vec<_>>(),
        "faults": found.pods.iter().flat_map(faults).collect::<Vec<_>>(),
        "outsideSystems": servers(found, now),
        "definitions": found.definitions.iter().map(definition).collect::<Vec<_>>(),
        "objects": found.kinds.iter().map(kind).collect::<Vec<_>>(),
        "problems": found.problems.iter().take(shown).map(problem).collect::<Vec<_>>(),
        "problemsTotal": found.problems.len(),
        "notRead": found.not_read.iter().map(unread).collect::<Vec<_>>(),
    })
}

fn lease(it: &LeaderLease, now: Timestamp) -> Value {
    let LeaderLease { namespace, name, selector, holder, since, renewed, seconds: _ } = it;
    json!({"namespace": namespace, "name": name, "selector": selector, "held": it.is_held(now), "holder": holder,
        "pod": it.pod(), "since": since, "renewed": renewed})
}

fn pod(pod: &DaemonPod) -> Value {
    let DaemonPod { namespace, name, image, port: _, is_ready, restarts, leads, state } = pod;
    let version = state.as_ref().map(|state| &state.version);
    json!({"namespace": namespace, "name": name, "image": image, "version": version, "ready": is_ready,
        "restarts": restarts, "leads": leads})
}

/// The loops of a pod.
fn loops(pod: &DaemonPod) -> impl Iterator<Item = Value> {
    let loops = pod.state.iter().flat_map(|state| &state.loops);
    loops.map(move |it| {
        json!({"namespace": pod.namespace, "pod": pod.name, "loop": it.name, "state": it.state,
            "message": it.message})
    })
}

/// The faults that a pod reports.
fn faults(pod: &DaemonPod) -> impl Iterator<Item = Value> {
    let faults = pod.state.iter().flat_map(|state| &state.faults);
    faults.map(
        |it| json!({"namespace": pod.namespace, "pod": pod.name, "about": it.about, "message": it.message}),
    )
}

fn servers(found: &Installation, now: Timestamp) -> Vec<Value> {
    let servers = found.servers().into_iter().map(|((system, server), outage)| {
        let since = outage.and_then(|outage| began(outage.seconds, now));
        json!({"system": system, "server": server, "works": outage.is_none(), "since": since,
            "effect": outage.map(|outage| &outage.effect), "error": outage.map(|outage| &outage.error)})
    });
    servers.collect()
}

/// The time that many seconds ago.
fn began(seconds: u64, now: Timestamp) -> Option<Time> {
    let seconds = jiff::SignedDuration::from_secs(i64::try_from(seconds).ok()?);
    Some(Time(now.checked_sub(seconds).ok()?))
}

fn definition(definition: &Definition) -> Value {
    let Definition { name, is_installed, is_established, served, stored } = definition;
    json!({"name": name, "installed": is_installed, "established": is_established, "served": served,
        "stored": (!stored.is_empty()).then_some(stored)})
}

fn kind(count: &KindCount) -> Value {
    json!({"kind": count.kind, "total": count.total(), "states": count.states})
}
