use std::time::Duration;

use serde_json::json;

use super::*;
use crate::api::reason::TENANT_MISMATCH;
use crate::kinds::JobKind;
use crate::runtime::component::Component;
use crate::runtime::plan::{KindInfo, Requeue};
use crate::runtime::problem::Problem;

#[test]
fn only_a_requested_and_incomplete_upload_starts() {
    let with = |requested: Value, completed: Value| {
        next(&observed(&json!({"metadata": {"labels": {REQUESTED: requested, COMPLETED: completed}}})))
    };
    let idle = Decision::Idle { outdated: Vec::new(), again: None };
    assert!(matches!(with(json!("true"), json!(null)), Decision::Work(Work { is_new: true, .. })));
    assert!(matches!(with(json!("true"), json!("false")), Decision::Work(_)));
    for (requested, completed) in [("true", "true"), ("false", "false"), ("", ""), ("True", "")] {
        assert_eq!(with(json!(requested), json!(completed)), idle, "{requested} {completed}");
    }
    assert_eq!(with(json!(null), json!(null)), idle);
    assert_eq!(next(&observed(&json!({"spec": {"running": {}}}))), idle, "malformed");
}

#[test]
fn an_instance_without_uploadable_content_is_not_eligible() {
    assert_eq!(next(&observed(&json!({"spec": {"customizationUrls": null}}))), Decision::NotEligible);
    let volatile = json!([{"name": "desktop", "environmentType": "Container"}]);
    let of = |environments: &Value| Observed {
        template: Some(object(template(environments))),
        ..observed(&json!({}))
    };
    assert_eq!(next(&of(&volatile)), Decision::NotEligible);
    assert_eq!(next(&of(&json!([]))), Decision::NotEligible);
    let blocked = |observed: &Observed| match next(observed) {
        Decision::Blocked(problem) => problem.reason.as_str(),
        other => panic!("{other:?}"),
    };
    assert_eq!(blocked(&Observed { template: None, ..of(&one()) }), "TemplateNotFound");
    assert_eq!(blocked(&of(&json!(1))), "InvalidTemplate");
}

#[test]
fn nothing_is_uploaded_in_the_name_of_another_tenant() {
    let problem = Problem::fault(Component::Whole, TENANT_MISMATCH, "the namespace belongs to Tenant ada");
    let foreign = |observed| Observed { foreign_tenant: Some(problem.clone()), ..observed };
    let asked = foreign(observed(&json!({})));
    assert_eq!(next(&asked), Decision::Blocked(problem.clone()));
    let plan = planned(&asked);
    assert_eq!((plan.ensure.len(), plan.remove.len(), plan.problems), (0, 0, vec![problem.clone()]));
    // Existing objects stay unchanged: a running Job, and the Jobs of a former request.
    let running = foreign(with_job(observed(&open("Uploading", &json!({}))), 1, &json!({})));
    let mut former = open("SubmissionCompleted", &json!({}));
    former["status"]["conditions"] = json!([condition("True", "SubmissionCompleted")]);
    for observed in [running, foreign(with_job(observed(&former), 1, &succeeded()))] {
        let plan = planned(&observed);
        assert_eq!((plan.ensure.len(), plan.remove.len(), plan.patches.len()), (0, 0, 0));
    }
    // The condition contains the reason.
    let told = told(&asked, &Outcome::default());
    let shown = told.status.conditions.iter().find(|condition| condition.type_ == "Submitted");
    assert_eq!(shown.map(|shown| (&*shown.status, &*shown.reason)), Some(("Unknown", "TenantMismatch")));
    // A request ends if its content is already uploaded.
    let uploaded = foreign(observed(&open("Uploaded", &json!({}))));
    assert_eq!(next(&uploaded), Decision::Label { completed: true });
}

#[test]
fn the_upload_waits_until_nothing_runs_or_a_timeout() {
    let waits = |observed: &Observed| match next(observed) {
        Decision::Work(work) => work.waiting.map(|(what, _)| what),
        other => panic!("{other:?}"),
    };
    assert_eq!(waits(&observed(&json!({}))), None);
    assert_eq!(
        waits(&observed(&json!({"spec": {"running": true}}))).as_deref(),
        Some("spec.running is true")
    );
    for phase in ["Ready", "Stopping", "Failed", "CreationLoopBackoff"] {
        let expected = format!("its phase is {phase}");
        assert_eq!(waits(&observed(&json!({"status": {"phase": phase}}))), Some(expected));
    }
    let pod = |phase: &str| object(json!({"metadata": {"name": "p"}, "status": {"phase": phase}}));
    let running = Observed { pods: vec![pod("Succeeded"), pod("Running")], ..observed(&json!({})) };
    assert_eq!(waits(&running).as_deref(), Some("pod p has not ended"));
    assert_eq!(waits(&Observed { pods: vec![pod("Succeeded")], ..observed(&json!({})) }), None);
    let machine = object(json!({"metadata": {"name": "m"}}));
    let machine = Observed { machines: vec![machine], ..observed(&json!({})) };
    assert_eq!(waits(&machine).as_deref(), Some("virtual machine m runs"));
    let unknown = observed(&json!({"status": {"phase": ""}}));
    assert_eq!(waits(&unknown).as_deref(), Some("its phase is not known yet"));
    assert_eq!(waits(&Observed { workloads: [].into(), ..unknown }), None, "nothing was made for it");

    // The request has been open for five minutes.
    let mut ready = open("WaitingForOff", &json!({}));
    ready["status"]["phase"] = "Ready".into();
    let ready = observed(&ready);
    assert!(waits(&ready).is_some());
    let plan = planned(&ready);
    assert!(plan.ensure.is_empty());
    assert_eq!(plan.requeue, Requeue::After(Duration::from_mins(5)));
    let short = SubmissionConfig { wait_for_off_timeout: "5m".parse().expect("a duration"), ..config() };
    let at_once = SubmissionConfig { wait_for_off: false, ..config() };
    for config in [short, at_once] {
        let plan = planned_at(&ready, &config, now());
        assert_eq!(plan.ensure.len(), 1);
    }
}

