//! A reconcile in which every step succeeds and nothing is sent, for `crownlabs plan -f`.

use jiff::Timestamp;
use serde_json::Value;

use super::Planned;
use crate::api::Kind;
use crate::api::reason::{self, Reason};
use crate::api::requirements::OF_CLUSTERS;
use crate::controllers::setup::Definition;
use crate::runtime::apply::{Applied, Failure, rewritten};
use crate::runtime::error::ApiError;
use crate::runtime::plan::{Desired, Plan, to_value};
use crate::runtime::problem::Problem;
use crate::runtime::reconcile::{Answer, Reconcile, Step};
use crate::runtime::reconciler::Reconciler;
use crate::runtime::store::WrittenStores;
use crate::runtime::{ObjectKey, merge};

/// The reasons that may be resolved by other files. `crownlabs plan` reports these itself, with the file.
const OF_OTHER_FILES: [Reason; 1] = [reason::WORKSPACE_NOT_FOUND];

/// A kind whose writes the API server rejects, with its error.
pub type Refused<'a> = (&'static str, &'a ApiError);

/// Simulates a reconcile: every step succeeds except the writes in `refused`, and nothing is sent.
pub fn simulate<R: Definition>(
    reconciler: &R,
    settings: &R::Settings,
    stores: &WrittenStores,
    key: ObjectKey,
    now: Timestamp,
    refused: Option<Refused<'_>>,
) -> Planned {
    let mut planned = Planned { kind: R::Kind::KIND, key, ..Planned::default() };
    let mut reconcile = Reconcile::<R>::new(settings);
    let mut before = Value::Null;
    let mut after = Value::Null;
    loop {
        let answer = match reconcile.step() {
            Step::Observe => {
                let observed = reconciler.observe(&planned.key);
                planned.is_ours = observed.is_some();
                let object = observed.as_ref().map(AsRef::as_ref).filter(|object| !object.uid().is_empty());
                planned.object = object.map(to_value);
                Answer::Observed(observed)
            }
            Step::Apply(observed, plan) => {
                before = to_value(observed.as_ref());
                after = patched::<R>(observed, plan);
                take::<R>(&mut planned, observed, plan, stores);
                let is_refused = |object: &Value| refused.is_some_and(|(kind, _)| object["kind"] == kind);
                planned.written.retain(|(object, _)| !is_refused(object));
                planned.messages.extend(R::remarks(observed, settings, now));
                planned.foreseen = R::foreseen(observed, settings, plan);
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
        planned.written.push((after, format!("{} {}: {difference}", planned.kind, planned.key)));
    }
    planned
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

/// Adds the messages of a plan.
fn take<R: Reconciler>(
    planned: &mut Planned,
    observed: &R::Observed,
    plan: &Plan<R::Effect>,
    stores: &WrittenStores,
) {
    // Files contain no information about nodes and classes.
    let is_of_files = |problem: &&Problem| {
        !OF_CLUSTERS.contains(&problem.reason) && !OF_OTHER_FILES.contains(&problem.reason)
    };
    let problems = || plan.problems.iter().filter(is_of_files);
    planned.messages = problems().map(|problem| problem.message.clone()).collect();
    planned.is_refused = problems().any(|problem| !problem.waiting);
    let is_written = !plan.ensure.is_empty() || !plan.patches.is_empty();
    planned.object = planned.object.take().filter(|_| is_written).map(|_| patched::<R>(observed, plan));
    planned.made = made(plan);
    for desired in &plan.ensure {
        let what = format!("{} {}", desired.kind.kind, desired.key);
        planned.written.extend(if let Ok(changed) = rewritten(desired, stores) {
            changed.map(|(patch, object)| (object, format!("{what}: {patch}")))
        } else {
            let made = desired.manifest.as_ref().map(|manifest| manifest.json().clone());
            Some((made.unwrap_or_default(), format!("{what} is made")))
        });
    }
}

/// Returns the object after the plan's patch for it.
fn patched<R: Reconciler>(observed: &R::Observed, plan: &Plan<R::Effect>) -> Value {
    let object = observed.as_ref();
    let mut patched = to_value(object);
    if let Some(patch) = plan.patches.iter().find(|patch| patch.uid == object.uid()) {
        merge::apply(&mut patched, &patch.patch);
    }
    patched
}

/// The objects that a plan creates.
fn made<E>(plan: &Plan<E>) -> Vec<Value> {
    plan.ensure.iter().filter_map(|desired| Some(desired.manifest.as_ref()?.json().clone())).collect()
}
