//! The decision about an Instance: a pure function of the observed state.

use std::time::Duration;

use jiff::Timestamp;

use super::children;
use super::observe::{Observed, Upload, is_requested, open_request, stored_condition};
use super::receipt::receipt;
use crate::api::instance::{Automation, Instance, InstanceStatus, Receipt};
use crate::api::reason::{
    GIVING_UP, INVALID_TEMPLATE, NOT_ELIGIBLE, Reason, SUBMISSION_FAILED, TEMPLATE_NOT_FOUND, UPLOADED,
};
use crate::config::SubmissionConfig;
use crate::controllers::shared::references::template_key;
use crate::kinds::{Job, JobEnd};
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The reasons of the condition `Submitted` for a request that is about to end: only its labels are still missing.
pub const ENDING: [Reason; 3] = [UPLOADED, GIVING_UP, NOT_ELIGIBLE];

/// How long a Job is kept after its success, for its log. It is the same time as in the Go operator
/// (`ttlSecondsAfterFinished: 300`).
const KEPT_FOR: Duration = Duration::from_mins(5);
/// How long the loop waits for the pod of a Job that has succeeded, which leaves the receipt: its watch may lag behind
/// the watch of Jobs, or the pod may have been deleted.
const SETTLE: Duration = Duration::from_secs(10);
/// The maximum time between the creation of two Jobs.
const LONGEST_DELAY: Duration = Duration::from_hours(1);

/// The decision about an Instance.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// No upload is requested. The Jobs with these names are no longer needed.
    Idle {
        /// The names of the Jobs.
        outdated: Vec<String>,
        /// When further Jobs become outdated.
        again: Option<Timestamp>,
    },
    /// The request has ended. This is written into the status.
    Close,
    /// An upload is requested again. The Jobs of the former request are deleted first.
    Clear,
    /// The Template is missing or cannot be read, or the Instance names a Tenant other than the owner of its namespace.
    Blocked(Problem),
    /// There is nothing to upload.
    NotEligible,
    /// The labels that end the request have to be set.
    Label {
        /// Whether everything was uploaded.
        completed: bool,
    },
    /// There are uploads.
    Work(Work),
}

/// Uploads and their progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The uploads.
    pub uploads: Vec<(Upload, Stage)>,
    /// The reason why no Job is created yet, and the time when the wait ends at the latest.
    pub waiting: Option<(String, Timestamp)>,
    /// Whether the request is new.
    pub is_new: bool,
}

/// The progress of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Its success is in the status.
    Done,
    /// Its Job has succeeded.
    Succeeded {
        /// The time of its success, if the Job reports it.
        at: Option<Timestamp>,
        /// The receipt, if the uploader leaves one.
        receipt: Option<Receipt>,
    },
    /// Its Job has succeeded, and its pod, which leaves the receipt, is not known yet.
    Settling {
        /// When the wait for the pod ends.
        until: Timestamp,
    },
    /// Its Job runs.
    Running,
    /// Its Job is being deleted.
    Leaving,
    /// The Instance has no Job for it.
    Missing {
        /// The number of the next Job's attempt.
        attempt: i32,
        /// The earliest time for the next Job, after the pause that follows an attempt; `None` for now.
        not_before: Option<Timestamp>,
    },
    /// Its Job has failed and will be replaced.
    Failed {
        /// The number of the failed attempt.
        attempt: i32,
        /// The cause.
        because: String,
        /// The earliest time for the next attempt.
        retry: Timestamp,
        /// Whether the status counts this attempt. Until then, its Job must not be deleted, because it is the only
        /// record.
        is_counted: bool,
    },
    /// It has failed permanently.
    GivenUp {
        /// The cause.
        because: String,
    },
}

/// Decides about an Instance.
pub fn decide(observed: &Observed, config: &SubmissionConfig, now: Timestamp) -> Decision {
    let instance = &observed.instance;
    let open = open_request(instance);
    if instance.malformed.is_some() {
        return Decision::Idle { outdated: Vec::new(), again: None };
    }
    match (is_requested(instance), open) {
        (false, None) => idle(observed, now),
        (false, Some(_)) => Decision::Close,
        // If there is no condition, a Job was created by the Go operator for this request.
        (true, None)
            if stored_condition(instance).is_some()
                && observed.own_jobs().next().is_some()
                && observed.foreign_tenant.is_none() =>
        {
            Decision::Clear
        }
        (true, None) => work(observed, config, now, now),
        (true, Some(condition)) => match Reason::named(&condition.reason) {
            Some(UPLOADED) => Decision::Label { completed: true },
            Some(GIVING_UP | NOT_ELIGIBLE) => Decision::Label { completed: false },
            _ => work(observed, config, condition.last_transition_time.0, now),
        },
    }
}

/// The decision if no upload is requested.
fn idle(observed: &Observed, now: Timestamp) -> Decision {
    let ended = observed.own_jobs().filter(|job| !job.is_terminating()).filter_map(|job| {
        let completed = job.status.completion_time.as_ref().filter(|_| has_succeeded(job))?;
        Some((job.name().to_owned(), after(completed.0, KEPT_FOR)))
    });
    let (outdated, kept): (Vec<_>, Vec<_>) = ended.partition(|(_, until)| *until <= now);
    Decision::Idle {
        outdated: outdated.into_iter().map(|(name, _)| name).collect(),
        again: kept.into_iter().map(|(_, until)| until).min(),
    }
}