#[test]
fn a_job_determines_the_progress_of_an_upload() {
    let at_open = |automation: Value| observed(&open("Uploading", &automation));
    let times = at_open(json!({"submissionTime": "2026-03-04T04:58:00Z"}));
    assert_eq!(stage(&times), Stage::Done);
    assert_eq!(stage(&at_open(json!({}))), Stage::Missing { attempt: 1, not_before: None });
    let job = |attempt, status| stage(&with_job(at_open(json!({})), attempt, &status));
    assert_eq!(job(1, json!({})), Stage::Running);
    assert_eq!(job(1, json!({"active": 1, "failed": 3})), Stage::Running);
    let end = Some(time("2026-03-04T04:58:00Z"));
    assert_eq!(job(1, succeeded()), Stage::Succeeded { at: end, receipt: None });
    assert_eq!(
        job(3, succeeded()),
        Stage::Succeeded { at: end, receipt: None },
        "the last attempt counts, too"
    );
    let because = "Job exam-1-submitter has failed: BackoffLimitExceeded: too often".to_owned();
    let failed_at = |attempt, retry| Stage::Failed {
        attempt,
        because: because.clone(),
        retry: time(retry),
        is_counted: false,
    };
    assert_eq!(job(1, failed()), failed_at(1, "2026-03-04T05:00:00Z"));
    assert_eq!(job(2, failed()), failed_at(2, "2026-03-04T05:05:00Z"));
    assert_eq!(job(3, failed()), Stage::GivenUp { because: because.clone() });
    // A new URL is tried immediately, as the next attempt.
    let mut elsewhere = open("Uploading", &json!({}));
    let url = "https://exams.example.org/other";
    let corrected = json!({"spec": {"customizationUrls": {"contentDestination": url}}});
    merge::apply(&mut elsewhere, &corrected);
    let former = with_job(at_open(json!({})), 2, &failed());
    let corrected = Observed { children: former.children, ..observed(&elsewhere) };
    assert_eq!(stage(&corrected), failed_at(2, "2026-03-04T04:55:00Z"));
    let reported = told(&corrected, &Outcome::default()).status.automation;
    assert_eq!((reported.submission_attempts, reported.submission_attempt_time), (2, None));
    // After a restart of the daemon, counting continues.
    let third = at_open(json!({"submissionAttempts": 3}));
    assert_eq!(stage(&with_job(third.clone(), 1, &failed())), Stage::GivenUp { because });
    assert_eq!(stage(&third), Stage::GivenUp { because: "Job exam-1-submitter was deleted".to_owned() });
}

#[test]
fn a_deleted_job_counts_as_an_attempt_and_its_pause_applies() {
    // The Job was created three minutes ago. The pause after the second attempt is ten minutes.
    let deleted = |attempts: i32| {
        let automation =
            json!({"submissionAttempts": attempts, "submissionAttemptTime": "2026-03-04T04:57:00Z"});
        observed(&open("Retrying", &automation))
    };
    let second = deleted(2);
    let not_before = Some(time("2026-03-04T05:07:00Z"));
    assert_eq!(stage(&second), Stage::Missing { attempt: 3, not_before });
    let waits = planned(&second);
    assert!(waits.ensure.is_empty() && waits.remove.is_empty());
    assert_eq!(waits.requeue, Requeue::After(Duration::from_mins(7)));
    let later = planned_at(&second, &config(), time("2026-03-04T05:07:00Z"));
    let made = later.ensure[0].manifest.as_ref().expect("a Job").json();
    assert_eq!(made["metadata"]["annotations"]["crownlabs.polito.it/submission-attempt"], "3");
    assert!(matches!(stage(&deleted(3)), Stage::GivenUp { .. }));
    // An old status without this time.
    let old = observed(&open("Retrying", &json!({"submissionAttempts": 2})));
    assert_eq!(stage(&old), Stage::Missing { attempt: 3, not_before: None });
    assert_eq!(planned(&old).ensure.len(), 1);
    let told = told(&second, &Outcome::default());
    let shown = told.status.conditions.iter().find(|condition| condition.type_ == "Submitted");
    let message = "Job exam-1-submitter was deleted; attempt 3 of 3 follows";
    assert_eq!(shown.map(|shown| (&*shown.reason, &*shown.message)), Some(("Retrying", message)));
    assert_eq!(told.status.automation, second.instance.status.automation, "it counts no further");
}

