//! The report on the inactivity of an Instance: a pure function.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Settings;
use super::observe::Observed;
use crate::api::condition::{ABANDONED, Condition, ConditionType, INACTIVE};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::promise::Promise;
use crate::api::reason::{INVALID_KEPT_AT, STOPPED};
use crate::api::shown::{MOST, cut};
use crate::controllers::cleanup::ending::{Effect, Ending};
use crate::controllers::cleanup::mail_log::annotated;
use crate::controllers::cleanup::promise::{later, next_warning, withdrawn};
use crate::controllers::cleanup::report::{ending_report, is_done, observation};
use crate::runtime::clock::rfc3339;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::EventNote;
use crate::runtime::plan::ObjectPatch;
use crate::runtime::reconciler::{Reconciled, Report};

/// The minimum difference between a new use and the stored one before the new one is written while no warning was sent:
/// one write a day.
const STAMP: Duration = Duration::from_hours(24);
/// The minimum age of an Instance for its first stamp, so that short-lived Instances cost no write.
const FIRST_STAMP: Duration = Duration::from_hours(1);

/// The report.
pub fn report(done: &Reconciled<'_, Observed, Settings, Effect>) -> Report<InstanceKind> {
    let Reconciled { observed, settings, plan, outcome, now } = *done;
    let instance = &observed.instance;
    let old = &instance.status;
    let mut status = old.clone();
    let (mut told_conditions, mut events) = (Vec::<Observation>::new(), Vec::new());
    let mut patch;
    let (mut lacking, mut since) = (Map::new(), None);
    // The condition that does not change: its times are as old as those in the stored promise.
    let mut kept = None;
    let has_checked = plan.effects.contains(&Effect::Check) && outcome.is_applied;
    let mut requeue_at_once = has_checked;
    let (running, ending) = (instance.spec.running, observed.ending(settings, now));
    let unreadable = ending.as_ref().err().and(plan.problems.first());
    told_conditions.extend(unreadable.map(|problem| observation(problem, INACTIVE)));
    match ending.ok().flatten() {
        None => {
            // The annotations come first, because a promise is read from them if the status has none.
            let kept = observed.promised().filter(|_| running);
            patch = kept.and_then(|kept| annotations(observed, &withdrawn(&kept)));
            (status.inactivity, status.destruction) = (None, None);
            requeue_at_once |= outcome.is_applied && status != *old;
        }
        Some(ending) => {
            let before = if running { &old.inactivity } else { &old.destruction };
            let stored = before.as_deref().cloned().unwrap_or_default();
            let told = ending_report(&ending, &stored, plan, outcome, now);
            let is_new =
                !has_checked && is_to_be_stored(observed, &ending, before.as_deref(), &told.promise, now);
            let known = old.conditions.iter().find(|known| known.type_ == told.condition.type_);
            let has_turned = known.is_none_or(|known| known.reason != told.condition.reason);
            if is_new || told.problem.is_some() || before.is_some() && has_turned {
                told_conditions.push(told.condition);
            } else if known.is_some() {
                kept = Some(ending.kind.condition);
            }
            let promise = if is_new { Some(Box::new(told.promise.clone())) } else { before.clone() };
            let has_moved = told.promise.deadline != before.as_deref().and_then(|told| told.deadline.clone());
            (lacking, since) = (told.lacking, told.promise.since.as_ref().map(|since| since.0));
            requeue_at_once |= is_done(outcome) && is_new && (has_moved || !plan.effects.is_empty());
            (status.inactivity, status.destruction) = if running { (promise, None) } else { (None, promise) };
            patch = (is_new && running).then(|| annotations(observed, &told.promise)).flatten();
            events = told.events;
        }
    }
    if !running && observed.is_watched() && !observed.was_stopped() {
        // A start resets the idle time, even if it is seen only later.
        patch = switched_off(observed);
        requeue_at_once |= old.inactivity.is_some() && outcome.is_applied;
    }
    status.conditions = conditions(observed, told_conditions, kept, now);
    let mut patch = repaired(instance, annotated(instance, patch, &lacking), since.unwrap_or(now));
    events.extend(without_bad_keep(observed, &mut patch));
    Report { patch, requeue_at_once, ..Report::new(status, events) }
}

/// Lets the patch remove an invalid time of a request to keep the Instance, and returns the event that reports it.
fn without_bad_keep(observed: &Observed, patch: &mut Option<ObjectPatch>) -> Option<EventNote> {
    let text = observed.kept_at()?.err()?;
    let patch = patch.get_or_insert_with(|| ObjectPatch::exactly(&*observed.instance, json!({})));
    patch.patch["metadata"]["annotations"][labels::KEPT_AT] = Value::Null;
    let message = format!(
        "The annotation {} was {:?}, which is not a time such as 2026-11-20T10:00:00Z: it was removed and does not count as a use",
        labels::KEPT_AT,
        cut(text, MOST)
    );
    Some(EventNote::warning(INVALID_KEPT_AT, message))
}

