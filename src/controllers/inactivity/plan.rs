//! The plan for the inactivity of an Instance: a pure function.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Settings;
use super::observe::{Observed, UnknownUse};
use super::rounds::LONGEST;
use crate::api::lifetime::Lifetime;
use crate::api::{labels, reason};
use crate::controllers::cleanup::ending::{Effect, Ending, proceed, sound};
use crate::controllers::cleanup::mail_log::annotated;
use crate::controllers::cleanup::promise::{Due, earlier, later};
use crate::runtime::component::Component;
use crate::runtime::plan::{ObjectPatch, Plan, Removal};
use crate::runtime::problem::Problem;

/// The maximum age of the round that provides the last use for the status. While nothing else depends on them, rounds
/// are rare.
const RECHECK: Duration = Duration::from_hours(1);
/// The longest delay before a retry when a source of metrics does not answer.
const UNKNOWN_RETRY: Duration = Duration::from_mins(5);

/// The plan.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
    let mut plan = Plan::default();
    let unreadable =
        |error| format!("cannot read a time in the Template: {error}; the Instance stays unchanged");
    let Some(ending) = sound(observed.ending(settings, now), unreadable, &mut plan) else { return plan };
    if (!observed.instance.spec.running || sees(observed, settings, &ending, now, &mut plan))
        && proceed(&ending, now, &settings.site, &mut plan)
    {
        end(observed, &ending.mailed_annotations(true), &mut plan);
    }
    // The clock of the requester may be ahead of this one.
    if let Some(Ok(kept)) = observed.kept_at()
        && kept > now
        && kept <= later(now, RECHECK)
    {
        plan.requeue_after(Duration::try_from(kept.duration_since(now)).unwrap_or_default());
    }
    plan
}

/// Whether enough is known about the use of a running Instance to continue. If not, adds the missing step to the plan.
fn sees(
    observed: &Observed,
    settings: &Settings,
    ending: &Ending<'_>,
    now: Timestamp,
    plan: &mut Plan<Effect>,
) -> bool {
    let idle = match ending.terms.after {
        Lifetime::After(idle) => idle.min(LONGEST),
        Lifetime::Never => Duration::ZERO,
    };
    let since = ending.since.max(earlier(now, idle));
    let is_waiting = matches!(ending.due(now), Due::Never | Due::At(_)) && ending.promise.warnings == 0;
    // At least the interval, because no further round is made within it.
    let interval = settings.config.check_interval.get();
    let age = if is_waiting { RECHECK.max(interval) } else { interval };
    match observed.is_seen(since, age, now) {
        Ok(()) => true,
        Err(UnknownUse::Outdated) => {
            plan.effects.push(Effect::Check);
            false
        }
        Err(UnknownUse::Unanswered(_)) if is_waiting => true,
        Err(UnknownUse::Unanswered(problems)) => {
            let message =
                format!("cannot determine whether the Instance is used, so it stays running: {problems}");
            plan.problems.push(Problem::waiting(Component::Whole, reason::METRICS_UNAVAILABLE, message));
            plan.requeue_after(UNKNOWN_RETRY.min(interval));
            false
        }
    }
}

/// Stops the Instance if its data survives a stop, and deletes it otherwise. The patch that stops it also writes the
/// missing annotations about the last mail.
fn end(observed: &Observed, lacking: &Map<String, Value>, plan: &mut Plan<Effect>) {
    let instance = &*observed.instance;
    if instance.spec.running && observed.is_persistent() {
        let annotations = json!({labels::LAST_RUNNING: "false"});
        let stop = json!({"metadata": {"annotations": annotations}, "spec": {"running": false}});
        plan.patches.extend(annotated(instance, ObjectPatch::of(instance, &stop), lacking));
    } else {
        plan.remove.push(Removal::of(instance, Component::Whole));
    }
}
