//! The events about an environment that has waited for `stalledAfter` without another cause.

use std::time::Duration;

use jiff::Timestamp;

use super::cause::{Cause, pods_of};
use super::environment::EnvironmentContext;
use super::observe::Observed;
use super::phase;
use super::plan::Plan;
use crate::api::condition::{Condition, READY};
use crate::api::instance::InstancePhase as Phase;
use crate::api::reason::{self, CauseRow, Source};
use crate::api::{Kind, Object};
use crate::config::InstanceConfig;
use crate::controllers::shared::waits::passed;
use crate::kinds::{
    DataVolumeKind, DeploymentKind, PersistentVolumeClaimKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::object_events::{About, Events, LONGEST_WAIT, Told};

/// The event reasons of an autoscaler that decides about an unschedulable pod.
const AUTOSCALER: [&str; 2] = ["TriggeredScaleUp", "NotTriggerScaleUp"];

/// The cause according to the objects of an environment, or else according to the events about them.
pub fn explained(context: &EnvironmentContext<'_>, cause: Option<Cause>) -> Option<Cause> {
    if !is_open(cause.as_ref()) {
        return cause;
    }
    match &context.observed.events {
        Events::Read(told) => of_events(&own_events(context, told), cause),
        Events::Unknown => stored(context.observed).or_else(|| cause.map(awaiting)),
    }
}

/// The events about an environment: those that are not about another one.
fn own_events<'a>(context: &EnvironmentContext<'_>, all: &'a [Told]) -> Vec<&'a Told> {
    let contexts = EnvironmentContext::all(context.observed, context.config);
    let others: Vec<About> =
        contexts.iter().filter(|other| other.name != context.name).map(about_environment).collect();
    all.iter().filter(|told| !others.iter().any(|other| other.means(told))).collect()
}

/// A cause whose events are unknown. An autoscaler may have decided to add a node for an unschedulable pod.
fn awaiting(cause: Cause) -> Cause {
    let grace = if cause.row.source == Source::Scheduling { LONGEST_WAIT } else { Duration::ZERO };
    Cause { grace, ..cause }
}

/// Whether events may provide more detail: there is no cause, or the cause itself has a cause.
fn is_open(cause: Option<&Cause>) -> bool {
    cause.is_none_or(|cause| {
        matches!(cause.row.source, Source::Scheduling | Source::Claim | Source::Event)
            || cause.row.reason == reason::POD_NOT_STARTED
    })
}

/// The cause according to events, from the newest one on, given the cause from the objects.
fn of_events(events: &[&Told], cause: Option<Cause>) -> Option<Cause> {
    let source = cause.as_ref().map(|cause| cause.row.source);
    let decides =
        |told: &Told| AUTOSCALER.contains(&&*told.word) || *told.kind == *PersistentVolumeClaimKind::KIND;
    let is_decided = matches!(source, Some(Source::Scheduling | Source::Claim));
    let Some(told) = events.iter().find(|told| !is_decided || decides(told)) else { return cause };
    let scheduler = cause.filter(|cause| cause.row.source == Source::Scheduling);
    let message = match scheduler {
        Some(scheduler) if *told.word == *"NotTriggerScaleUp" => format!("{told}; {}", scheduler.message),
        _ => told.to_string(),
    };
    Some(Cause::new(Source::Event, &told.word, message))
}

/// The cause that an earlier process found in an event. It is read from `Ready` until this process has read the events.
fn stored(observed: &Observed) -> Option<Cause> {
    let status = &observed.instance.status;
    let ready = ready(observed).filter(|ready| ready.status == "False" && status.environments.len() == 1)?;
    let row = CauseRow::all().iter().find(|row| {
        let is_said = || row.word.is_empty() || ready.message.contains(&format!(": {}: ", row.word));
        row.source == Source::Event && ready.reason == *row.reason && is_said()
    })?;
    Some(Cause { row, message: ready.message.to_string(), grace: Duration::ZERO })
}

fn ready(observed: &Observed) -> Option<&Condition> {
    observed.instance.status.conditions.iter().find(|condition| condition.type_ == READY)
}

/// Plans to read the events of an Instance that has waited long enough, if the cause of an environment is unknown.
pub fn plan(
    observed: &Observed,
    config: &InstanceConfig,
    contexts: &[EnvironmentContext<'_>],
    now: Timestamp,
    plan: &mut Plan,
) {
    let is_waiting = |(phase, _): &(Phase, Option<Cause>)| !phase::is_settled(phase);
    let waits = contexts.iter().filter_map(phase::of_workload).filter(is_waiting);
    let open: Vec<Option<Cause>> =
        waits.map(|(_, cause)| cause).filter(|cause| is_open(cause.as_ref())).collect();
    if !observed.instance.spec.running || open.is_empty() {
        return;
    }
    let left = left(observed, config, now);
    if !left.is_zero() {
        return plan.requeue_after(left);
    }
    let awaiting: Vec<&Cause> = open.iter().flatten().filter(|cause| !cause.grace.is_zero()).collect();
    let conditions = &observed.instance.status.conditions;
    plan.requeue_after(awaiting.iter().filter_map(|cause| cause.left(conditions, config, now)).min());
    // A list without an event is news for these.
    let is_unexplained = stored(observed).is_none() && awaiting.is_empty();
    plan.awaited = Some(About { is_unexplained, ..about(observed, contexts) });
}

/// The remaining wait until the events of the Instance are read.
fn left(observed: &Observed, config: &InstanceConfig, now: Timestamp) -> Duration {
    let all = config.stalled_after.get();
    let Some(ready) = ready(observed).filter(|ready| ready.status == "False") else {
        // The Instance has only just started to wait.
        return all.max(Duration::from_secs(1));
    };
    all.saturating_sub(passed(ready.last_transition_time.0, now))
}

/// The objects of the Instance whose events are relevant.
fn about(observed: &Observed, contexts: &[EnvironmentContext<'_>]) -> About {
    let mut about = About { namespace: observed.instance.namespace().to_owned(), ..About::default() };
    for About { uids, claims, .. } in contexts.iter().map(about_environment) {
        about.uids.extend(uids);
        about.claims.extend(claims);
    }
    about
}

/// The objects of an environment whose events are relevant. Events about a claim that is bound, or a disk that is
/// filled, say why it once was not.
fn about_environment(context: &EnvironmentContext<'_>) -> About {
    let (observed, mut about) = (context.observed, About::default());
    let uids = &mut about.uids;
    let deployment = context.own::<DeploymentKind>();
    let claim = context.own::<PersistentVolumeClaimKind>().filter(|claim| claim.status.phase != "Bound");
    let machine = context.own::<VirtualMachineKind>();
    // KubeVirt and CDI create the objects of a machine under the same name.
    let of_machine = machine.and_then(|machine| observed.named::<VirtualMachineInstanceKind>(machine.name()));
    let running = context.own::<VirtualMachineInstanceKind>().or(of_machine);
    let disk = machine.and_then(|machine| observed.named::<DataVolumeKind>(machine.name()));
    let disk = disk.filter(|disk| disk.status.phase != "Succeeded");
    let own = [deployment.map(Object::uid), claim.map(Object::uid), machine.map(Object::uid)];
    let created = [running.map(Object::uid), disk.map(Object::uid)];
    uids.extend(own.into_iter().chain(created).flatten().map(str::to_owned));
    about.claims.extend(disk.map(|disk| {
        let created = disk.metadata.creation_timestamp.as_ref();
        (disk.name().to_owned(), created.map_or(Timestamp::MIN, |created| created.0))
    }));
    let pods = deployment.into_iter().flat_map(|deployment| pods_of(observed, deployment));
    for pod in pods.chain(running.into_iter().flat_map(|running| pods_of(observed, running))) {
        let controller = pod.metadata.controller().map(|owner| owner.uid.to_string());
        uids.extend(controller.into_iter().chain([pod.uid().to_owned()]));
    }
    about
}

#[cfg(test)]
mod tests;