/// Adds repairs to the patch. Unreadable annotations of the Go operator are set to the values of an Instance without
/// warnings, so that no operator fails on them. Annotations that the patch already sets do not change.
fn repaired(instance: &Instance, patch: Option<ObjectPatch>, since: Timestamp) -> Option<ObjectPatch> {
    let known = [
        (labels::LAST_ACTIVITY, rfc3339(since)),
        (labels::ALERTS_SENT, "0".to_owned()),
        (labels::LAST_NOTIFICATION, String::new()),
        (labels::LAST_RUNNING, instance.spec.running.to_string()),
    ];
    let is_readable = |key, text: &str| match key {
        labels::ALERTS_SENT => text.parse::<i64>().is_ok(),
        labels::LAST_RUNNING => matches!(text, "true" | "false"),
        _ => text.parse::<Timestamp>().is_ok(),
    };
    let set = patch.as_ref().map(|patch| &patch.patch["metadata"]["annotations"]);
    let broken = known.into_iter().filter(|(key, _)| {
        let text = instance.annotation(key).filter(|text| !text.is_empty());
        text.is_some_and(|text| !is_readable(*key, text)) && set.is_none_or(|set| set[*key].is_null())
    });
    let repairs = broken.map(|(key, safe)| (key.to_owned(), safe.into())).collect();
    annotated(instance, patch, &repairs)
}

/// The conditions of the Instance: those in `told`, the unchanged one in `kept`, and the one that reports the stop. The
/// conditions of other loops stay.
fn conditions(
    observed: &Observed,
    mut told: Vec<Observation>,
    kept: Option<ConditionType>,
    now: Timestamp,
) -> Vec<Condition> {
    let instance = &observed.instance;
    let old = &instance.status.conditions;
    // This loop stops an Instance and sets the annotation in one write, while the promise is stored. Both together
    // prove that this loop stopped it.
    if !instance.spec.running && observed.was_stopped() && instance.status.inactivity.is_some() {
        let message = "The Instance was idle for longer than its Template allows; start it to continue";
        told.push(Observation::new(INACTIVE, true, STOPPED, message));
    }
    let was_stopped = old.iter().any(|known| known.type_ == INACTIVE && known.reason == STOPPED);
    let stays = |type_: ConditionType| {
        told.iter().any(|told| told.type_ == type_)
            || kept == Some(type_)
            || type_ == INACTIVE && was_stopped && !instance.spec.running
    };
    let retired: Vec<ConditionType> =
        [INACTIVE, ABANDONED].into_iter().filter(|type_| !stays(*type_)).collect();
    conditions::merge(old, &told, &retired, instance.metadata.generation, now)
}

/// Whether a promise differs from the stored one so much that it must be written. While no warning is due, this happens
/// at most once a day.
fn is_to_be_stored(
    observed: &Observed,
    ending: &Ending<'_>,
    stored: Option<&Promise>,
    new: &Promise,
    now: Timestamp,
) -> bool {
    let running = observed.instance.spec.running;
    // The annotations are written together with the promise. They may mention warnings that no promise contains.
    let leaves_warnings = new.warnings == 0 && stored.is_none() && observed.promised().is_some();
    if running && (observed.was_stopped() || leaves_warnings) {
        return true;
    }
    let since = |promise: &Promise| promise.since.as_ref().map_or(Timestamp::MIN, |time| time.0);
    let Some(stored) = stored else {
        return unstamped(new) != Promise::default() || now >= later(observed.created(now), FIRST_STAMP);
    };
    let counted = stored.since.as_ref().map_or(ending.since, |since| since.0);
    unstamped(stored) != unstamped(new)
        || stored.next_warning != next_warning(&ending.terms, counted, stored)
        || stored.generation != new.generation
        || since(new) >= later(since(stored), STAMP)
        || since(new) < since(stored)
}

/// A promise without its start and without everything derived from the start.
fn unstamped(promise: &Promise) -> Promise {
    Promise { since: None, witness: String::new(), generation: 0, next_warning: None, ..promise.clone() }
}

/// The annotations of an Instance that was not stopped by this loop. First its warnings are withdrawn, so that an
/// immediate start does not bring them back. The annotation about the stop is written after the promise has ended.
fn switched_off(observed: &Observed) -> Option<ObjectPatch> {
    if let Some(stored) = &observed.instance.status.inactivity {
        return annotations(observed, &withdrawn(stored));
    }
    let off = json!({"metadata": {"annotations": {labels::LAST_RUNNING: "false"}}});
    ObjectPatch::of(&*observed.instance, &off)
}

/// The annotations with the same data for the Go operator, so that it can take over.
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
