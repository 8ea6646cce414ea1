//! A reconcile in which every step succeeds and nothing is sent, for `crownlabs plan -f`.

use jiff::Timestamp;
use serde_json::Value;

use super::Planned;
use crate::api::Kind;
use crate::api::reason::{self, Reason};
use crate::controllers::setup::Definition;
use crate::runtime::ObjectKey;
use crate::runtime::apply::{Applied, rewritten};
use crate::runtime::merge;
use crate::runtime::plan::{Plan, to_value};
use crate::runtime::problem::Problem;
use crate::runtime::reconcile::{Answer, Reconcile, Step};
use crate::runtime::reconciler::Reconciler;
use crate::runtime::store::WrittenStores;

/// The reasons that are about nodes and storage, of which files say nothing.
const OF_CLUSTERS: [Reason; 2] = [reason::STORAGE_CLASS_NOT_FOUND, reason::NO_NODE];

/// A reconcile in which every step succeeds, and nothing is sent.
pub fn simulate<R: Definition>(
    reconciler: &R,
    settings: &R::Settings,
    stores: &WrittenStores,
    key: ObjectKey,
    now: Timestamp,
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
                planned.messages.extend(R::remarks(observed, settings, now));
                planned.foreseen = R::foreseen(observed, settings, plan);
                Answer::Applied(Applied::default(), Vec::new())
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

/// Takes what a plan says.
fn take<R: Reconciler>(
    planned: &mut Planned,
    observed: &R::Observed,
    plan: &Plan<R::Effect>,
    stores: &WrittenStores,
) {
    planned.messages = plan.problems.iter().map(|problem| problem.message.clone()).collect();
    let refuses = |problem: &Problem| !problem.waiting && !OF_CLUSTERS.contains(&problem.reason);
    planned.is_refused = plan.problems.iter().any(refuses);
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

/// The object with the patch that the plan has for it.
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
