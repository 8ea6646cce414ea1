//! The plan of a snapshot: a pure function of the decision about it.

use std::time::Duration;

use jiff::Timestamp;

use super::children;
use super::decide::{Decision, decide, is_refused};
use super::observe::{Observed, instance_key};
use super::trouble::PATIENCE;
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::reason::{CREATION_FAILED, VALIDATION_ERROR};
use crate::api::template::TemplateKind;
use crate::config::SnapshotConfig;
use crate::controllers::shared::references::template_key;
use crate::controllers::shared::waits::about_job;
use crate::kinds::{JobKind, PodOfJobKind};
use crate::runtime::ObjectKey;
use crate::runtime::component::Component;
use crate::runtime::plan::{KindInfo, Plan, Removal, Requeue};
use crate::runtime::problem::Problem;

/// The longest time until a waiting snapshot is reconciled again. Almost everything that it waits for is watched.
const WAIT: Duration = Duration::from_mins(1);

/// The plan.
pub fn plan(observed: &Observed, config: &SnapshotConfig, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    match decide(observed, config, now) {
        Decision::Ended | Decision::Complete { .. } => plan.requeue = Requeue::OnChange,
        Decision::Wait { reason, message } => {
            plan.problems.push(Problem::waiting(Component::Whole, reason, message));
            plan.requeue_after(WAIT);
        }
        Decision::Refuse(message) => {
            plan.problems.push(Problem::fault(Component::Whole, VALIDATION_ERROR, message));
            plan.requeue = Requeue::OnChange;
            // A rejection is final, but the stores may be stale: the Instance may just have stopped, or the Template
            // may just have been created.
            plan.confirm.push((KindInfo::of::<InstanceKind>(), instance_key(&observed.snapshot)));
            let template = observed.instance.as_deref().map(template_key);
            plan.confirm.extend(template.map(|key| (KindInfo::of::<TemplateKind>(), key)));
            plan.confirm.push(job_to_confirm(observed));
        }
        Decision::Fail(message) => fail(observed, message, &mut plan),
        Decision::Abandon(message) => {
            plan.remove.extend(observed.job().map(|job| Removal::of(job, Component::Whole)));
            fail(observed, message, &mut plan);
        }
        Decision::Export(export) => {
            children::job(observed, config, &export).ensure(&mut plan);
            if is_refused(&observed.snapshot) {
                // The status keeps the reason until the Job exists, so the snapshot is read instead of written.
                let key = ObjectKey::of(&*observed.snapshot);
                plan.confirm.push((KindInfo::of::<InstanceSnapshotKind>(), key));
            } else {
                plan.announce = true;
            }
            plan.requeue_after(PATIENCE);
        }
        Decision::Running { next, trouble, .. } => {
            plan.requeue_after(next);
            let job = observed.job().filter(|_| trouble.is_some_and(|trouble| trouble.is_told_by_events()));
            plan.awaited = job.map(about_job);
        }
    }
    plan
}

/// Plans the end of a failed snapshot. A failure is final, but the Job may just have been created, or its pods may just
/// have started. So they are read from the API server first.
fn fail(observed: &Observed, message: String, plan: &mut Plan) {
    plan.problems.push(Problem::fault(Component::Whole, CREATION_FAILED, message));
    plan.requeue = Requeue::OnChange;
    plan.confirm.push(job_to_confirm(observed));
    let pods = observed.job_pods.iter().map(|pod| ObjectKey::of(&**pod));
    plan.confirm.extend(pods.map(|key| (KindInfo::of::<PodOfJobKind>(), key)));
}

fn job_to_confirm(observed: &Observed) -> (KindInfo, ObjectKey) {
    (KindInfo::of::<JobKind>(), children::job_key(&observed.snapshot))
}
