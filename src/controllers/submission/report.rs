//! The status, the condition and the events of an Instance whose content is uploaded.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::decide::{Decision, ENDING, Stage, Work, decide, status};
use super::observe::{Observed, Upload, stored_condition};
use super::{Settings, children, receipt_mail};
use crate::api::condition::SUBMITTED;
use crate::api::instance::{Automation, EnvironmentStatus, Instance, InstanceKind, InstanceStatus};
use crate::api::labels;
use crate::api::reason::{self, Reason};
use crate::api::text::Text;
use crate::config::SubmissionConfig;
use crate::controllers::cleanup::delivery::Sent;
use crate::controllers::cleanup::ending::Effect;
use crate::runtime::conditions::{self, Observation, whole_seconds};
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::object_events::Events;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Outcome, Reconciled, Report};

/// The report of a reconcile.
pub fn report(done: &Reconciled<'_, Observed, Settings, Effect>) -> Report<InstanceKind> {
    let Reconciled { observed, settings, plan, outcome, now } = *done;
    let config = &settings.config;
    let instance = &observed.instance;
    let decision = decide(observed, config, now);
    let mut status = status(instance);
    let observation = match &decision {
        Decision::Idle { .. } => return receipt_mail::report(observed, outcome, now),
        Decision::Clear | Decision::Label { .. } => return Report::unchanged(instance),
        Decision::Close => Some(closed(instance)),
        Decision::Blocked(problem) => Some(open(problem.reason, problem.message.clone())),
        Decision::NotEligible => {
            let message = "there is nothing to upload: no environment is persistent and has a destination \
                           (spec.contentUrls)";
            Some(open(reason::NOT_ELIGIBLE, message))
        }
        Decision::Work(work) => {
            record(observed, work, &mut status, now);
            progress(observed, config, work, (plan, outcome), now)
        }
    };
    let Some(observation) = observation else {
        return Report::new(status, Vec::new());
    };
    let events = event(instance, &observation).into_iter().collect();
    // Whether the next step follows at once.
    let requeue_at_once = decision == Decision::Close || ENDING.contains(&observation.reason);
    let generation = instance.metadata.generation;
    status.conditions = conditions::merge(&instance.status.conditions, &[observation], &[], generation, now);
    Report { requeue_at_once, ..Report::new(status, events) }
}

/// The condition of an open request.
fn open(reason: Reason, message: impl Into<String>) -> Observation {
    Observation { holds: None, ..Observation::new(SUBMITTED, false, reason, message) }
}

/// The condition of a request that has ended, from its last open condition.
fn closed(instance: &Instance) -> Observation {
    let known = stored_condition(instance);
    let message = known.map_or("", |known| known.message.as_str());
    match known.and_then(|known| Reason::named(&known.reason)) {
        Some(reason::UPLOADED) => Observation::new(SUBMITTED, true, reason::SUBMISSION_COMPLETED, message),
        Some(reason::GIVING_UP) => Observation::new(SUBMITTED, false, reason::SUBMISSION_FAILED, message),
        Some(reason::NOT_ELIGIBLE) => Observation::new(SUBMITTED, false, reason::NOT_ELIGIBLE, message),
        _ => {
            let message =
                "the request was withdrawn before the upload was complete; a running Job is left alone";
            Observation::new(SUBMITTED, false, reason::WITHDRAWN, message)
        }
    }
}

/// The condition while there are uploads; `None` if it does not change.
fn progress(
    observed: &Observed,
    config: &SubmissionConfig,
    work: &Work,
    (plan, outcome): (&Plan<Effect>, &Outcome<Sent>),
    now: Timestamp,
) -> Option<Observation> {
    let stages = || work.uploads.iter().map(|(_, stage)| stage);
    let has_succeeded = |stage: &Stage| matches!(stage, Stage::Done | Stage::Succeeded { .. });
    if stages().all(has_succeeded) {
        return Some(open(reason::UPLOADED, "the content was uploaded"));
    }
    if stages().all(|stage| has_succeeded(stage) || matches!(stage, Stage::GivenUp { .. })) {
        return Some(open(reason::GIVING_UP, given_up(&observed.instance, config, work)));
    }
    if !outcome.is_applied {
        return Some(open(reason::STARTING, "the upload starts"));
    }
    if !outcome.failures.is_empty() {
        // Transient failures are not reported.
        let failure = outcome.failures.iter().find(|failure| !failure.error.is_transient())?;
        let reason = match &failure.error {
            ApiError::QuotaExceeded(_) => reason::QUOTA_EXCEEDED,
            ApiError::NameConflict { .. } => reason::NAME_CONFLICT,
            _ => reason::CREATION_FAILED,
        };
        return Some(open(reason, format!("the upload cannot start and will be retried: {failure}")));
    }
    if let Some((because, next)) = retried(observed, work, now) {
        let limit = config.max_attempts;
        return Some(open(reason::RETRYING, format!("{because}; attempt {next} of {limit} follows")));
    }
    let is_missing = stages().any(|stage| matches!(stage, Stage::Missing { .. }));
    if let Some((activity, _)) = work.waiting.as_ref().filter(|_| is_missing) {
        let limit = config.wait_for_off_timeout;
        let message = format!("the upload waits until the Instance is off, at most {limit}: {activity}");
        return Some(open(reason::WAITING_FOR_OFF, message));
    }
    if is_missing || stages().any(|stage| matches!(stage, Stage::Leaving | Stage::Settling { .. })) {
        return None;
    }
    if plan.awaited.is_some() {
        let stored = stored_condition(&observed.instance);
        if let Some(told) = observed.events.told() {
            return Some(open(reason::POD_NOT_STARTED, format!("the upload waits: {told}")));
        }
        let is_stored = stored.is_some_and(|stored| stored.reason == reason::POD_NOT_STARTED);
        if observed.events == Events::Unknown && is_stored {
            return None;
        }
    }
    let running = work.uploads.iter().filter(|(_, stage)| *stage == Stage::Running);
    let jobs: Vec<String> = running.map(|(upload, _)| upload.job_name(observed.instance.name())).collect();
    Some(open(reason::UPLOADING, format!("the content is uploaded by {}", jobs.join(", "))))
}

