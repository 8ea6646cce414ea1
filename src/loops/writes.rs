//! The writes of a reconcile whose steps all succeed, except for writes that the API server rejects.

use jiff::Timestamp;
use serde_json::Value;

use super::simulation::patched;
use crate::api::Kind;
use crate::controllers::setup::Definition;
use crate::runtime::apply::{Applied, Failure, rewritten};
use crate::runtime::error::ApiError;
use crate::runtime::plan::{Desired, Plan, to_value};
use crate::runtime::reconcile::{Answer, Reconcile, Step};
use crate::runtime::store::WrittenStores;
use crate::runtime::{ObjectKey, merge};

/// A kind whose writes the API server rejects, with its error.
pub type Refused<'a> = (&'static str, &'a ApiError);

/// Returns the objects that a reconcile creates or changes, with their final status, and a description of each write.
pub fn written<R: Definition>(
    reconciler: &R,
    settings: &R::Settings,
    stores: &WrittenStores,
    key: &ObjectKey,
    now: Timestamp,
    refused: Option<Refused<'_>>,
) -> Vec<(Value, String)> {
    let mut written = Vec::new();
    let mut reconcile = Reconcile::<R>::new(settings);
    let mut before = Value::Null;
    let mut after = Value::Null;
    loop {
        let answer = match reconcile.step() {
            Step::Observe => Answer::Observed(reconciler.observe(key)),
            Step::Apply(observed, plan) => {
                before = to_value(observed.as_ref());
                after = patched::<R>(observed, plan);
                written.extend(plan.ensure.iter().filter_map(|desired| write(desired, stores)));
                let is_refused = |object: &Value| refused.is_some_and(|(kind, _)| object["kind"] == kind);
                written.retain(|(object, _)| !is_refused(object));
                let failures = failures(plan, refused);
                Answer::Applied(Applied { failures, ..Applied::default() }, Vec::new())
            }
            Step::Patch(patch) => {
                merge::apply(&mut after, &patch.patch);
                Answer::Done
            }
            Step::Publish(observed, report) => {
                if report.status != observed.as_ref().status && !after.is_null() {
                    after["status"] = to_value(&report.status);
                }
                Answer::Done
            }
            Step::End(_) => break,
            Step::Refresh(_) | Step::Check(_) | Step::Settle(..) | Step::Forget => Answer::Done,
        };
        reconcile.answer(answer, now);
    }
    if after != before {
        let difference = merge::difference(&before, &after).unwrap_or_default();
        written.push((after, format!("{} {key}: {difference}", R::Kind::KIND)));
    }
    written
}

/// Returns the object of a plan as it is written, with a description of the write; `None` if nothing differs.
fn write(desired: &Desired, stores: &WrittenStores) -> Option<(Value, String)> {
    let what = format!("{} {}", desired.kind.kind, desired.key);
    if let Ok(changed) = rewritten(desired, stores) {
        return changed.map(|(patch, object)| (object, format!("{what}: {patch}")));
    }
    let made = desired.manifest.as_ref().map(|manifest| manifest.json().clone());
    Some((made.unwrap_or_default(), format!("{what} is made")))
}

/// The writes of a plan that are rejected.
fn failures<E>(plan: &Plan<E>, refused: Option<Refused<'_>>) -> Vec<Failure> {
    let Some((kind, error)) = refused else { return Vec::new() };
    let writes = plan.ensure.iter().filter(|desired| desired.kind.kind == kind);
    let failure = |desired: &Desired| Failure {
        component: desired.component.clone(),
        kind,
        name: desired.key.name.to_string(),
        error: error.clone(),
    };
    writes.map(failure).collect()
}
