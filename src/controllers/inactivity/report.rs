//! The report of an Instance's inactivity: a pure function.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::Settings;
use super::observe::{ABANDONED, INACTIVE, Observed};
use crate::api::condition::Condition;
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::api::promise::Promise;
use crate::controllers::shared::ending::{Effect, Ending, observation, tell};
use crate::controllers::shared::promise::{later, withdrawn};
use crate::runtime::clock::rfc3339;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::plan::{ObjectPatch, Plan};
use crate::runtime::reconciler::{Outcome, Report};

/// How much later a use must be than the stored one to be written, while nothing was promised: a stamp a day.
const STAMP: Duration = Duration::from_hours(24);
/// The age at which an Instance gets its first stamp, so that those that live shortly cost no write.
const FIRST_STAMP: Duration = Duration::from_hours(1);
/// The reason of [`INACTIVE`] on an Instance that was stopped by this loop.
const STOPPED: &str = "Stopped";

/// The report.
pub fn report(
    observed: &Observed,
    settings: &Settings,
    plan: &Plan<Effect>,
    outcome: &Outcome<Timestamp>,
    now: Timestamp,
) -> Report<InstanceKind> {
    let instance = &observed.instance;
    let old = &instance.status;
    let mut status = old.clone();
    let mut told_conditions: Vec<Observation> = Vec::new();
    let (mut events, mut patch) = (Vec::new(), None);
    // The condition that stays as it is: the times in it are as old as those in the stored promise.
    let mut kept = None;
    let has_checked = plan.effects.contains(&Effect::Check) && outcome.is_applied;
    let mut requeue_at_once = has_checked;
    let acts = !plan.remove.is_empty() || !plan.patches.is_empty();
    let running = instance.spec.running;
    match observed.ending(settings, now) {
        Err(_) => told_conditions.extend(plan.problems.first().map(|problem| observation(problem, INACTIVE))),
        Ok(None) => {
            // First the annotations, from which a promise without a status is read.
            let kept = old.inactivity.as_deref().map(withdrawn);
            patch = kept.filter(|_| running).and_then(|kept| annotations(observed, &kept));
            status.inactivity = None;
            status.destruction = None;
        }
        Ok(Some(ending)) => {
            let before = if running { &old.inactivity } else { &old.destruction };
            let told =
                tell(&ending, before.as_deref().unwrap_or(&Promise::default()), plan, outcome, acts, now);
            let is_new = !has_checked
                && (is_to_be_stored(&ending, before.as_deref(), &told.promise, now)
                    || running && observed.was_stopped());
            let known = old.conditions.iter().find(|known| known.type_.as_str() == told.condition.type_);
            let has_turned = known.is_none_or(|known| known.reason.as_str() != told.condition.reason);
            if is_new || told.problem.is_some() || before.is_some() && has_turned {
                told_conditions.push(told.condition);
            } else if known.is_some() {
                kept = Some(ending.way.condition);
            }
            let promise = if is_new { Some(Box::new(told.promise.clone())) } else { before.clone() };
            requeue_at_once |=
                outcome.is_applied && outcome.is_success() && is_new && !plan.effects.is_empty();
            (status.inactivity, status.destruction) = if running { (promise, None) } else { (None, promise) };
            patch = (is_new && running).then(|| annotations(observed, &told.promise)).flatten();
            events = told.events;
        }
    }
    // This loop stops an Instance and sets the annotation in one write, while the promise is stored: both tell who did it.
    let has_stopped = !running && observed.was_stopped() && old.inactivity.is_some();
    if !running && observed.is_watched() && !observed.was_stopped() {
        // A start begins a new time without use, even if it is seen only later. The annotation follows the promise's end.
        let annotations = json!({"metadata": {"annotations": {labels::LAST_RUNNING: "false"}}});
        patch = ObjectPatch::of(&**instance, &annotations).filter(|_| old.inactivity.is_none());
        requeue_at_once |= old.inactivity.is_some() && outcome.is_applied;
    }
    status.conditions = conditions(observed, told_conditions, kept, has_stopped, now);
    Report { patch, requeue_at_once, ..Report::new(status, events) }
}

/// The conditions of the Instance: those in `told`, the one that is `kept` as it is, and that it was stopped. Those
/// of other loops stay.
fn conditions(
    observed: &Observed,
    mut told: Vec<Observation>,
    kept: Option<&str>,
    has_stopped: bool,
    now: Timestamp,
) -> Vec<Condition> {
    let instance = &observed.instance;
    let old = &instance.status.conditions;
    if has_stopped {
        let message = "Nobody has used the Instance for the time that its Template allows; start it to go on";
        told.push(Observation::new(INACTIVE, true, STOPPED, message));
    }
    let was_stopped = old.iter().any(|known| known.type_ == INACTIVE && known.reason == STOPPED);
    let stays = |type_: &str| {
        told.iter().any(|told| told.type_ == type_)
            || kept == Some(type_)
            || type_ == INACTIVE && was_stopped && !instance.spec.running
    };
    let retired: Vec<&str> = [INACTIVE, ABANDONED].into_iter().filter(|type_| !stays(type_)).collect();
    conditions::merge(old, &told, &retired, instance.metadata.generation, now)
}

/// Whether a promise differs so much from the stored one that it is written. While nobody has to be warned, that is
/// once a day at most.
fn is_to_be_stored(ending: &Ending<'_>, stored: Option<&Promise>, new: &Promise, now: Timestamp) -> bool {
    let since = |promise: &Promise| promise.since.as_ref().map_or(Timestamp::MIN, |time| time.0);
    let Some(stored) = stored else {
        let created = ending.instance.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        return unstamped(new) != Promise::default() || now >= later(created, FIRST_STAMP);
    };
    unstamped(stored) != unstamped(new)
        || stored.generation != new.generation
        || since(new) >= later(since(stored), STAMP)
        || since(new) < since(stored)
}

/// A promise without what it counts from.
fn unstamped(promise: &Promise) -> Promise {
    Promise { since: None, witness: String::new(), generation: 0, ..promise.clone() }
}

/// The annotations in which the Go operator keeps the same, so that it can take over.
fn annotations(observed: &Observed, promise: &Promise) -> Option<ObjectPatch> {
    let text = |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        time.as_ref().map(|time| rfc3339(time.0)).unwrap_or_default()
    };
    let annotations = json!({
        labels::LAST_ACTIVITY: text(&promise.since),
        labels::ALERTS_SENT: promise.warnings.to_string(),
        labels::LAST_NOTIFICATION: text(&promise.last_warning),
        labels::LAST_RUNNING: "true",
    });
    ObjectPatch::of(&*observed.instance, &json!({"metadata": {"annotations": annotations}}))
}
