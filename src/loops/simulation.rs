//! A reconcile that sends nothing, and whose steps all succeed, for `crownlabs plan -f`.

use jiff::Timestamp;
use serde_json::Value;

use super::Planned;
use crate::api::Kind;
use crate::api::reason::{self, Reason};
use crate::api::requirements::OF_CLUSTERS;
use crate::controllers::setup::Definition;
use crate::runtime::apply::Applied;
use crate::runtime::plan::{Plan, to_value};
use crate::runtime::problem::Problem;
use crate::runtime::reconcile::{Answer, Reconcile, Step};
use crate::runtime::reconciler::Reconciler;
use crate::runtime::{ObjectKey, merge};

/// The reason that other files may resolve. `crownlabs plan` reports it itself, with the file.
const OF_OTHER_FILES: Reason = reason::WORKSPACE_NOT_FOUND;

/// Simulates a reconcile: every step succeeds, and nothing is sent.
pub fn simulate<R: Definition>(
    reconciler: &R,
    settings: &R::Settings,
    key: ObjectKey,
    now: Timestamp,
) -> Planned {
    let mut planned = Planned { kind: R::Kind::KIND, key, ..Planned::default() };
    let mut reconcile = Reconcile::<R>::new(settings);
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
                take::<R>(&mut planned, observed, plan);
                planned.messages.extend(R::remarks_from_files(observed, settings, now));
                planned.foreseen = R::foreseen(observed, settings, plan);
                Answer::Applied(Applied::default(), Vec::new())
            }
            Step::End(_) => return planned,
            Step::Refresh(_)
            | Step::Check(_)
            | Step::Settle(..)
            | Step::Patch(_)
            | Step::Publish(..)
            | Step::Forget => Answer::Done,
        };
        reconcile.answer(answer, now);
    }
}

/// Adds the messages and the objects of a plan.
fn take<R: Reconciler>(planned: &mut Planned, observed: &R::Observed, plan: &Plan<R::Effect>) {
    // Files contain no information about nodes and classes.
    let is_of_files =
        |problem: &&Problem| !OF_CLUSTERS.contains(&problem.reason) && problem.reason != OF_OTHER_FILES;
    let problems = || plan.problems.iter().filter(is_of_files);
    planned.messages = problems().map(|problem| problem.message.clone()).collect();
    planned.is_refused = problems().any(|problem| !problem.waiting);
    let is_written = !plan.ensure.is_empty() || !plan.patches.is_empty();
    planned.object = planned.object.take().filter(|_| is_written).map(|_| patched::<R>(observed, plan));
    let manifests = plan.ensure.iter().filter_map(|desired| desired.manifest.as_ref());
    planned.made = manifests.map(|manifest| manifest.json().clone()).collect();
}

/// Returns the object after the plan's patch for it.
pub(super) fn patched<R: Reconciler>(observed: &R::Observed, plan: &Plan<R::Effect>) -> Value {
    let object = observed.as_ref();
    let mut patched = to_value(object);
    if let Some(patch) = plan.patches.iter().find(|patch| patch.uid == object.uid()) {
        merge::apply(&mut patched, &patch.patch);
    }
    patched
}
