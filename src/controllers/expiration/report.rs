//! The report on the expiration of an Instance: a pure function.

use serde_json::{Map, json};

use super::Settings;
use super::observe::{Observed, ending};
use crate::api::condition::{ConditionType, EXPIRING};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::promise::Promise;
use crate::controllers::cleanup::ending::Effect;
use crate::controllers::cleanup::mail_log::annotated;
use crate::controllers::cleanup::report::{ending_report, is_done, observation};
use crate::runtime::clock::rfc3339;
use crate::runtime::conditions;
use crate::runtime::plan::ObjectPatch;
use crate::runtime::reconciler::{Reconciled, Report};

/// The report. Nothing is written about an Instance that is not overdue and has never been warned about.
pub fn report(done: &Reconciled<'_, Observed, Settings, Effect>) -> Report<InstanceKind> {
    let Reconciled { observed, settings, plan, outcome, now } = *done;
    let instance = &observed.instance;
    let old = &instance.status;
    let mut status = old.clone();
    let mut events = Vec::new();
    let mut condition = plan.problems.first().map(|problem| observation(problem, EXPIRING));
    status.expiration = None;
    let mut lacking = Map::new();
    if let Ok(Some(ending)) = ending(observed, settings, now) {
        let before = old.expiration.as_deref().cloned().unwrap_or_default();
        let reported = ending_report(&ending, &before, plan, outcome, now);
        lacking = reported.lacking;
        let has_begun = reported.promise.warnings > 0 || !plan.effects.is_empty();
        let is_waiting = reported.promise.sending.is_some() || reported.promise.undeliverable.is_some();
        if has_begun || is_waiting || reported.problem.is_some() {
            condition = Some(reported.condition);
            status.expiration = Some(Box::new(reported.promise));
        }
        events = reported.events;
    }
    let retired: &[ConditionType] = if condition.is_some() { &[] } else { &[EXPIRING] };
    let generation = instance.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, condition.as_slice(), retired, generation, now);
    // The new promise determines the next step, and the gauges show it, too.
    let has_changed = status.expiration != old.expiration;
    let requeue_at_once = has_changed && is_done(outcome);
    let patch = annotated(instance, annotations(instance, status.expiration.as_deref()), &lacking);
    Report { patch, requeue_at_once, ..Report::new(status, events) }
}

/// The annotations that record a warning for the Go operators, both in one write. They are written and removed before
/// the status, so that a withdrawn promise is never read from them again.
fn annotations(instance: &Instance, promise: Option<&Promise>) -> Option<ObjectPatch> {
    let keys = [labels::EXPIRY_WARNED, labels::EXPIRY_WARNED_AT];
    let warned =
        promise.filter(|promise| promise.warnings > 0).and_then(|promise| promise.last_warning.as_ref());
    if warned.is_none() && keys.iter().all(|key| instance.annotation(key).is_none()) {
        return None;
    }
    let annotations = json!({
        labels::EXPIRY_WARNED: warned.map(|_| "true"),
        labels::EXPIRY_WARNED_AT: warned.map(|time| rfc3339(time.0)),
    });
    ObjectPatch::of(instance, &json!({"metadata": {"annotations": annotations}}))
}
