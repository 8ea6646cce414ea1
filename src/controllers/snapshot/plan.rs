//! The plan of a snapshot: a pure function of the decision about it.

use std::time::Duration;

use jiff::Timestamp;

use super::decide::{Decision, PATIENCE, decide};
use super::job;
use super::observe::{Observed, instance_key};
use crate::api::instance::InstanceKind;
use crate::api::template::TemplateKind;
use crate::config::SnapshotConfig;
use crate::controllers::shared::references::template_key;
use crate::runtime::plan::{KindInfo, Plan, Requeue};
use crate::runtime::problem::Problem;

/// The reason of a refused snapshot.
pub const REFUSED: &str = "ValidationError";
/// The reason of a snapshot whose Job failed.
pub const FAILED: &str = "CreationFailed";

/// After how long at most a snapshot that waits is reconciled again. Nearly everything that it waits for is
/// watched.
const WAIT: Duration = Duration::from_mins(1);

/// The plan.
pub fn plan(observed: &Observed, config: &SnapshotConfig, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let patience = Duration::from_secs(PATIENCE.unsigned_abs());
    match decide(observed, config, now) {
        Decision::Ended | Decision::Complete { .. } => plan.requeue = Requeue::OnChange,
        Decision::Wait { reason, message } => {
            plan.problems.push(Problem::waiting("", reason, message));
            plan.requeue_after(WAIT);
        }
        Decision::Refuse(message) => {
            plan.problems.push(Problem::fault("", REFUSED, message));
            plan.requeue = Requeue::OnChange;
            // A refusal is final, and the stores may be late: the Instance may just have been stopped, or
            // the Template created.
            plan.confirm.push((KindInfo::of::<InstanceKind>(), instance_key(&observed.snapshot)));
            let template = observed.instance.as_deref().map(template_key);
            plan.confirm.extend(template.map(|key| (KindInfo::of::<TemplateKind>(), key)));
        }
        Decision::Fail(message) => {
            plan.problems.push(Problem::fault("", FAILED, message));
            plan.requeue = Requeue::OnChange;
        }
        Decision::Export(export) => {
            plan.ensure.push(job::desired(observed, config, &export));
            plan.announce = true;
            plan.requeue_after(patience);
        }
        Decision::Running { starved: false, .. } => plan.requeue_after(patience),
        Decision::Running { .. } => {}
    }
    plan
}