/// The status at the beginning of the reconcile. For a new request, this is the former status without the attempts,
/// times and receipts. Uploads that succeeded before another one failed are not repeated.
pub fn status(instance: &Instance) -> InstanceStatus {
    let mut status = instance.status.clone();
    if open_request(instance).is_some() {
        return status;
    }
    let is_repeated = stored_condition(instance).is_some_and(|known| known.reason == SUBMISSION_FAILED);
    let reset = |automation: &mut Automation| {
        automation.submission_attempts = 0;
        automation.submission_attempt_time = None;
        automation.submission_time = automation.submission_time.take().filter(|_| is_repeated);
        automation.submission_receipt = automation.submission_receipt.take().filter(|_| is_repeated);
    };
    reset(&mut status.automation);
    status.environments.iter_mut().for_each(|environment| reset(&mut environment.automation));
    status
}

/// The decision about a request that has been open since `since`.
fn work(observed: &Observed, config: &SubmissionConfig, since: Timestamp, now: Timestamp) -> Decision {
    if let Some(problem) = &observed.foreign_tenant {
        return Decision::Blocked(problem.clone());
    }
    let key = template_key(&observed.instance);
    let blocked = |reason, what| {
        let message = format!("the upload waits: Template {key} {what}");
        Decision::Blocked(Problem::fault(Component::Whole, reason, message))
    };
    match observed.template.as_ref().map(|template| &template.malformed) {
        None => return blocked(TEMPLATE_NOT_FOUND, "does not exist"),
        Some(Some(_)) => return blocked(INVALID_TEMPLATE, "cannot be read"),
        Some(None) => {}
    }
    let uploads = observed.uploads();
    if uploads.is_empty() {
        return Decision::NotEligible;
    }
    let until = after(since, config.wait_for_off_timeout.get());
    let activity = observed.activity().filter(|_| config.wait_for_off && now < until);
    let status = status(&observed.instance);
    let staged = uploads.into_iter().map(|upload| {
        let stage = stage(observed, config, &upload, &upload.automation(&status), now);
        (upload, stage)
    });
    Decision::Work(Work {
        uploads: staged.collect(),
        waiting: activity.map(|what| (what, until)),
        is_new: open_request(&observed.instance).is_none(),
    })
}

/// The progress of an upload.
fn stage(
    observed: &Observed,
    config: &SubmissionConfig,
    upload: &Upload,
    automation: &Automation,
    now: Timestamp,
) -> Stage {
    if automation.submission_time.is_some() {
        return Stage::Done;
    }
    let limit = i32::try_from(config.max_attempts).unwrap_or(i32::MAX);
    let done = automation.submission_attempts;
    let Some(job) = observed.job(upload) else {
        if done < limit {
            // A user deleted the Job of the last attempt, or this loop did when the next attempt was due.
            let began = automation.submission_attempt_time.as_ref().filter(|_| done > 0);
            let not_before = began.map(|began| after(began.0, delay(done, config.retry_delay.get())));
            return Stage::Missing { attempt: done.saturating_add(1), not_before };
        }
        let because = format!("Job {} was deleted", upload.job_name(observed.instance.name()));
        return Stage::GivenUp { because };
    };
    if has_succeeded(job) {
        let at = job.status.completion_time.as_ref().map(|time| time.0);
        let pods = observed.succeeded_pods(job);
        let until = after(at.unwrap_or(now), SETTLE);
        if pods.is_empty() && now < until {
            return Stage::Settling { until };
        }
        return Stage::Succeeded { at, receipt: receipt(&pods) };
    }
    if job.is_terminating() {
        return Stage::Leaving;
    }
    let Some(JobEnd::Failed(condition)) = job.end() else { return Stage::Running };
    let because = format!("Job {} has failed: {}: {}", job.name(), condition.reason, condition.message);
    let attempt = children::attempt(job).max(done);
    if attempt >= limit {
        return Stage::GivenUp { because };
    }
    let created = job.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    // The new URL has not failed yet.
    let is_other = children::has_other_destination(job, upload);
    let pause = if is_other { Duration::ZERO } else { delay(attempt, config.retry_delay.get()) };
    let retry = after(created, pause);
    Stage::Failed { attempt, because, retry, is_counted: attempt <= done }
}

/// The time between the creation of an attempt's Job and the creation of the next one.
fn delay(attempt: i32, first: Duration) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or_default().min(20);
    first.saturating_mul(1 << doublings).min(LONGEST_DELAY.max(first))
}

fn has_succeeded(job: &Job) -> bool {
    job.status.succeeded.unwrap_or(0) > 0 || job.end() == Some(JobEnd::Complete)
}

fn after(time: Timestamp, delay: Duration) -> Timestamp {
    time.checked_add(delay).unwrap_or(Timestamp::MAX)
}
