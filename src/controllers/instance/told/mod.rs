//! The events about an environment that has waited for `stalledAfter` without another cause.

use std::time::Duration;

use jiff::Timestamp;

use super::cause::Cause;
use super::environment::EnvironmentContext;
use super::observe::Observed;
use super::phase;
use super::plan::Plan;
use crate::api::condition::{Condition, READY};
use crate::api::reason::{self, CauseRow, Source};
use crate::api::{Kind, Object};
use crate::config::InstanceConfig;
use crate::controllers::shared::waits::passed;
use crate::kinds::{
    DataVolumeKind, DeploymentKind, PersistentVolumeClaimKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::object_events::{About, Events, Told};

/// The event reasons of an autoscaler that decides about an unschedulable pod.
const AUTOSCALER: [&str; 2] = ["TriggeredScaleUp", "NotTriggerScaleUp"];

/// The cause according to the objects of an environment, or else according to the events about them.
pub fn explained(context: &EnvironmentContext<'_>, cause: Option<Cause>) -> Option<Cause> {
    if !is_open(cause.as_ref()) {
        return cause;
    }
    match &context.observed.events {
        Events::Read(Some(told)) => of_event(told, cause),
        Events::Read(None) => cause,
        Events::Unknown => stored(context.observed).or(cause),
    }
}

/// Whether events may provide more detail: there is no cause, or the cause itself has a cause.
fn is_open(cause: Option<&Cause>) -> bool {
    cause.is_none_or(|cause| {
        matches!(cause.row.source, Source::Scheduling | Source::Claim | Source::Event)
            || cause.row.reason == reason::POD_NOT_STARTED
    })
}

/// The cause according to an event, given the cause from the objects.
fn of_event(told: &Told, cause: Option<Cause>) -> Option<Cause> {
    let source = cause.as_ref().map(|cause| cause.row.source);
    let decides = AUTOSCALER.contains(&&*told.word) || *told.kind == *PersistentVolumeClaimKind::KIND;
    if matches!(source, Some(Source::Scheduling | Source::Claim)) && !decides {
        return cause;
    }
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
    Some(Cause { row, message: ready.message.to_string() })
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
    let is_unexplained = |context: &EnvironmentContext<'_>| {
        phase::of_workload(context)
            .is_some_and(|(phase, cause)| !phase::is_settled(&phase) && is_open(cause.as_ref()))
    };
    if !observed.instance.spec.running || !contexts.iter().any(is_unexplained) {
        return;
    }
    let left = left(observed, config, now);
    if left.is_zero() {
        let is_unexplained = stored(observed).is_none();
        plan.awaited = Some(About { is_unexplained, ..about(observed) });
    } else {
        plan.requeue_after(left);
    }
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

/// The objects of the Instance whose events are relevant. Events about a claim that is bound, or a disk that is filled,
/// say why it once was not.
fn about(observed: &Observed) -> About {
    let mut about = About { namespace: observed.instance.namespace().to_owned(), ..About::default() };
    let uids = &mut about.uids;
    uids.extend(own::<DeploymentKind>(observed).map(|object| object.uid().to_owned()));
    let unbound = own::<PersistentVolumeClaimKind>(observed).filter(|claim| claim.status.phase != "Bound");
    uids.extend(unbound.map(|claim| claim.uid().to_owned()));
    uids.extend(own::<VirtualMachineInstanceKind>(observed).map(|object| object.uid().to_owned()));
    for machine in own::<VirtualMachineKind>(observed) {
        // KubeVirt and CDI create these under the same name.
        let running = observed.named::<VirtualMachineInstanceKind>(machine.name()).map(Object::uid);
        let disk = observed.named::<DataVolumeKind>(machine.name());
        let disk = disk.filter(|disk| disk.status.phase != "Succeeded").map(Object::uid);
        uids.extend([Some(machine.uid()), running, disk].into_iter().flatten().map(str::to_owned));
        about.claims.extend(disk.map(|_| machine.name().to_owned()));
    }
    for pod in &observed.pods {
        let controller = pod.metadata.controller().map(|owner| owner.uid.to_string());
        uids.extend(controller.into_iter().chain([pod.uid().to_owned()]));
    }
    about
}

/// The objects of a kind that the Instance controls.
fn own<T: Kind>(observed: &Observed) -> impl Iterator<Item = &Object<T>> {
    observed.children.of::<T>().filter(|object| object.is_controlled_by(&observed.instance))
}

#[cfg(test)]
mod tests;
