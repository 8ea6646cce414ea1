//! The plan of an Instance: a pure function of the decision about it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::decide::{Decision, Stage, Work, decide};
use super::observe::Observed;
use super::{Settings, children, receipt_mail};
use crate::api::labels;
use crate::config::SubmissionConfig;
use crate::controllers::cleanup::ending::Effect;
use crate::controllers::shared::waits::{PATIENCE, about_job, age, passed};
use crate::runtime::component::Component;
use crate::runtime::object_events::About;
use crate::runtime::plan::{ObjectPatch, Plan, Removal, Requeue};

/// The longest time until a request without a Template is reconciled again. The creation of a Template is watched.
const WAIT: Duration = Duration::from_mins(1);

/// The plan.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
    let (mut plan, config) = (Plan::default(), &settings.config);
    match decide(observed, config, now) {
        Decision::Idle { outdated, again } => {
            plan.requeue = Requeue::OnChange;
            let outdated = observed.own_jobs().filter(|job| outdated.iter().any(|name| job.name() == name));
            plan.remove.extend(outdated.map(|job| Removal::of(job, Component::Whole)));
            plan.requeue_after(again.map(|again| passed(now, again)));
            receipt_mail::add(observed, settings, now, &mut plan);
        }
        Decision::Clear => {
            let present = observed.own_jobs().filter(|job| !job.is_terminating());
            plan.remove.extend(present.map(|job| Removal::of(job, Component::Whole)));
            // Unless they were being deleted already, which is watched, they are gone now.
            if !plan.remove.is_empty() {
                plan.requeue_after(Duration::ZERO);
            }
        }
        Decision::Blocked(problem) => {
            plan.problems.push(problem);
            plan.requeue_after(WAIT);
        }
        Decision::Label { completed } => plan.patches.extend(ending(observed, completed)),
        Decision::Work(work) => {
            plan_uploads(observed, config, &work, now, &mut plan);
            read_events(observed, &work, now, &mut plan);
            // Before the first Job is created, the status must say that the request is open, for the version that was
            // read.
            plan.announce = work.is_new && !(plan.ensure.is_empty() && plan.remove.is_empty());
        }
        Decision::Close | Decision::NotEligible => {}
    }
    plan
}

/// Plans the Jobs.
fn plan_uploads(
    observed: &Observed,
    config: &SubmissionConfig,
    work: &Work,
    now: Timestamp,
    plan: &mut Plan<Effect>,
) {
    for (upload, stage) in &work.uploads {
        match (stage, &work.waiting) {
            (Stage::Missing { .. }, Some((_, end))) => plan.requeue_after(passed(now, *end)),
            (Stage::Missing { not_before: Some(time), .. }, None) if now < *time => {
                plan.requeue_after(passed(now, *time));
            }
            (Stage::Missing { attempt, .. }, None) => {
                children::job(observed, config, upload, *attempt).ensure(plan);
            }
            (Stage::Settling { until }, _) => plan.requeue_after(passed(now, *until)),
            // Labels and owner are restored.
            (Stage::Running, _) => children::job(observed, config, upload, 1).ensure(plan),
            (Stage::Failed { retry, .. }, _) if now < *retry => plan.requeue_after(passed(now, *retry)),
            (Stage::Failed { attempt, is_counted, .. }, _) => {
                if *is_counted {
                    children::job(observed, config, upload, *attempt).remove(plan);
                }
                plan.requeue_after(Duration::ZERO);
            }
            (Stage::Done | Stage::Succeeded { .. } | Stage::Leaving | Stage::GivenUp { .. }, _) => {}
        }
    }
}

/// Plans that events are read about Jobs that have had no running pod for some time.
fn read_events(observed: &Observed, work: &Work, now: Timestamp, plan: &mut Plan<Effect>) {
    let running = work.uploads.iter().filter(|(_, stage)| *stage == Stage::Running);
    let idle = running.filter_map(|(upload, _)| observed.job(upload)).filter(|job| !job.is_ready());
    let mut about = About::default();
    for job in idle {
        let left = PATIENCE.saturating_sub(age(&job.metadata, now));
        if left.is_zero() {
            let About { namespace, uids, jobs, .. } = about_job(job);
            about.namespace = namespace;
            about.uids.extend(uids);
            about.jobs.extend(jobs);
        } else {
            plan.requeue_after(left);
        }
    }
    plan.awaited = (!about.jobs.is_empty()).then_some(about);
}

/// The patch of the labels that end a request.
fn ending(observed: &Observed, completed: bool) -> Option<ObjectPatch> {
    let result = completed.to_string();
    let mut wanted = json!({labels::SUBMISSION_REQUESTED: "false", labels::SUBMISSION_COMPLETED: result});
    let uploads = observed.uploads();
    let last = uploads.last().filter(|last| completed && !last.environment.is_empty());
    if let Some(last) = last {
        wanted[labels::ENVIRONMENT_NAME] = last.environment.as_str().into();
    }
    ObjectPatch::of(&observed.instance, &json!({"metadata": {"labels": wanted}}))
}