#[test]
fn a_job_of_another_owner_is_not_ours() {
    let mut observed = with_job(observed(&open("Uploading", &json!({}))), 1, &succeeded());
    let mut job = Object::clone(observed.children.first::<JobKind>());
    job.metadata.owner_references = crate::api::interned::List::default();
    observed.children.set([Arc::new(job)]);
    assert_eq!(stage(&observed), Stage::Missing { attempt: 1, not_before: None });
    let plan = planned(&observed);
    assert_eq!((plan.ensure.len(), plan.ensure[0].manifest.is_some()), (1, false), "adopted, or a conflict");
}

#[test]
fn a_failed_job_is_replaced_when_its_time_has_come() {
    let at_open = || observed(&open("Retrying", &json!({"submissionAttempts": 1})));
    let due = planned(&with_job(at_open(), 1, &failed()));
    assert_eq!((due.remove.len(), due.ensure.len()), (1, 0));
    assert_eq!((due.remove[0].uid.as_str(), due.requeue), ("j1", Requeue::After(Duration::ZERO)));
    // The status does not count the attempt yet, and the Job is its only record.
    let uncounted = planned(&with_job(observed(&open("Starting", &json!({}))), 1, &failed()));
    assert!(uncounted.remove.is_empty() && uncounted.ensure.is_empty());
    assert_eq!(uncounted.requeue, Requeue::After(Duration::ZERO));
    let early = planned(&with_job(at_open(), 2, &failed()));
    assert!(early.remove.is_empty() && early.ensure.is_empty());
    assert_eq!(early.requeue, Requeue::After(Duration::from_mins(5)));
    let over = planned(&with_job(at_open(), 3, &failed()));
    assert!(over.remove.is_empty() && over.ensure.is_empty(), "it stays for its log");
    let missing = planned(&at_open());
    let made = missing.ensure[0].manifest.as_ref().expect("a Job").json();
    assert_eq!(made["metadata"]["annotations"]["crownlabs.polito.it/submission-attempt"], "2");
    assert!(!missing.announce);
}

#[test]
fn an_open_request_is_recorded_before_its_first_job() {
    assert!(planned(&observed(&json!({}))).announce);
    // A waiting request has no Job to announce.
    assert!(!planned(&observed(&json!({"spec": {"running": true}}))).announce);
}

#[test]
fn the_jobs_of_a_former_request_are_deleted_first() {
    for (status, reason) in [("True", "SubmissionCompleted"), ("False", "SubmissionFailed")] {
        let conditions = json!({"status": {"conditions": [condition(status, reason)]}});
        let again = with_job(observed(&conditions), 1, &succeeded());
        assert_eq!(next(&again), Decision::Clear);
        assert_eq!(planned(&again).remove.len(), 1);
        assert!(matches!(next(&observed(&conditions)), Decision::Work(Work { is_new: true, .. })));
    }
    // A Job of the Go operator for this request is not created again.
    let taken_over = with_job(observed(&json!({})), 1, &succeeded());
    assert!(matches!(stage(&taken_over), Stage::Succeeded { .. }));
}

#[test]
fn labels_end_a_request_for_the_version_that_was_seen() {
    for (reason, completed) in [("Uploaded", "true"), ("GivingUp", "false"), ("NotEligible", "false")] {
        let plan = planned(&observed(&open(reason, &json!({}))));
        assert_eq!(plan.patches.len(), 1, "{reason}");
        let labels = json!({REQUESTED: "false", COMPLETED: completed});
        assert_eq!(plan.patches[0].patch, json!({"metadata": {"labels": labels}}));
        assert_eq!(plan.patches[0].resource_version.as_deref(), Some("7"));
    }
}

#[test]
fn a_successful_job_is_kept_for_five_minutes() {
    let done = json!({"metadata": {"labels": {REQUESTED: "false", COMPLETED: "true"}}});
    let ended = with_job(observed(&done), 1, &succeeded());
    assert_eq!(
        next(&ended),
        Decision::Idle { outdated: Vec::new(), again: Some(time("2026-03-04T05:03:00Z")) }
    );
    assert_eq!(planned(&ended).requeue, Requeue::After(Duration::from_mins(3)));
    let later = planned_at(&ended, &config(), time("2026-03-04T05:03:00Z"));
    assert_eq!(later.remove.len(), 1);
    assert_eq!(later.remove[0].kind, KindInfo::of::<crate::kinds::JobKind>());
    let kept = with_job(observed(&done), 1, &failed());
    assert_eq!(
        next(&kept),
        Decision::Idle { outdated: Vec::new(), again: None },
        "it has the log of the failure"
    );
}
