use serde_json::json;

use super::*;
use crate::api::instance::InstanceStatus;
use crate::api::text::Text;
use crate::runtime::apply::Failure;
use crate::runtime::component::Component;
use crate::runtime::error::ApiError;
use crate::runtime::object_events::Told;

/// Status, reason and message of the condition.
fn shown(status: &InstanceStatus) -> (&str, &str, &str) {
    let condition =
        status.conditions.iter().find(|condition| condition.type_ == "Submitted").expect("Submitted");
    (&condition.status, &condition.reason, &condition.message)
}

fn reasons(report: &Report<InstanceKind>) -> Vec<&str> {
    report.events.iter().map(|event| event.reason.as_str()).collect()
}

fn ok(observed: &Observed) -> Report<InstanceKind> {
    told(observed, &Outcome::default())
}

#[test]
fn a_new_request_forgets_the_attempts_of_the_former_one() {
    let former = |reason: &str, status: &str| {
        let automation = json!({"submissionTime": "2026-01-01T00:00:00Z", "submissionAttempts": 3,
            "submissionAttemptTime": "2026-01-01T00:00:00Z"});
        let mut more = open(reason, &automation);
        more["status"]["conditions"] = json!([condition(status, reason)]);
        let report = told(&observed(&more), &Outcome::pending());
        let automation = report.status.automation.clone();
        assert_eq!(report.status.environments[0].automation, automation);
        assert_eq!(automation.submission_attempt_time, None);
        (automation.submission_time.is_some(), automation.submission_attempts, report)
    };
    let (has_time, attempts, report) = former("SubmissionCompleted", "True");
    assert_eq!((has_time, attempts), (false, 0));
    assert_eq!(shown(&report.status), ("Unknown", "Starting", "the upload starts"));
    let since = report.status.conditions[0].last_transition_time.0;
    assert_eq!(since, now(), "the time since which it waits until the Instance is off");
    // Uploads that succeeded before another one failed count.
    let (has_time, attempts, _) = former("SubmissionFailed", "False");
    assert_eq!((has_time, attempts), (true, 0));
}

#[test]
fn progress_is_reported() {
    let waiting = ok(&observed(&json!({"spec": {"running": true}})));
    let message = "the upload waits until the Instance is off, at most 10m: spec.running is true";
    assert_eq!(shown(&waiting.status), ("Unknown", "WaitingForOff", message));
    assert!(waiting.events.is_empty());
    let running = ok(&with_job(observed(&open("Starting", &json!({}))), 1, &json!({})));
    assert_eq!(
        shown(&running.status),
        ("Unknown", "Uploading", "the content is uploaded by exam-1-submitter")
    );
    assert_eq!((reasons(&running), running.status.automation.submission_attempts), (vec!["Uploading"], 1));
    assert_eq!(running.status.environments[0].automation.submission_attempts, 1);
    let retrying = ok(&with_job(observed(&open("Uploading", &json!({}))), 2, &failed()));
    let message = "Job exam-1-submitter has failed: BackoffLimitExceeded: too often; attempt 3 of 3 follows";
    assert_eq!(shown(&retrying.status), ("Unknown", "Retrying", message));
    assert_eq!((reasons(&retrying), retrying.status.automation.submission_attempts), (vec!["Retrying"], 2));
    // Between the deletion of the failed Job and the creation of the next one, nothing changes.
    let between = observed(&open("Retrying", &json!({"submissionAttempts": 2})));
    assert_eq!(ok(&between).status, between.instance.status);
}

#[test]
fn an_event_explains_why_the_job_does_not_start() {
    let running = with_job(observed(&open("Uploading", &json!({}))), 1, &json!({}));
    let [word, kind, name] = ["FailedScheduling", "Pod", "exam-1-submitter-x"].map(Text::from);
    let told = Told { word, kind, name, uid: "p1".into(), message: "no node has the volume".into() };
    let explained = Observed { events: Events::Read(vec![told]), ..running };
    let message = "the upload waits: Pod exam-1-submitter-x: FailedScheduling: no node has the volume";
    assert_eq!(shown(&ok(&explained).status), ("Unknown", "PodNotStarted", message));
    // A pod that runs does not wait.
    let ready = with_job(observed(&open("PodNotStarted", &json!({}))), 1, &json!({"ready": 1}));
    let ready = Observed { events: explained.events, ..ready };
    assert_eq!(shown(&ok(&ready).status).1, "Uploading");
}

#[test]
fn a_success_is_recorded_before_the_labels_are_set() {
    let report = ok(&with_job(observed(&open("Uploading", &json!({}))), 1, &succeeded()));
    assert_eq!(shown(&report.status), ("Unknown", "Uploaded", "the content was uploaded"));
    assert!(report.requeue_at_once && report.events.is_empty());
    let automation = serde_json::to_value(&report.status.automation).expect("JSON");
    let expected = json!({"submissionTime": "2026-03-04T04:58:00Z", "submissionAttempts": 1,
        "submissionAttemptTime": "2026-03-04T04:55:00Z"});
    assert_eq!(automation, expected);
    assert_eq!(report.status.environments[0].automation, report.status.automation);
    let ended = |reason: &str, completed: &str| {
        let mut more = open(reason, &json!({}));
        more["metadata"] = json!({"labels": {REQUESTED: "false", COMPLETED: completed}});
        ok(&observed(&more))
    };
    let report = ended("Uploaded", "true");
    assert_eq!(shown(&report.status), ("True", "SubmissionCompleted", "stored"));
    assert_eq!((reasons(&report), report.requeue_at_once), (vec!["SubmissionCompleted"], true));
    let report = ended("GivingUp", "false");
    assert_eq!(shown(&report.status), ("False", "SubmissionFailed", "stored"));
    assert_eq!(reasons(&report), ["SubmissionFailed"]);
    assert_eq!(shown(&ended("NotEligible", "false").status).1, "NotEligible");
    let report = ended("Uploading", "false");
    assert_eq!((shown(&report.status).0, shown(&report.status).1), ("False", "Withdrawn"));
}

