//! What a loop would write in a live cluster.

use jiff::Timestamp;

use super::Definition;
use crate::api::Kind;
use crate::runtime::ObjectKey;
use crate::runtime::apply::{Engine, Write};
use crate::runtime::reconciler::Outcome;

/// What one reconcile of an object of a live cluster would write.
#[derive(Debug)]
pub struct Previewed {
    /// The name of the loop.
    pub controller: &'static str,
    /// The kind of the object.
    pub kind: &'static str,
    /// The key of the object.
    pub key: ObjectKey,
    /// The writes, those of its status last.
    pub writes: Vec<Write>,
    /// Its problems, and what could not be written.
    pub problems: Vec<String>,
}

/// What the driver would write for an object; `None` when it is not ours, or left to the garbage collector.
pub async fn preview<R: Definition>(
    reconciler: &R,
    settings: &R::Settings,
    engine: &Engine,
    key: ObjectKey,
    now: Timestamp,
) -> Option<Previewed> {
    let mut observed = reconciler.observe(&key)?;
    if observed.as_ref().is_terminating() {
        return None;
    }
    let mut problems = Vec::new();
    let mut plan = (R::PLAN)(&observed, settings, now);
    if !plan.confirm.is_empty() {
        for (kind, key) in &plan.confirm {
            let refreshed = engine.refresh(*kind, key).await;
            problems.extend(refreshed.err().map(|error| format!("{} {key}: {error}", kind.kind)));
        }
        observed = reconciler.observe(&key)?;
        plan = (R::PLAN)(&observed, settings, now);
    }
    let preview = engine.preview(&plan).await;
    problems.extend(plan.problems.iter().map(|problem| problem.message.clone()));
    problems.extend(preview.failures.iter().map(ToString::to_string));
    let mut writes = preview.writes;
    // Effects have no result: what is outside of the cluster is not asked.
    let outcome = Outcome { failures: preview.failures, ..Outcome::default() };
    reconciler.settle(&observed, &outcome);
    let report = (R::REPORT)(&observed, settings, &plan, &outcome, now);
    writes.extend(report.patch.iter().map(|patch| engine.patching(patch)));
    writes.extend(engine.publishing(observed.as_ref(), &report.status));
    Some(Previewed { controller: R::NAME, kind: R::Kind::KIND, key, writes, problems })
}