/// The reason why an upload is retried, and the number of the next attempt; `None` if none is retried.
fn retried(observed: &Observed, work: &Work, now: Timestamp) -> Option<(String, i32)> {
    work.uploads.iter().find_map(|(upload, stage)| match stage {
        Stage::Failed { attempt, because, .. } => Some((because.clone(), attempt.saturating_add(1))),
        Stage::Missing { attempt, not_before: Some(time) } if now < *time && work.waiting.is_none() => {
            let job = upload.job_name(observed.instance.name());
            Some((format!("Job {job} was deleted"), *attempt))
        }
        _ => None,
    })
}

/// The reason why an upload has failed permanently, and how to request it again.
fn given_up(instance: &Instance, config: &SubmissionConfig, work: &Work) -> String {
    let causes = work.uploads.iter().filter_map(|(_, stage)| match stage {
        Stage::GivenUp { because } => Some(because.as_str()),
        _ => None,
    });
    format!(
        "the content could not be uploaded in {} attempts: {}. To request it again: kubectl label instance -n {} {} {}=true \
         --overwrite",
        config.max_attempts,
        causes.collect::<Vec<_>>().join("; "),
        instance.namespace(),
        instance.name(),
        labels::SUBMISSION_REQUESTED
    )
}

/// Writes attempts, times and receipts of uploads into the status.
fn record(observed: &Observed, work: &Work, status: &mut InstanceStatus, now: Timestamp) {
    for (upload, stage) in &work.uploads {
        let own = observed.job(upload);
        let began = own.map(|job| (children::attempt(job), job.metadata.creation_timestamp.as_ref()));
        write(status, upload, |automation| {
            let counts = |(attempt, _): &(i32, _)| *attempt >= automation.submission_attempts;
            if let Some((attempt, created)) = began.filter(|began| *stage != Stage::Done && counts(began)) {
                automation.submission_attempts = attempt;
                // After an attempt with another URL, the next one starts without a pause.
                let is_other = matches!(stage, Stage::Failed { .. })
                    && own.is_some_and(|job| children::has_other_destination(job, upload));
                automation.submission_attempt_time = created.filter(|_| !is_other).cloned();
            }
            if let Stage::Succeeded { at, receipt } = stage {
                automation.submission_time = Some(Time(whole_seconds(at.unwrap_or(now))));
                automation.submission_receipt = receipt.clone().map(Box::new);
            }
        });
    }
    let times = work.uploads.iter().map(|(upload, _)| upload.automation(status).submission_time);
    let times: Option<Vec<Time>> = times.collect();
    if let Some(last) = times.and_then(|times| times.into_iter().max()) {
        status.automation.submission_time = Some(last);
    }
}

/// Changes the record of an upload. It is the record of the environment or, if the objects are named after the Instance
/// only, the record of the Instance. Such an Instance has at most one environment, which shows the same.
fn write(status: &mut InstanceStatus, upload: &Upload, change: impl Fn(&mut Automation)) {
    if upload.environment.is_empty() {
        change(&mut status.automation);
        status.environments.iter_mut().for_each(|environment| change(&mut environment.automation));
        return;
    }
    if let Some(known) = status.environments.iter_mut().find(|known| known.name == upload.environment) {
        change(&mut known.automation);
        return;
    }
    let mut environment =
        EnvironmentStatus { name: Text::from(&upload.environment), ..EnvironmentStatus::default() };
    change(&mut environment.automation);
    status.environments.push(environment);
}

/// The event about a new condition.
fn event(instance: &Instance, observation: &Observation) -> Option<EventNote> {
    let known = stored_condition(instance);
    let is_known = known
        .is_some_and(|known| known.reason == observation.reason && known.message == *observation.message);
    let type_ = match observation.reason {
        reason::STARTING | reason::WAITING_FOR_OFF | reason::UPLOADED | reason::GIVING_UP => return None,
        reason::NOT_ELIGIBLE if observation.holds.is_none() => return None,
        reason::UPLOADING | reason::SUBMISSION_COMPLETED | reason::WITHDRAWN | reason::NOT_ELIGIBLE => {
            EventType::Normal
        }
        _ => EventType::Warning,
    };
    (!is_known).then(|| EventNote::new(type_, observation.reason, &*observation.message))
}