#[test]
fn a_failure_for_good_says_how_to_ask_again() {
    let report = ok(&with_job(observed(&open("Uploading", &json!({}))), 3, &failed()));
    let (status, reason, message) = shown(&report.status);
    assert_eq!((status, reason), ("Unknown", "GivingUp"));
    assert_eq!(
        message,
        "the content could not be uploaded in 3 attempts: Job exam-1-submitter has failed: BackoffLimitExceeded: too \
         often. To request it again: kubectl label instance -n exams exam.1 \
         crownlabs.polito.it/instance-submission-requested=true --overwrite"
    );
    assert!(report.requeue_at_once && report.events.is_empty());
}

#[test]
fn refused_jobs_are_reported_unless_the_next_attempt_may_succeed() {
    let at_open = observed(&open("Starting", &json!({})));
    let with = |error: ApiError| {
        let (component, name) = (Component::Whole, "exam-1-submitter".to_owned());
        told(&at_open, &Outcome::of(vec![Failure { component, kind: "Job", name, error }]))
    };
    let report = with(ApiError::QuotaExceeded("exceeded quota".to_owned()));
    let message = "the upload cannot start and will be retried: Job exam-1-submitter: exceeded quota";
    assert_eq!(shown(&report.status), ("Unknown", "ResourceQuotaExceeded", message));
    assert_eq!(reasons(&report), ["ResourceQuotaExceeded"]);
    let owner = "belongs to Job x".to_owned();
    let report = with(ApiError::NameConflict { kind: "Job", name: "exam-1-submitter".to_owned(), owner });
    assert_eq!(shown(&report.status).1, "NameConflict");
    let report = with(ApiError::transient("the API server did not answer"));
    assert_eq!((report.status, report.events.len()), (at_open.instance.status.clone(), 0));
}

/// Three environments: one with nothing to upload, and two that are uploaded.
fn several(more: &Value) -> Observed {
    let environments = json!([
        {"name": "web", "environmentType": "Container"},
        {"name": "db", "environmentType": "VirtualMachine", "persistent": true},
        {"name": "app", "environmentType": "Container", "persistent": true},
    ]);
    let urls = json!({"db": {"destination": "https://x/db"}, "app": {"destination": "https://x/app"},
        "web": {"destination": "https://x/web"}});
    let environment = |name: &str| json!({"name": name, "phase": "Off"});
    let mut instance = json!({
        "spec": {"contentUrls": urls},
        "status": {
            "environments": [environment("web"), environment("db"), environment("app")],
            "conditions": [condition("Unknown", "Uploading")],
        },
    });
    merge::apply(&mut instance, more);
    Observed {
        template: Some(object(template(&environments))),
        workloads: ["exam-1-web", "exam-1-db", "exam-1-app"].map(str::to_owned).into(),
        ..observed(&instance)
    }
}

#[test]
fn a_request_is_complete_when_all_environments_are_uploaded() {
    let observed = several(&json!({}));
    let uploads = observed.uploads();
    let names: Vec<String> = uploads.iter().map(|upload| upload.job_name("exam.1")).collect();
    assert_eq!(names, ["exam-1-db-submitter", "exam-1-app-submitter"]);
    assert_eq!(planned(&observed).ensure.len(), 2, "at the same time");
    let jobs = |statuses: [Value; 2], attempt| {
        let pairs = uploads.iter().zip(statuses);
        let jobs = pairs.map(|(upload, status)| job_of(&observed, upload, attempt, &status));
        Observed { children: Children::default().with(jobs), ..observed.clone() }
    };
    let report = ok(&jobs([succeeded(), json!({})], 1));
    assert_eq!(
        shown(&report.status),
        ("Unknown", "Uploading", "the content is uploaded by exam-1-app-submitter")
    );
    let times = |report: &Report<InstanceKind>| {
        let environments = &report.status.environments;
        let mut times: Vec<bool> =
            environments.iter().map(|one| one.automation.submission_time.is_some()).collect();
        times.push(report.status.automation.submission_time.is_some());
        times
    };
    assert_eq!(times(&report), [false, true, false, false]);
    let report = ok(&jobs([succeeded(), succeeded()], 1));
    assert_eq!(shown(&report.status).1, "Uploaded");
    assert_eq!(times(&report), [false, true, true, true]);
    // A permanent failure ends the request only after the other uploads have ended.
    assert_eq!(shown(&ok(&jobs([failed(), json!({})], 3)).status).1, "Uploading");
    let report = ok(&jobs([failed(), succeeded()], 3));
    assert_eq!(shown(&report.status).1, "GivingUp");
    assert_eq!(times(&report), [false, false, true, false]);
    let uploaded = several(&json!({"status": {"conditions": [condition("Unknown", "Uploaded")]}}));
    let labels = &planned(&uploaded).patches[0].patch["metadata"]["labels"];
    assert_eq!(labels["crownlabs.polito.it/environment-name"], "app");
}
